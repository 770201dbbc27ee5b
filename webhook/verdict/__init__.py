"""The decision about one review: its model, its words, and its bytes."""
