"""Certificates of the webhook: issue them, inspect them, read their files."""
