"""`metadata.managedFields`: which manager owns which field, and when the API server last saw the field change.

The API server stamps `time` itself, in whole seconds, whatever the client claims in renewTime. Only what rules need is
decoded. A broken list, or a broken entry, owns nothing: nothing that the API server sends is broken.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from webhook.api import micro_time

_ABSENT: Final = Raw(b"")


class _OwnedSpec(Struct, frozen=True, gc=False):
    renew_time: Raw = field(default=_ABSENT, name="f:renewTime")
    holder_identity: Raw = field(default=_ABSENT, name="f:holderIdentity")


class _Owned(Struct, frozen=True, gc=False):
    spec: _OwnedSpec | None = field(default=None, name="f:spec")


class Entry(Struct, frozen=True, gc=False):
    """One manager's entry. `time` is the text that the API server wrote; it may be absent."""

    manager: str | None = None
    time: str | None = None
    fields: _Owned | None = field(default=None, name="fieldsV1")

    @property
    def stamp(self) -> int | None:
        """`time` in microseconds since 1970; None where it is absent, zero or unreadable."""
        return stamp_of(self.time)

    @property
    def owns_spec(self) -> bool:
        """Whether the manager owns any field below `spec`."""
        return self.fields is not None and self.fields.spec is not None

    @property
    def owns_renew_time(self) -> bool:
        """Whether the manager owns `spec.renewTime`."""
        return self.fields is not None and self.fields.spec is not None and self.fields.spec.renew_time is not _ABSENT

    @property
    def owns_holder_identity(self) -> bool:
        """Whether the manager owns `spec.holderIdentity`."""
        owned = self.fields
        return owned is not None and owned.spec is not None and owned.spec.holder_identity is not _ABSENT


_entries: Final = msgspec.json.Decoder(list[Entry])
_entry: Final = msgspec.json.Decoder(Entry)
_raw_entries: Final = msgspec.json.Decoder(list[Raw])


def entries_of(managed_fields: Raw) -> list[Entry]:
    """The entries of an object, broken ones left out."""
    try:
        return _entries.decode(managed_fields)
    except msgspec.ValidationError:
        return _sound_entries(managed_fields)


def stamp_of(time: str | None) -> int | None:
    """A time of an entry in microseconds since 1970; None where it is absent, zero or unreadable."""
    if time is None:
        return None
    try:
        stamp = micro_time.parse_seconds(time)
    except ValueError:
        return None
    return None if stamp == micro_time.ZERO else stamp


def _sound_entries(managed_fields: Raw) -> list[Entry]:
    try:
        documents = _raw_entries.decode(managed_fields)
    except msgspec.ValidationError:
        return []
    entries = []
    for document in documents:
        if not bytes(document).startswith(b"{"):
            continue
        try:
            entries.append(_entry.decode(document))
        except msgspec.ValidationError:
            continue
    return entries
