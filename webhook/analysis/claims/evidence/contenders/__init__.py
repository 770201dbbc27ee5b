"""Who asks for a lease, and other leases that they may mean."""
