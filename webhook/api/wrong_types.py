"""Every wrong type in a document: a decoder stops at the first, and a person would correct one after the other."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, UnsetType
from msgspec.structs import fields

from webhook.api.objects import Lease, LeaseCandidate, LeaseCandidateSpec, LeaseSpec, ObjectMeta

_AT: Final = " - at `$"
_INNER: Final[dict[tuple[type[Struct], str], type[Struct]]] = {
    (Lease, "metadata"): ObjectMeta,
    (Lease, "spec"): LeaseSpec,
    (LeaseCandidate, "metadata"): ObjectMeta,
    (LeaseCandidate, "spec"): LeaseCandidateSpec,
}


def wrong_types(form: type[Struct], document: bytes, path: str = "") -> Iterator[str]:
    """The first wrong type of each field, as what msgspec says about it.

    Only fields that the form has are looked at, so there are at most as many errors as it has fields.

    Args:
        form: Lease or LeaseCandidate.
        document: a JSON object.
        path: where it stands, with a dot before each step.

    """
    plan = _plan(form)
    pieces = plan.pieces.decode(document)
    for name, decoder in plan.decoders.items():
        piece = getattr(pieces, name)
        if not isinstance(piece, Raw):
            continue
        text = bytes(piece)
        inner = _INNER.get((form, name))
        if inner and text.startswith(b"{"):
            yield from wrong_types(inner, text, f"{path}.{name}")
            continue
        try:
            decoder.decode(text)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(_AT)
            yield f"{what}{_AT}{path}.{name}{where.rstrip('`')}`"


class _Plan(Struct, frozen=True):
    """How a form is taken apart: its fields as bytes, and the decoder of each."""

    pieces: msgspec.json.Decoder[Any]
    decoders: dict[str, msgspec.json.Decoder[Any]]


@cache
def _plan(form: type[Struct]) -> _Plan:
    names = {field.encode_name: field.type for field in fields(form)}
    pieces = msgspec.defstruct(f"{form.__name__}Pieces", [(name, Raw | UnsetType, msgspec.UNSET) for name in names])
    return _Plan(msgspec.json.Decoder(pieces), {name: msgspec.json.Decoder(kind) for name, kind in names.items()})
