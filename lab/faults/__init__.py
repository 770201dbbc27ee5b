"""The faults that the server survives, each as a program that counts wrong verdicts."""
