"""The writes that an audit log shows to what leaders depend on, the latest, and which deletions were no dry run.

In: a write after another. Out: all of them; a deletion is sure if the object was gone afterwards, whatever of its
options the log hides. What the answers to requests for a lease show beside that is with the lease.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.audit_log.absences import Absences
from webhook.analysis.inputs.absences import NODE
from webhook.analysis.inputs.items import RelatedWrite
from webhook.analysis.inputs.node_taints import describe_change

MAX_WRITES: Final = 1000
"""Writes that are remembered."""
_Key = tuple[str, str, str]
"""Kind, namespace and name."""


class RelatedWrites(Struct):
    """The latest writes, each once, in the order in which they were read.

    The keys are without what only some copies of a log show of a request.
    """

    _found: dict[RelatedWrite, RelatedWrite] = field(default_factory=dict)

    def add(self, write: RelatedWrite) -> None:
        """Remember a write, and forget the one that was read longest ago if there are too many."""
        # Another copy of a log may show more of the same request.
        key = replace(
            write, is_surely_not_dry_run=False, change="", switched_off="", may_change_nothing=False, taints=None
        )
        known = self._found.pop(key, write)
        self._found[key] = replace(
            write,
            is_surely_not_dry_run=write.is_surely_not_dry_run or known.is_surely_not_dry_run,
            change=write.change or known.change,
            may_change_nothing=write.may_change_nothing and known.may_change_nothing,
            switched_off=write.switched_off or known.switched_off,
            taints=known.taints if write.taints is None else write.taints,
        )
        if len(self._found) > MAX_WRITES:
            del self._found[next(iter(self._found))]

    def list_confirmed(self, absences: Absences, skew: int) -> Iterator[RelatedWrite]:
        """Yield the writes; a deletion after which its object was gone, or was created again, was no dry run.

        `skew` is the least difference between the clocks of the API servers, in microseconds, as far as is known.
        """
        deleted, created, changes = self._group("deleted"), self._group("created"), self._find_changes_of_taints(skew)
        for write in self._found.values():
            if write.verb != "deleted" or write.is_surely_not_dry_run:
                change = changes.get(write)
                yield write if change is None else replace(write, change=change)
                continue
            key = _get_key(write)
            again = (one.at for one in created.get(key, ()) if one.is_surely_not_dry_run)
            gone = min((at for at in chain(absences.list_times(*key), again) if at >= write.at + skew), default=None)
            is_gone = gone is not None and _is_only_request(write, deleted[key], gone)
            yield replace(write, is_surely_not_dry_run=True) if is_gone else write

    def _find_changes_of_taints(self, skew: int) -> Mapping[RelatedWrite, str]:
        """Return what writes changed of the taints of a node that are known before and after.

        Who sends a list of taints repeats those that were there before.
        """
        of_nodes: dict[str, list[RelatedWrite]] = {}
        for write in self._found.values():
            if write.kind == NODE:
                of_nodes.setdefault(write.name, []).append(write)
        changes: dict[RelatedWrite, str] = {}
        for writes in of_nodes.values():
            for before, write in pairwise(sorted(writes, key=attrgetter("at"))):
                is_in_order = write.at - before.at > skew
                if is_in_order and before.taints is not None and write.taints is not None and write.verb != "created":
                    changes[write] = describe_change(before.taints, write.taints)
        return changes

    def _group(self, verb: str) -> Mapping[_Key, Sequence[RelatedWrite]]:
        """Return the writes of a verb by the object that they are about."""
        groups: dict[_Key, list[RelatedWrite]] = {}
        for write in self._found.values():
            if write.verb == verb:
                groups.setdefault(_get_key(write), []).append(write)
        return groups


def _get_key(write: RelatedWrite) -> _Key:
    return write.kind, write.namespace, write.name


def _is_only_request(deletion: RelatedWrite, asked: Sequence[RelatedWrite], gone: int) -> bool:
    """Return whether nobody else had `asked` for the deletion of an object until it was gone."""
    return not any(one is not deletion and deletion.at <= one.at <= gone for one in asked)
