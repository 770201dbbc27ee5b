"""Evidence about the processes that ask for a lease, and about other leases that they may mean."""
