"""Evidence from elections in which an API server chooses the holder among LeaseCandidates."""
