"""The page of `make web` in a browser."""
