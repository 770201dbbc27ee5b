"""The limits of an input: its bounds, its clocks, and whether writes may be missing."""
