"""The steps by which an observation changes the history of a lease."""
