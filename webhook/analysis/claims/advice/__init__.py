"""Advice about each kind of finding: one or two sentences, and a command that fits the cause."""
