"""Incidents of leader election on real API servers, recorded as a person on call would have them."""
