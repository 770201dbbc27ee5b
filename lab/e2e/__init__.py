"""The webhook on real API servers with real clients: `make e2e`."""
