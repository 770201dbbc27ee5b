"""HTTP/1.1 over TLS with clients that may be hostile. It knows nothing of reviews."""
