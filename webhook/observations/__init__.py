"""What was seen of leases: dumps, watch streams, audit logs and reviews as one stream of observations."""
