"""What a Lease or LeaseCandidate write must satisfy: pure functions of one change that return findings."""
