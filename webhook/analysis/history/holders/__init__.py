"""The holders of a lease, and how it changes hands: pure parts, each about one subject."""
