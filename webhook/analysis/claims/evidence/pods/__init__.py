"""What a log shows of pods: of those that held a lease, ask for it, or should."""
