"""The server: HTTP, TLS, files, the clock, metrics and logs."""
