"""The shell that serves: HTTP, TLS, files, the clock, metrics and logs."""
