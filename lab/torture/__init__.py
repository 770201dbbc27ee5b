"""Electors of several languages on a control plane in which everything fails, and the fate of their leases."""
