"""Decides a write: the rules, how strict a policy makes them, and the verdict."""
