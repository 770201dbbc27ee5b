"""The events of a lease of each kind, as instants and texts."""
