"""What was stored differently than its request asked: a mutating webhook or policy changed it on its way.

An API server logs the object of a request before admission, and the one of the answer as it was stored. It also names
the mutating webhooks in annotations of the event, which no client writes: kubernetes/apiserver
`pkg/admission/plugin/webhook/mutating/dispatcher.go`.
"""

import re
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
_BESIDE_SPEC: Final = ("/metadata/annotations", "/metadata/labels")
_SETTING: Final = frozenset({"add", "replace", "remove"})
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
    op: str = ""
    path: str = ""
    value: object = None


class _Patch(Struct, frozen=True):
    configuration: str = ""
    webhook: str = ""
    patch: tuple[_Operation, ...] = ()


class _Sent(Struct, frozen=True):
    spec: dict[str, object] = {}


_patches: Final = msgspec.json.Decoder(_Patch)
_sent: Final = msgspec.json.Decoder(_Sent)
_CALL: Final = re.compile(r"round_(\d+)_index_(\d+)")
"""The end of the name of an annotation: API servers call webhooks in this order, some of them a second time."""


def is_mutated(annotations: Mapping[str, str]) -> bool:
    """Return whether a mutating webhook changed a write, as every level of a log shows."""
    return any(_list_mutations(annotations))


def _list_mutations(annotations: Mapping[str, str]) -> Iterator[str]:
    """Yield the annotations by which mutating webhooks changed a write."""
    yield from (key for key, text in annotations.items() if key.startswith(_MUTATION) and '"mutated":true' in text)


def find_patched_spec(asked: Raw, annotations: Mapping[str, str]) -> dict[str, object] | None:
    """Return the spec of a request with what webhooks changed of it; None if the log does not show all of that."""
    mutated = list(_list_mutations(annotations))
    calls = [call for key in mutated if (call := _CALL.fullmatch(key, len(_MUTATION)))]
    if len(calls) < len(mutated):
        return None
    try:
        spec = _sent.decode(asked).spec
        for first, second in sorted((int(call[1]), int(call[2])) for call in calls):
            for operation in _patches.decode(annotations[f"{_PATCH}round_{first}_index_{second}"]).patch:
                if not _apply(operation, spec):
                    return None
    except (KeyError, ValueError, RecursionError):
        return None
    return spec


def _apply(operation: _Operation, spec: dict[str, object]) -> bool:
    """Apply one operation of a JSON patch to a spec; return whether it is one of those that are known."""
    if operation.op == "test" or (operation.op in _SETTING and operation.path.startswith(_BESIDE_SPEC)):
        return True
    before, _, name = operation.path.partition("/spec/")
    if operation.op in _SETTING and not before and name and "/" not in name:
        spec.pop(name, None)
        if operation.op != "remove":
            spec[name] = operation.value
        return True
    if operation.op == "replace" and operation.path == "/spec" and isinstance(operation.value, dict):
        spec.clear()
        spec.update(operation.value)
        return True
    return False


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
