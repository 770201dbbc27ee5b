"""Objects for the API server: policies, fences, an installation; and what examines those of a cluster."""
