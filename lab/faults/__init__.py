"""What the server survives: each fault as a program that counts wrong verdicts."""
