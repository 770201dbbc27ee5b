"""Standing attacks: each is one file in `known/`, played as recorded reviews, in the model, and on real API servers."""
