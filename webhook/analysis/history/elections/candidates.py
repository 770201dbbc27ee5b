"""What others than its own renewals do to a LeaseCandidate: its creation, deletion, and edits."""

from typing import Final

from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.inputs.items import Act, Observation
from webhook.kubernetes.objects import LeaseCandidate
from webhook.text.quoting import quote, truncate

_FIELDS: Final = {
    "lease_name": "leaseName",
    "binary_version": "binaryVersion",
    "emulation_version": "emulationVersion",
    "strategies": "strategy",
}
_MAX_NAME: Final = 80


def read_event(seen: Observation, before: LeaseCandidate | None, at: int) -> LeaseEvent | None:
    """Return what a stored write did to the candidate `before`; None if that is a renewal, or not known.

    `at` is when it was written, at the earliest if the input does not say when.
    """
    name, is_dated = truncate(seen.name, _MAX_NAME), seen.at is not None
    if seen.act is Act.DELETED and seen.is_stored:
        text = f"LeaseCandidate {name} was deleted"
        return LeaseEvent(EventKind.EDITED, at, writer=seen.writer, text=text, is_dated=is_dated, candidate=seen.name)
    if not isinstance(seen.object, LeaseCandidate) or not seen.is_stored or seen.act is Act.READ:
        return None
    if seen.act is Act.CREATED:
        text = f"LeaseCandidate {name} was created with emulationVersion "
        text += _format_value(seen.object.spec.emulation_version)
        return LeaseEvent(EventKind.CREATED, at, writer=seen.writer, text=text, is_dated=is_dated)
    if before is None:
        return None
    old, new = before.spec, seen.object.spec
    pairs = ((shown, getattr(old, field), getattr(new, field)) for field, shown in _FIELDS.items())
    changed = [f"{shown} {_format_value(was)} -> {_format_value(now)}" for shown, was, now in pairs if was != now]
    if not changed:
        return None
    text = f"LeaseCandidate {name}: {', '.join(changed)}"
    return LeaseEvent(EventKind.EDITED, at, writer=seen.writer, text=text, is_dated=is_dated)


def _format_value(value: object) -> str:
    shown = ", ".join(value) if isinstance(value, tuple) else value
    return truncate(quote(shown), _MAX_NAME) if shown else "absent"
