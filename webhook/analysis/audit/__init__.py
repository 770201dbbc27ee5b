"""What is wrong with what is stored: checks of Leases and LeaseCandidates, each finding with a reason and a fix."""
