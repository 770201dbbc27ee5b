"""What leases did over time, ready to be drawn: who held each of them when, and what happened to it."""
