"""Electors of several languages on a control plane in which everything fails, and what became of their leases."""
