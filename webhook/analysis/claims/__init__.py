"""What happened to a lease, in words: for a person who is on call and knows nothing of leases."""
