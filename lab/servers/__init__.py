"""Python's servers beside ours: the behavior of each with hostile clients, and the cost of a review."""
