"""Looks at webhook configurations as data and says what could go wrong with leases: pure checks, no cluster needed."""
