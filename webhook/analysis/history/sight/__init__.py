"""What an input shows and what it hides: its bounds, its clocks, and whether writes may be missing."""
