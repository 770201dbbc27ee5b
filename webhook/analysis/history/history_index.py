"""All leases by what is asked of them: whose they are, where they are, and which of them stopped together.

In: the leases of an input, as they are known until another item is added. Out: those that answer a question. Each lease
is explained by others, so each index is built once, when it is asked for.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, field

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.comparison import (
    OverdueLeases,
    compare_renewals,
    find_common_clock_step,
    find_compared_renewal,
)
from webhook.analysis.history.heartbeat_stops import Heartbeats
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import OtherLeases
from webhook.analysis.history.stored_leases import Key, StoredLeases
from webhook.analysis.history.visibility.clock_steps import ClockStep
from webhook.analysis.inputs.absences import NODE
from webhook.analysis.inputs.items import RelatedWrite, Writer
from webhook.cached_property import cached_property
from webhook.kubernetes.times import SECOND

MAX_COMPARED: Final = 200
"""Other leases that a lease is compared with if there are twice as many or more; of fewer all are."""

_RUN: Final = re.compile(r"[0-9]{6,}")
"""Numbers of shards, zones and versions are shorter."""


def _list_patterns(name: str) -> list[str]:
    """Return a name with each number of a run replaced, and of as many letters: no name of an object has a `#`."""
    found = _RUN.finditer(name)
    return [f"{name[: one.start()]}{'#' * (one.end() - one.start())}{name[one.end() :]}" for one in found]


def _find_last_renewal(history: LeaseHistory) -> int:
    return history.current_tenure.last_renewal if history.current_tenure is not None else 0


class HistoryIndex(Struct, dict=True):
    """Indexes of leases: `followed` are those that something else than a list shows, `stored` the others."""

    followed: Mapping[Key, LeaseHistory]
    stored: StoredLeases
    until: int | None
    """The last moment that an API server's clock shows."""
    shown_until: int | None
    """The first end of a log, if there is one: what another API server answered after that is not shown."""
    follow: Callable[[Key], LeaseHistory]
    """Follows a lease that only a list shows, at the cost of reading it again."""
    list_related_writes: Callable[[], Iterable[RelatedWrite]]
    """Lists the writes to what leaders depend on."""
    _overdue: OverdueLeases | None = None
    _by_name: dict[str, Sequence[LeaseHistory]] = field(default_factory=dict)

    def find_tenures_of_user(self, user: str) -> Sequence[tuple[LeaseHistory, Tenure]]:
        """Return the tenures of a user's processes, with the leases that they had."""
        return self._tenures_by_user.get(user, ())

    @cached_property
    def _tenures_by_user(self) -> dict[str, list[tuple[LeaseHistory, Tenure]]]:
        found: dict[str, list[tuple[LeaseHistory, Tenure]]] = {}
        for history, tenure in self._list_tenures():
            owner = tenure.processes.own.user if tenure.processes.own else ""
            found.setdefault(owner, []).append((history, tenure))
        return found

    def find_tenures_of_process(self, who: Writer) -> Iterator[tuple[LeaseHistory, Tenure]]:
        """Yield the tenures of a pod, with the leases that it had: many pods may have one account."""
        by_pod = self._tenures_by_pod
        found = by_pod.get((who.user, who.uid), {}) | by_pod.get((who.user, who.pod), {})
        return (found[number] for number in sorted(found) if who.is_same(found[number][1].processes.own))

    @cached_property
    def _tenures_by_pod(self) -> dict[tuple[str, str], dict[int, tuple[LeaseHistory, Tenure]]]:
        """Tenures by the user, and the name or the uid of the pod; their numbers keep them in order."""
        found: dict[tuple[str, str], dict[int, tuple[LeaseHistory, Tenure]]] = {}
        for number, (history, tenure) in enumerate(self._list_tenures()):
            own = tenure.processes.own or Writer()
            for known in {own.pod, own.uid} - {""}:
                found.setdefault((own.user, known), {})[number] = history, tenure
        return found

    def _list_tenures(self) -> Iterator[tuple[LeaseHistory, Tenure]]:
        return ((history, tenure) for history in self.followed.values() for tenure in history.tenures)

    def list_of_namespace(self, namespace: str) -> Sequence[LeaseHistory]:
        """Return the leases of a namespace that are followed."""
        return self._by_namespace.get(namespace, ())

    @cached_property
    def _by_namespace(self) -> dict[str, list[LeaseHistory]]:
        found: dict[str, list[LeaseHistory]] = {}
        for history in self.followed.values():
            found.setdefault(history.namespace, []).append(history)
        return found

    def list_namespaces_of(self, name: str) -> Sequence[str]:
        """Return the namespaces that have a lease of a name, in order."""
        return self._namespaces_by_name.get(name, ())

    @cached_property
    def _namespaces_by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for namespace, name in sorted([*self.followed, *self.stored.numbers]):
            found.setdefault(name, []).append(namespace)
        return found

    def list_namesakes(self, history: LeaseHistory) -> Sequence[LeaseHistory]:
        """Return the leases of the same name in other namespaces; if they are many, those that were renewed last.

        A list does not show which of its leases that were: as many as are left are followed, once for all that ask.
        """
        namespaces = self.list_namespaces_of(history.name)
        if all(one == history.namespace for one in namespaces):
            return ()
        found = self._by_name.get(history.name)
        if found is None:
            keys = [(namespace, history.name) for namespace in namespaces]
            followed = [self.followed[key] for key in keys if key in self.followed]
            latest = sorted(followed, key=_find_last_renewal, reverse=True)[:MAX_COMPARED]
            stored = [key for key in keys if key not in self.followed][: MAX_COMPARED - len(latest)]
            found = self._by_name[history.name] = [*latest, *map(self.follow, stored)]
        return [one for one in found if one.namespace != history.namespace]

    def list_of_other_runs(self, history: LeaseHistory) -> list[LeaseHistory]:
        """Return the leases of the same namespace whose names differ only in the number of a run.

        If they are many, those that were renewed last: they may be as many as the input has leases.
        """
        found: dict[str, LeaseHistory] = {}
        for pattern in _list_patterns(history.name):
            found |= {one.name: one for one in self._by_pattern.get((history.namespace, pattern), ())[:MAX_COMPARED]}
        found.pop(history.name, None)
        return list(found.values())

    @cached_property
    def _by_pattern(self) -> Mapping[Key, Sequence[LeaseHistory]]:
        """Leases by namespace, and name without the digits of a run; those that were renewed last come first."""
        found: dict[Key, list[LeaseHistory]] = {}
        for history in sorted(self.followed.values(), key=_find_last_renewal, reverse=True):
            for pattern in _list_patterns(history.name):
                found.setdefault((history.namespace, pattern), []).append(history)
        return found

    def list_nodes_at(self, address: str) -> Sequence[LeaseHistory]:
        """Return the leases of the nodes whose kubelets renew them from one address, and from no other."""
        return self._nodes_by_address.get(address, ())

    @cached_property
    def _nodes_by_address(self) -> dict[str, list[LeaseHistory]]:
        found: dict[str, list[LeaseHistory]] = {}
        for history in self.list_of_namespace(NODE_LEASES):
            if address := history.find_address_of_kubelet():
                found.setdefault(address, []).append(history)
        return found

    def has_unlogged_write(self, start: int, end: int) -> bool:
        """Return whether a write to any lease between two instants is known that a log lacks."""
        return any(start < earliest and latest < end for earliest, latest in self._unlogged_writes)

    @cached_property
    def _unlogged_writes(self) -> Sequence[tuple[int, int]]:
        """The earliest and the latest moment of the first and the last write to each lease that a log lacks."""
        unlogged = [one.unlogged for one in self.followed.values() if one.unlogged is not None]
        first = [(one.since, one.by) for one in unlogged if one.by is not None]
        # Stamps have whole seconds.
        return [*first, *((one.until - SECOND, one.until + SECOND) for one in unlogged)]

    @cached_property
    def heartbeats(self) -> Heartbeats:
        """The heartbeats of nodes and API servers."""
        found = self.followed.values()
        known = [
            one for one in found if one.namespace == NODE_LEASES or is_identity_of_api_server(one.namespace, one.name)
        ]
        return Heartbeats.from_histories(known, self.until)

    def compare_with_others(self, history: LeaseHistory, start: int, end: int) -> OtherLeases:
        """Return how many other leases were late, and how many were renewed as usual, between two instants.

        If there are many, a sample is compared, evenly spread: after an outage each lease is compared with all others.
        """
        step = max(1, len(self._keys) // MAX_COMPARED)
        sample = (self.followed[key] for key in islice(self._keys, 0, None, step))
        nodes_gone = {name: at for name, at in self._node_deletions if at <= end}
        until = end if self.shown_until is None else self.shown_until
        return compare_renewals(history, sample, start, end, is_sample=step > 1, nodes_gone=nodes_gone, until=until)

    @cached_property
    def related_writes(self) -> Sequence[RelatedWrite]:
        """The writes to what leaders depend on: the accounts of all leases need them."""
        return list(self.list_related_writes())

    @cached_property
    def _node_deletions(self) -> Sequence[tuple[str, int]]:
        """The names of Nodes that were deleted, and when."""
        return [(one.name, one.at) for one in self.related_writes if (one.kind, one.verb) == (NODE, "deleted")]

    @cached_property
    def _keys(self) -> list[Key]:
        return sorted(self.followed)

    def find_server_clock_step(self, history: LeaseHistory, start: int, end: int) -> ClockStep | None:
        """Return the step of an API server's clock between two instants; None if there is none."""
        return find_common_clock_step(history, self.followed.values(), start, end)

    def compare_silent_with_others(self, history: LeaseHistory, now: int) -> OtherLeases:
        """Return how many other held leases were last renewed when an expired one was, and how many after it."""
        if self._overdue is None or self._overdue.now != now:
            renewals = (find_compared_renewal(one, now) for one in self.followed.values())
            self._overdue = OverdueLeases.from_renewals(
                [one for one in renewals if one] + list(self.stored.list_last_renewals()), now
            )
        return self._overdue.compare_with(history)
