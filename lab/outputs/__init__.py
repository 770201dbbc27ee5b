"""Stored output of every command on every recording, incident, corpus and example."""
