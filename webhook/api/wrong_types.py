"""Every wrong type in a document, found by decoding each field by itself: a decoder stops at the first."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, UnsetType
from msgspec.structs import fields

from webhook.api.decoder_messages import located
from webhook.api.objects import Lease, LeaseCandidate, LeaseCandidateSpec, LeaseSpec, ObjectMeta

_INNER: Final[dict[tuple[type[Struct], str], type[Struct]]] = {
    (Lease, "metadata"): ObjectMeta,
    (Lease, "spec"): LeaseSpec,
    (LeaseCandidate, "metadata"): ObjectMeta,
    (LeaseCandidate, "spec"): LeaseCandidateSpec,
}


def wrong_types(form: type[Struct], document: bytes, path: str = "") -> Iterator[tuple[str, str]]:
    """The first wrong type of each field, as (problem, path) in msgspec's words.

    Only fields that the form has are decoded, so there are at most as many problems as it has fields.

    Args:
        form: Lease or LeaseCandidate.
        document: a JSON object.
        path: where the document stands, "" or with a dot at the end.

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
            yield from wrong_types(inner, text, f"{path}{name}.")
            continue
        try:
            decoder.decode(text)
        except msgspec.ValidationError as error:
            problem, inside = located(error)
            dot = "." if inside and not inside.startswith("[") else ""
            yield problem, f"{path}{name}{dot}{inside}"


class _Plan(Struct, frozen=True):
    """How a form is decoded piece by piece: its fields as bytes, and the decoder of each."""

    pieces: msgspec.json.Decoder[Any]
    decoders: dict[str, msgspec.json.Decoder[Any]]


@cache
def _plan(form: type[Struct]) -> _Plan:
    names = {field.encode_name: field.type for field in fields(form)}
    pieces = msgspec.defstruct(f"{form.__name__}Pieces", [(name, Raw | UnsetType, msgspec.UNSET) for name in names])
    return _Plan(msgspec.json.Decoder(pieces), {name: msgspec.json.Decoder(kind) for name, kind in names.items()})
