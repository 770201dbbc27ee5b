"""What the mutating policy of deploy/stamp makes of a write, as Python: stamps, and one constant entry."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from tests.evidence.conditions import owns
from tests.evidence.stored_lease import Entry, Lease

SUFFIX: Final = "5f3a9c1e"
WRITER, WRITTEN, TERM = (f"lease-webhook/{name}-{SUFFIX}" for name in ("writer", "written", "term"))
CONSTANT: Final = Entry(
    "lease-webhook-stamp",
    time="2000-01-01T00:00:00Z",
    fields='{"f:metadata":{"f:annotations":{"f:lease-webhook/stamp":{}}}}',
)
_FIELDS: Final = ("renewTime", "holderIdentity", "leaseDurationSeconds", "acquireTime", "leaseTransitions")


def stamped(old: Lease | None, new: Lease, user: Mapping[str, Any]) -> Lease:
    """Return the write as it is stored; every lease fits."""
    spec, old_spec = new.spec, old.spec if old else {}
    before, annotations = annotations_of(old), dict(annotations_of(new))
    exempt = user["username"] == "system:apiserver" or "system:masters" in user.get("groups", [])
    requester = "" if exempt else requester_of(user)
    was = before.get(WRITER, "")
    same_holder = old is not None and new.holder == old.holder
    if old is not None and (spec == old_spec or (exempt and same_holder)):
        stamps = [was, before.get(WRITTEN, ""), before.get(TERM, "")]
    else:
        written = _time_of_this_write(new, old_spec) or (before.get(WRITTEN, "") if requester == was else "")
        stamps = [requester, written, _term(old, before.get(TERM, ""), changed=requester != was or not same_holder)]
    metadata = {
        **new.object["metadata"],
        "annotations": annotations | dict(zip((WRITER, WRITTEN, TERM), stamps, strict=True)),
    }
    owners = metadata.get("ownerReferences")
    is_inherited = old is not None and (not same_holder or was not in ("", stamps[0]))
    if is_inherited and old is not None and owners == old.object["metadata"].get("ownerReferences"):
        metadata.pop("ownerReferences", None)
    return replace(new, object={**new.object, "metadata": metadata}, entries=(CONSTANT,))


def requester_of(user: Mapping[str, Any]) -> str:
    """Return what is stamped when this user writes."""
    uids = user.get("extra", {}).get("authentication.kubernetes.io/pod-uid", [])
    return f"{uids[0] if len(uids) == 1 else '-'} {user['username']}"


def _time_of_this_write(new: Lease, old_spec: Mapping[str, Any]) -> str:
    """The time of the one owner of the first field that this write sets."""
    field = next((one for one in _FIELDS if one in new.spec and new.spec[one] != old_spec.get(one)), None)
    owners = [entry for entry in new.entries or () if field and owns(entry, field)]
    return (owners[0].time or "") if len(owners) == 1 and owners[0].manager != "ancient-changes" else ""


def _term(old: Lease | None, term: str, *, changed: bool) -> str:
    if old is None:
        return ""
    version = int(old.object["metadata"].get("resourceVersion", "100"))
    return str(version) if changed else term or str(version - 1)


def annotations_of(lease: Lease | None) -> Mapping[str, str]:
    """The annotations of a lease, none without one."""
    return (lease.object["metadata"].get("annotations") if lease else None) or {}
