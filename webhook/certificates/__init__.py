"""Certificates as PEM files: issue them, inspect them. No server and no sockets."""
