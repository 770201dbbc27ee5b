"""A validating admission webhook for Kubernetes Leases and LeaseCandidates."""

__version__: str


def __getattr__(name: str) -> str:
    """`__version__`, found when it is asked for: reading the package's metadata takes longer than printing help."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415 - see above

    return version("lease-webhook")
