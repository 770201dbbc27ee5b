"""Explains the past: inputs become the history of each lease, and histories become claims, findings and pages."""
