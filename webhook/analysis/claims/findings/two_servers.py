"""Several API servers that renew one identity lease: it does not show whether each of them runs."""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import format_clock, format_name, join_with_and
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND

HOSTNAME: Final = "kubernetes.io/hostname"
_MIN_TURNS: Final = 3
"""One that restarts under another address comes after the one before, and that does not come back."""
_MISSED: Final = 3
_USUAL: Final = 10 * SECOND
"""How often an API server renews its lease: `IdentityLeaseRenewIntervalPeriod`."""


class TwoServers(Struct, frozen=True):
    """The addresses from which a lease is renewed, those that were heard last first, with their first and last write.

    `silent` are those of them that renew it no longer; `host` is the name that their hosts have, "" if not shown.
    """

    addresses: tuple[tuple[str, int, int], ...]
    silent: tuple[tuple[str, int], ...]
    host: str

    @property
    def start(self) -> int:
        """When the second of them was first seen."""
        return sorted(first for _, first, _ in self.addresses)[1]

    def describe(self, now: int) -> str:
        """Say from where it is renewed, and which of these renew it no longer."""
        named = join_with_and([format_name(one) for one, _, _ in self.addresses])
        host = f" {format_name(self.host)}" if self.host else ""
        count = f"{len(self.addresses)} API servers renewed it in turn under one identity"
        text = f"{count}, as they do if their hosts have one name{host}: by its annotations, those at {named}"
        gone = [f"that at {format_name(one)} no longer since {format_clock(at, now)}" for one, at in self.silent]
        return f"{text}; {join_with_and(gone)}" if gone else text

    def advise(self, _: LeaseHistory) -> Advice:
        """Return how to see which API servers run: this lease goes on as long as one of them does."""
        sentence = (
            "It is renewed by several API servers, so it does not show whether each of them runs. "
            "Give each host a name of its own, and see which run now, by their addresses:"
        )
        return Advice(sentence, "kubectl -n default get endpointslices -l kubernetes.io/service-name=kubernetes")


def find_two_servers(history: LeaseHistory) -> TwoServers | None:
    """Return which API servers renew an identity lease in turn; None if only one does."""
    seen = history.serving_addresses
    if seen.turns < _MIN_TURNS or history.lease is None:
        return None
    found = sorted(((one, first, last) for one, (first, last) in seen.seen.items()), key=lambda one: -one[2])
    until = found[0][2]
    silent = tuple((one, last) for one, _, last in found if until - last > _MISSED * _USUAL)
    labels = history.lease.metadata.labels or {}
    return TwoServers(tuple(found), silent, labels.get(HOSTNAME) or "")
