"""The specification: five TLA+ modules that TLC checks, and the arithmetic of expiry, proven by Z3."""
