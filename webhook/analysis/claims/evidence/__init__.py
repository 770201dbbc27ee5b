"""Evidence: facts, doubts and causes that follow from an input, each module about one subject."""
