"""Tests of the lab itself: its laws and counts, and that its pages show what it measured."""
