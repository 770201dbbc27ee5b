"""Elections in which an API server chooses the holder, by LeaseCandidates."""
