"""What happened to a lease, in words: for somebody who is on call and knows nothing of leases."""
