"""Fences: only the holder of a lease may write, enforced by the API server through a ValidatingAdmissionPolicy."""
