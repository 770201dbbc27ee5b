"""What to do about a kind of finding: one or two sentences, and a command that fits the cause."""
