"""The page of a timeline in a real browser: `make page`."""
