"""Bindings and fences suggested from what was seen, each with its evidence."""
