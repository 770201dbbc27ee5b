"""What an elector, given as a command line, does wrong on a real API server."""
