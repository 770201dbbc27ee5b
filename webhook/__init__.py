"""A validating admission webhook for Kubernetes Leases and LeaseCandidates."""

from importlib.metadata import version

__version__ = version("lease-webhook")
