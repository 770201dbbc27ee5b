"""A Lease or LeaseCandidate in JSON as a typed value, or what is wrong with its types."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.decoder_messages import located, reworded
from webhook.api.objects import FORMS, Lease, LeaseCandidate
from webhook.api.wrong_types import wrong_types

_decoders: Final = {kind: msgspec.json.Decoder(form) for kind, form in FORMS.items()}


class Named(Struct, frozen=True, gc=False):
    """An object with its name; `object` is None if its types are wrong, which `problem` says."""

    namespace: str = ""
    name: str = ""
    object: Lease | LeaseCandidate | None = None
    problem: str = ""


class _Metadata(Struct, frozen=True, gc=False):
    name: object = None
    namespace: object = None


class _Spec(Struct, frozen=True, gc=False, rename="camel"):
    service_account_name: object = None


class _OnlyNamed(Struct, frozen=True, gc=False):
    metadata: _Metadata | None = None


class _Pod(Struct, frozen=True, gc=False):
    spec: _Spec | None = None


_named: Final = msgspec.json.Decoder(_OnlyNamed)
_pod: Final = msgspec.json.Decoder(_Pod)


def typed(kind: str, data: bytes | Raw) -> Named:
    """The object of one of our kinds.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it nests too deeply.

    """
    try:
        one = _decoders[kind].decode(data)
    except msgspec.ValidationError as error:
        return _mistyped(kind, bytes(data), located(error))
    metadata = one.metadata
    return Named(metadata.namespace or "", metadata.name or "", one)


def names_of(data: bytes) -> tuple[str, str]:
    """The namespace and name of any object, "" if it has none."""
    try:
        metadata = _named.decode(data).metadata or _Metadata()
    except msgspec.ValidationError:
        metadata = _Metadata()
    return _text(metadata.namespace), _text(metadata.name)


def service_account_of(pod: bytes) -> str:
    """The name of the service account that a pod runs as, "" if it does not say."""
    try:
        spec = _pod.decode(pod).spec or _Spec()
    except msgspec.ValidationError:
        spec = _Spec()
    return _text(spec.service_account_name)


def _mistyped(kind: str, data: bytes, first: tuple[str, str]) -> Named:
    problem, path = next(iter(wrong_types(FORMS[kind], data)), first)
    return Named(*names_of(data), None, f"{path or 'the object'} {reworded(problem) or problem}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
