"""One module for each table of RESULTS.md."""
