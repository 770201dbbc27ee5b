"""A LeaseCandidate whose spec has a field of another version: an unknown field there, whatever its type."""

from typing import Any, Final

import msgspec
from msgspec import Raw

from webhook.api.objects import NO_METADATA, LeaseCandidate, LeaseCandidateSpec, ObjectMeta

FOREIGN_FIELD: Final = {
    "v1alpha1": "strategy",
    "v1alpha2": "preferredStrategies",
    "v1beta1": "preferredStrategies",
}
"""The field of LeaseCandidateSpec that each version does not have."""


def _decoder_without(foreign: str) -> msgspec.json.Decoder[Any]:
    fields = [
        (field.name, field.type, field.default)
        for field in msgspec.structs.fields(LeaseCandidateSpec)
        if field.encode_name != foreign
    ]
    spec = msgspec.defstruct("LeaseCandidateSpec", fields, frozen=True, gc=False, rename="camel")
    document = msgspec.defstruct(
        "LeaseCandidate",
        [
            ("api_version", str | None, None),
            ("kind", str | None, None),
            ("metadata", ObjectMeta | None, NO_METADATA),
            ("spec", spec | None, None),
        ],
        frozen=True,
        gc=False,
        rename="camel",
    )
    return msgspec.json.Decoder(document)


_decoders: Final = {foreign: _decoder_without(foreign) for foreign in set(FOREIGN_FIELD.values())}


def decode_without(foreign: str, raw: Raw) -> LeaseCandidate:
    """The candidate without one field of its spec.

    Raises:
        msgspec.ValidationError: another field is of a wrong type.

    """
    document = _decoders[foreign].decode(raw)
    spec = LeaseCandidateSpec(**msgspec.structs.asdict(document.spec)) if document.spec else None
    return LeaseCandidate(document.api_version, document.kind, document.metadata, spec)
