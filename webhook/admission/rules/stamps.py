"""Who wrote a lease last, and when, as the API server itself recorded it: the annotations of `deploy/stamp`.

Trust them only where the policy file says that the component is installed, and only beside the constant entry of
managedFields that the component leaves: an API server that does not stamp records an entry for each write by itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import parse_stamp

_MANAGER: Final = "lease-webhook-stamp"
_TIME: Final = "2000-01-01T00:00:00Z"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
NAMES: Final = "lease-webhook/"
"""The prefix of the names of the annotations, whatever their suffix is."""


_KINDS: Final = ("writer", "written", "term")


class Stamps(Struct, frozen=True, gc=False):
    """The names of the annotations in a namespace, and whether all pods of a user are one writer there."""

    suffix: str
    by_user: bool = False


class Stamp(Struct, frozen=True, gc=False):
    """The last write of a lease, as the annotations of the component `stamp` record it."""

    writer: str
    """The uid of the writer's pod, or `-` without one; a blank; and the name of the user. "" if they name no writer."""
    written: int | None
    """The time of the write, in microseconds since 1970; None if it is missing or unreadable."""
    term: str = ""
    """A number, as text, that is greater after each change of the writer or of the holder; "" if there is none."""

    @property
    def pod_uid(self) -> str:
        """The uid of the writer's pod, "" without one."""
        return self.writer.partition(" ")[0].removeprefix("-")

    @property
    def user(self) -> str:
        """The name of the writer's user."""
        return self.writer.partition(" ")[2]


def is_constant(entries: Sequence[Entry]) -> bool:
    """True if managedFields are what the component leaves of them; a list may also look so without the component."""
    return len(entries) == 1 and entries[0].manager == _MANAGER and entries[0].time == _TIME


def find_latest_stamp(entries: Iterable[Entry]) -> int | None:
    """Return the latest time that an API server stamped, if any; the constant one is not the time of a write."""
    stamps = (one.stamp for one in entries if not one.is_fold and (one.manager, one.time) != (_MANAGER, _TIME))
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def name_annotations(suffix: str) -> list[str]:
    """Return the names of the annotations with a suffix: of the writer, of the time and of the term."""
    return [f"{NAMES}{kind}-{suffix}" for kind in _KINDS]


def find_stamp(stamps: Stamps, annotations: Mapping[str, str | None] | None, entries: Sequence[Entry]) -> Stamp | None:
    """Return the stamp of an object; None if the API server did not stamp its last write."""
    if not is_constant(entries):
        return None
    found = annotations or {}
    writer, written, term = map(found.get, name_annotations(stamps.suffix))
    return Stamp(writer or "", parse_stamp(written), term or "")


def is_writer(user: UserInfo, stamp: Stamp, stamps: Stamps) -> bool:
    """True if a user is the writer of a stamp."""
    if stamps.by_user:
        return stamp.user == user.username
    return stamp.writer == _find_writer(user)


def is_same_pod(user: UserInfo, stamp: Stamp) -> bool:
    """True if a user writes from the pod of a stamp, also where all pods of a user are one writer."""
    return stamp.pod_uid != "" and stamp.writer == _find_writer(user)


def _find_writer(user: UserInfo) -> str:
    uids = user.extra.get(_POD_UID, ())
    uid = uids[0] if len(uids) == 1 and " " not in uids[0] else "-"
    return f"{uid} {user.username}"
