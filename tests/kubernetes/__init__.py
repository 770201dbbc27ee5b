"""Tests of what Kubernetes says."""
