"""Timelines against the truth of scripts, laws of thinning, formats, hostile names."""
