"""What was stored differently than its request asked: a mutating webhook or policy changed it on its way.

An API server logs the object of a request before admission, and the one of the answer as it was stored. It also names
the mutating webhooks in annotations of the event, which no client writes: kubernetes/apiserver
`pkg/admission/plugin/webhook/mutating/dispatcher.go`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize

_PATCH: Final = "patch.webhook.admission.k8s.io/"
_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_SPEC: Final = b'"spec":'
_SHORTEST: Final = 2 * SECOND
"""A change of a time by less than that changes nothing of who holds a lease: its fraction may be cut off."""
HOLDER_IDENTITY: Final = "holderIdentity"
RENEW_TIME: Final = "renewTime"
_FIELDS: Final = {
    HOLDER_IDENTITY: "holder_identity",
    "leaseDurationSeconds": "lease_duration_seconds",
    RENEW_TIME: "renew_time",
    "acquireTime": "acquire_time",
    "leaseTransitions": "lease_transitions",
}
"""Fields that an API server stores as they are sent: not those that it drops where a feature is off."""
_TIMES: Final = frozenset({RENEW_TIME, "acquireTime"})


class MutatingWebhook(Struct, frozen=True, gc=False):
    """A webhook that changed a write, and the object that configures it."""

    name: str
    configuration: str


class Rewriting(Struct, frozen=True, gc=False):
    """One field that was stored with another value than its request had, as text; `webhooks` changed it."""

    field: str
    asked: str
    stored: str
    webhooks: tuple[MutatingWebhook, ...] = ()


class _Operation(Struct, frozen=True):
    path: str = ""


class _Patch(Struct, frozen=True):
    configuration: str = ""
    webhook: str = ""
    patch: tuple[_Operation, ...] = ()


_patches: Final = msgspec.json.Decoder(_Patch)


def is_mutated(annotations: Mapping[str, str]) -> bool:
    """Return whether a mutating webhook changed a write, as every level of a log shows."""
    return any(key.startswith(_MUTATION) and '"mutated":true' in text for key, text in annotations.items())


def may_be_rewritten(asked: Raw, stored: Raw) -> bool:
    """Return whether the text of two objects differs in what follows their metadata: nearly all are the same."""
    return bytes(asked).rpartition(_SPEC)[2] != bytes(stored).rpartition(_SPEC)[2]


def find_rewritings(asked: LeaseSpec, stored: LeaseSpec, annotations: Mapping[str, str]) -> Iterator[Rewriting]:
    """Yield every field that was stored differently than requested, with the webhooks that the log names for it."""
    for field, attribute in _FIELDS.items():
        before, after = getattr(asked, attribute), getattr(stored, attribute)
        if _is_same(field, before, after):
            continue
        webhooks = tuple(dict.fromkeys(_find_webhooks(field, annotations)))
        yield Rewriting(field, _get_text(before), _get_text(after), webhooks)


def _is_same(field: str, before: str | int | None, after: str | int | None) -> bool:
    if field not in _TIMES or not (before and after):
        return (before or "") == (after or "")
    asked, stored = (get_readable_instant(normalize(str(one))) for one in (before, after))
    return asked is None or stored is None or abs(stored - asked) < _SHORTEST


def _get_text(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _find_webhooks(field: str, annotations: Mapping[str, str]) -> Iterator[MutatingWebhook]:
    """Yield the webhooks whose patch set a field, or the whole spec."""
    paths = {"/spec", f"/spec/{field}"}
    for key, text in annotations.items():
        if not key.startswith(_PATCH):
            continue
        try:
            found = _patches.decode(text)
        except (ValueError, RecursionError):
            continue
        if any(one.path in paths for one in found.patch):
            yield MutatingWebhook(found.webhook, found.configuration)
