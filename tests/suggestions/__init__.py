"""Tests of what is suggested from what was seen."""
