"""Versions of LeaseCandidates that an API server was asked for and does not serve."""

from msgspec import Struct


class UnservedCandidates(Struct, frozen=True):
    """What an API server answered from `since` on, the last time at `at`, in microseconds since 1970.

    It may serve versions that nobody asked for.
    """

    since: int
    at: int
    versions: tuple[str, ...]

    @property
    def names(self) -> str:
        """`v1alpha2 and v1beta1`."""
        return " and ".join(self.versions)

    def describe(self) -> str:
        """Say which versions they are, and what follows."""
        return f"it does not serve LeaseCandidates of {self.names}; if it serves none at all, it chooses no holder"
