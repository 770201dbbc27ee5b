"""The candidates of coordinated elections."""
