"""What to do in each state of a lease: one or two sentences, and a command that fits the cause."""
