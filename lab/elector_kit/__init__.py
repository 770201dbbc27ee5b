"""The violations of an elector, given as a command line, on a real API server."""
