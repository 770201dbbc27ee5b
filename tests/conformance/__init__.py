"""Recorded verdicts of the API server's own code, and ours beside them."""
