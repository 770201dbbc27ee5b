"""Finds leftovers of an old leader: objects whose token is older than the term of the lease, and were written since.

A term and a token are resourceVersions of the lease, so an object that has a smaller one itself was written before the
term began. Who wrote one that has a greater one is not known: its token says who wrote as a fenced writer last, and
anyone else may have written it since. When, only managedFields say, to the second and not for every write.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.policy.fences import Fence, FencedResource
from webhook.admission.rules.expiry import date_last_renewal
from webhook.analysis.audit.registry import report_problem
from webhook.analysis.inputs.items import Act, Item, Observation, OtherObject, parse_number
from webhook.findings import ObjectName, ReportFinding, Severity
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease, ObjectMeta
from webhook.kubernetes.times import SECOND, format_time, get_readable_instant, normalize
from webhook.text.commands import make_kubectl_prefix, quote_name
from webhook.text.quoting import quote, truncate

_TOKEN: Final = re.compile("[0-9]{18}")
_SHOWN_KINDS: Final = 4


class TokenCheck(Struct):
    """The objects and leases of an input, as they are read; `fences` are those with a token."""

    fences: Sequence[Fence]
    _leases: dict[tuple[str, str], Observation] = field(default_factory=dict)
    _objects: list[tuple[Fence, int, OtherObject]] = field(default_factory=list)
    _bare: dict[str, Counter[str]] = field(default_factory=dict)

    def observe(self, item: Item) -> None:
        """Take in an item of any kind."""
        if isinstance(item, Observation) and item.kind == "Lease" and item.is_stored:
            if item.act is Act.DELETED or item.term is None:
                self._leases.pop((item.namespace, item.name), None)
            else:
                self._leases[item.namespace, item.name] = item
        elif isinstance(item, OtherObject):
            annotations = (item.metadata.annotations if item.metadata else None) or {}
            for fence in self.fences:
                text = annotations.get(fence.token_key) or ""
                if _TOKEN.fullmatch(text):
                    self._objects.append((fence, int(text), item))
                elif _list_covering(fence, item.kind):
                    self._bare.setdefault(fence.name, Counter())[item.kind] += 1

    def check(self) -> Iterator[ReportFinding]:
        """Yield what was left by old leaders, or by anyone else in their name."""
        for fence, token, stamped in self._objects:
            lease = self._leases.get((fence.namespace, fence.lease))
            if lease is not None and stamped.metadata is not None:
                yield from _check_object(fence, token, stamped, stamped.metadata, lease)

    def list_complaints(self) -> Iterator[str]:
        """Yield what is not known."""
        for fence in self.fences:
            if (fence.namespace, fence.lease) not in self._leases:
                yield (
                    f"fence {fence.name}: no stamped lease {fence.lease_text} was found, "
                    "so the term that its objects should have is not known"
                )
            if bare := self._bare.get(fence.name):
                kinds = ", ".join(truncate(kind, 60) for kind, _ in bare.most_common(_SHOWN_KINDS))
                yield (
                    f"fence {fence.name}: {bare.total()} objects of kinds that it covers have no token ({kinds}), "
                    "so in which term they were written, and whether by its writers, is not known"
                )


def _list_covering(fence: Fence, kind: str) -> list[FencedResource]:
    """Return the resources of the fence whose name may be that of a kind; the group is not compared."""
    name = kind.lower()
    plurals = {f"{name}s", f"{name}es", f"{name[:-1]}ies", name}
    return [one for one in fence.resources if one.resource in plurals]


def _check_object(
    fence: Fence, token: int, other: OtherObject, metadata: ObjectMeta, lease: Observation
) -> Iterator[ReportFinding]:
    revision, term = parse_number(metadata.resource_version), lease.term or 0
    its_token = f"its token is of term {token} of lease {fence.lease_text}"
    where = make_kubectl_prefix(other.namespace) if other.namespace else "kubectl"
    object_ = f"{where} get {quote_name(other.kind.lower())} {quote_name(other.name)} -o yaml --show-managed-fields"
    subject, source = ObjectName(other.kind, other.namespace, other.name), str(other.place)
    # A term that began after the lease was listed is not less than the resourceVersion of the lease.
    if 0 < revision <= token or term < token < parse_number(lease.resource_version):
        message = f"{its_token}, and there was no such term, as after a restore of etcd: the leader cannot write it"
        named = f"{quote_name(other.kind.lower())} {quote_name(other.name)}"
        reset = f"{where} annotate --overwrite {named} {fence.token_key}={'0' * 18}"
        found = report_problem("token-ahead", message, subject, source=source)
        yield replace(found, fix=f"{reset}   # as a member of system:masters")
    elif token < term and not 0 < revision <= term:
        severity, since = Severity.INFO, _find_start_of_term(lease)
        when = (
            f"it was changed after the last renewal before term {term}; managedFields do not say "
            "that it was after the term began: they miss writes of a status, and writes that only remove fields"
        )
        began = f", and term {term} began at {format_time(since)}" if since is not None else ""
        stamped, others = _find_last_writes(fence, other.kind, metadata)
        if stamped and since is not None and stamped.at + SECOND > since:
            severity = Severity.WARNING
            when = (
                f"it was written at {stamped}{began}: by an old leader through an API server whose watch was late, "
                "or by someone whom the fence does not name"
            )
        elif others and since is not None and others.at + SECOND > since:
            when = (
                f"its {others.subresource} was written at {others}{began}: by the leader, as such a write may store no "
                "token, by an old leader through an API server whose watch was late, or by someone whom the fence does "
                "not name"
            )
        found = report_problem("token-old", f"{its_token}, and {when}", subject, severity=severity, source=source)
        yield replace(found, fix=object_)


def _find_start_of_term(lease: Observation) -> int | None:
    """Return when the term began, at the latest: by the holder's clock, and not after its last renewal.

    No one holds a lease that was released, so no one says since when; the stamp is that of the release.
    """
    assert isinstance(lease.object, Lease)
    spec, stamp = lease.object.spec, date_last_renewal(lease.entries)
    claimed = get_readable_instant(normalize(spec.acquire_time)) if spec.holder_identity else None
    return min((at for at in (claimed, stamp) if at is not None), default=None)


class _Write(Struct, frozen=True, order=True):
    at: int
    manager: str
    subresource: str

    def __str__(self) -> str:
        return f"{format_time(self.at)} (field manager {quote(truncate(self.manager, 40))})"


def _find_last_writes(fence: Fence, kind: str, metadata: ObjectMeta) -> tuple[_Write | None, _Write | None]:
    """Return the latest dated write that would have the token of its term, and that by what may store none, if any.

    Both are of what the fence covers.
    """
    covering = _list_covering(fence, kind)
    stamped = {"", *(name for one in covering for name in one.storing_subresources)}
    paths = {"", *(one.subresource for one in fence.resources)}
    writes = sorted(
        _Write(one.stamp, one.manager or "", one.key[3])
        for one in list_entries(metadata.managed_fields)
        if one.key[3] in paths and not one.is_fold and one.stamp is not None
    )
    latest = {one.subresource in stamped: one for one in writes}
    return latest.get(True), latest.get(False)
