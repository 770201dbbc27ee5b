"""What an input shows of one subject, and what follows from it: facts, doubts and causes."""
