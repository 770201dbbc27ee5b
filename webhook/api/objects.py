"""Lease and LeaseCandidate as frozen values, with the JSON types that the API server's decoder insists on.

Times stay text here: a webhook is shown years -0001 and 10000, which rules must be able to name.
Explicit null and an absent key are one value, as in Go, so every field may be None.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType, field
from msgspec.inspect import is_struct_type

from webhook.api.field import located
from webhook.api.managed_fields import NO_ENTRIES

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class OwnerReference(Struct, frozen=True, gc=False, rename="camel"):
    """One owner of an object."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, gc=False, rename="camel"):
    """`metadata`; managedFields stay undecoded bytes because broken ones never matter to a verdict."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: list[OwnerReference | None] | None = None
    finalizers: list[str | None] | None = None
    managed_fields: Raw = NO_ENTRIES


class LeaseSpec(Struct, frozen=True, gc=False, rename="camel"):
    """`spec` of a Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class LeaseCandidateSpec(Struct, frozen=True, gc=False, rename="camel"):
    """`spec` of a LeaseCandidate of any version."""

    lease_name: str | None = None
    ping_time: str | None = None
    renew_time: str | None = None
    binary_version: str | None = None
    emulation_version: str | None = None
    strategy: str | None = None


NO_METADATA = ObjectMeta()
NO_LEASE_SPEC = LeaseSpec()
NO_CANDIDATE_SPEC = LeaseCandidateSpec()


class _Stored(Struct, frozen=True, gc=False, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata_or_none: ObjectMeta | None = field(default=NO_METADATA, name="metadata")

    @property
    def metadata(self) -> ObjectMeta:
        """`metadata`, empty if the document has none."""
        return self.metadata_or_none or NO_METADATA


class Lease(_Stored, frozen=True, gc=False, rename="camel"):
    """A Lease, v1 or v1beta1."""

    spec_or_none: LeaseSpec | None = field(default=NO_LEASE_SPEC, name="spec")

    @property
    def spec(self) -> LeaseSpec:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or NO_LEASE_SPEC


class LeaseCandidate(_Stored, frozen=True, gc=False, rename="camel"):
    """A LeaseCandidate, v1alpha2 or v1beta1."""

    spec_or_none: LeaseCandidateSpec | None = field(default=NO_CANDIDATE_SPEC, name="spec")

    @property
    def spec(self) -> LeaseCandidateSpec:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or NO_CANDIDATE_SPEC


FORMS: Final[dict[str, type[Lease] | type[LeaseCandidate]]] = {"Lease": Lease, "LeaseCandidate": LeaseCandidate}
"""By kind."""


_SoundSpec: Any = msgspec.defstruct(
    "SoundLeaseSpec",
    # Defaults are not decoded, and null is refused.
    [(one.name, get_args(one.type)[0], None) for one in msgspec.structs.fields(LeaseSpec)],
    bases=(LeaseSpec,),
    frozen=True,
    gc=False,
    rename="camel",
    forbid_unknown_fields=True,
)
SoundLease: Any = msgspec.defstruct(
    "SoundLease",
    [("spec_or_none", _SoundSpec, field(default=_SoundSpec(), name="spec"))],
    bases=(Lease,),
    frozen=True,
    gc=False,
    rename="camel",
)
"""A Lease that says all that stood there: no field of spec is unknown and none was null, so what is None was absent.

Compare fields of specs, not specs: one of another class is never equal.
"""


class WrongTypesError(ValueError):
    """Values of wrong types: `problems` are (problem, path) in msgspec's words, the first one of each field."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__(*problems[0])
        self.problems = problems


_decoders: Final = {kind: msgspec.json.Decoder(form) for kind, form in FORMS.items()}


def decode_object(kind: str, document: Raw | bytes) -> Lease | LeaseCandidate:
    """Decode a Lease or LeaseCandidate; raises WrongTypesError, msgspec.DecodeError or (nesting) RecursionError."""
    try:
        return _decoders[kind].decode(document)
    except msgspec.ValidationError as error:
        first = located(error)
    # If a key appears twice, the decoder refuses the first one, although only the last one counts.
    raise WrongTypesError((list(_problems(FORMS[kind], bytes(document), "")) if first[1] else []) or [first])


def _problems(form: type[Struct], document: bytes, path: str) -> Iterator[tuple[str, str]]:
    """Decode each field by itself, because a decoder stops at the first wrong type."""
    pieces, decoders = _plan(form)
    known = pieces.decode(document)
    for field_, (name, decoder, inner) in decoders.items():
        piece = getattr(known, field_)
        if not isinstance(piece, Raw):
            continue
        text = bytes(piece)
        if inner and text.startswith(b"{"):
            yield from _problems(inner, text, f"{path}{name}.")
            continue
        try:
            decoder.decode(text)
        except msgspec.ValidationError as error:
            problem, inside = located(error)
            dot = "." if inside and not inside.startswith("[") else ""
            yield problem, f"{path}{name}{dot}{inside}"


@cache
def _plan(
    form: type[Struct],
) -> tuple[msgspec.json.Decoder[Any], dict[str, tuple[str, msgspec.json.Decoder[Any], Any]]]:
    """Return what decodes a form into its fields as bytes, and by field its name in JSON, its decoder and its form."""
    fields = msgspec.structs.fields(form)
    pieces = [(one.name, Raw | UnsetType, field(default=msgspec.UNSET, name=one.encode_name)) for one in fields]
    made = msgspec.json.Decoder(msgspec.defstruct(f"{form.__name__}Pieces", pieces))
    inner = {one.name: next(filter(is_struct_type, get_args(one.type)), None) for one in fields}
    return made, {one.name: (one.encode_name, msgspec.json.Decoder(one.type), inner[one.name]) for one in fields}
