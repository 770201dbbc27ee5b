"""Evidence about the pods that held a lease, ask for it, or should ask for it."""
