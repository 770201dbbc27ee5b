"""Evidence from the heartbeats of nodes and API servers."""
