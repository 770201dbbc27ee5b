"""Evidence about writes by others than the holder, to a lease and to what it depends on."""
