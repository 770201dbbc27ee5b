"""The shell that people type at: one module for each command of `lease-webhook`."""
