"""Who holds a lease, since when, and how it changes hands: pure parts, each of one subject."""
