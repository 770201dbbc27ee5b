"""Roles, bindings and exemptions suggested from what was seen, each with its evidence."""
