"""Heartbeats of nodes and API servers, and what depends on them."""
