"""Random histories of elections with known truth, and whether what the commands claim of them is true."""
