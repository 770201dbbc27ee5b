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

from webhook.api.decoding_errors import located
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


class CandidateSchema(Struct, frozen=True, gc=False):
    """What one version of LeaseCandidate asks for and another does not.

    `strategies` is the name of the field that has the strategies of the election: a list in order of preference if
    `is_list`, else one text.
    """

    strategies: str
    is_list: bool
    needs_binary_version: bool

    def path_of_strategy(self, index: int) -> str:
        """Return the path of one strategy, as field errors show it."""
        return f"spec.{self.strategies}[{index}]" if self.is_list else f"spec.{self.strategies}"


PREFERRED_STRATEGIES: Final = CandidateSchema("preferredStrategies", is_list=True, needs_binary_version=False)
"""v1alpha1."""
ONE_STRATEGY: Final = CandidateSchema("strategy", is_list=False, needs_binary_version=True)
"""v1alpha2 and later."""


class LeaseCandidateSpec(Struct, frozen=True, gc=False):
    """`spec` of a LeaseCandidate of any version; `strategies` are in order of preference."""

    lease_name: str | None = None
    ping_time: str | None = None
    renew_time: str | None = None
    binary_version: str | None = None
    emulation_version: str | None = None
    strategies: tuple[str, ...] = ()
    schema: CandidateSchema = ONE_STRATEGY


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


class LeaseCandidate(_Stored, frozen=True, gc=False):
    """A LeaseCandidate of any version, converted from that version's JSON."""

    spec: LeaseCandidateSpec = NO_CANDIDATE_SPEC


# ---- the JSON of each version of LeaseCandidate ---------------------------------------------------------------------


class _CandidateFields(Struct, frozen=True, gc=False, rename="camel"):
    lease_name: str | None = None
    ping_time: str | None = None
    renew_time: str | None = None
    binary_version: str | None = None
    emulation_version: str | None = None


class _SpecV1Alpha1(_CandidateFields, frozen=True, gc=False, rename="camel"):
    preferred_strategies: list[str | None] | None = None


class _SpecV1Alpha2(_CandidateFields, frozen=True, gc=False, rename="camel"):
    strategy: str | None = None


class _CandidateV1Alpha1(_Stored, frozen=True, gc=False, rename="camel"):
    spec: _SpecV1Alpha1 | None = None

    def converted(self) -> LeaseCandidate:
        spec = self.spec or _SpecV1Alpha1()
        strategies = tuple(strategy or "" for strategy in spec.preferred_strategies or ())
        return _candidate(self, spec, strategies, PREFERRED_STRATEGIES)


class _CandidateV1Alpha2(_Stored, frozen=True, gc=False, rename="camel"):
    """v1beta1 is the same."""

    spec: _SpecV1Alpha2 | None = None

    def converted(self) -> LeaseCandidate:
        spec = self.spec or _SpecV1Alpha2()
        return _candidate(self, spec, (spec.strategy,) if spec.strategy else (), ONE_STRATEGY)


def _candidate(
    stored: _Stored, spec: _CandidateFields, strategies: tuple[str, ...], schema: CandidateSchema
) -> LeaseCandidate:
    converted = LeaseCandidateSpec(
        lease_name=spec.lease_name,
        ping_time=spec.ping_time,
        renew_time=spec.renew_time,
        binary_version=spec.binary_version,
        emulation_version=spec.emulation_version,
        strategies=strategies,
        schema=schema,
    )
    return LeaseCandidate(stored.api_version, stored.kind, stored.metadata_or_none, converted)


_Form = type[Lease | _CandidateV1Alpha1 | _CandidateV1Alpha2]
_FORMS: Final[dict[tuple[str, str], _Form]] = {
    ("Lease", "v1"): Lease,
    ("Lease", "v1beta1"): Lease,
    ("LeaseCandidate", "v1beta1"): _CandidateV1Alpha2,
    ("LeaseCandidate", "v1alpha2"): _CandidateV1Alpha2,
    ("LeaseCandidate", "v1alpha1"): _CandidateV1Alpha1,
}
"""The JSON of each version, the newest one of a kind first."""
_NEWEST: Final = dict(reversed(_FORMS))


def versions_of(kind: str) -> tuple[str, ...]:
    """Return the versions of a kind that are decoded and evaluated, the newest one first."""
    return tuple(version for one, version in _FORMS if one == kind)


def spec_fields(kind: str, version: str) -> tuple[str, ...]:
    """Return the names that `spec` may have in this version, as JSON spells them."""
    spec = next(field.type for field in msgspec.structs.fields(_FORMS[kind, version]) if field.encode_name == "spec")
    return tuple(next(filter(is_struct_type, get_args(spec))).__struct_encode_fields__)


class WrongTypesError(ValueError):
    """Values of wrong types: `problems` are (problem, path) in msgspec's words, the first one of each field."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__(*problems[0])
        self.problems = problems


_decoders: Final = {form: msgspec.json.Decoder(form) for form in _FORMS.values()}


def decode_object(kind: str, version: str, document: Raw | bytes) -> Lease | LeaseCandidate:
    """Decode a Lease or LeaseCandidate; a version that is not known is read as the newest one.

    Raises WrongTypesError, msgspec.DecodeError or (nesting) RecursionError.
    """
    form = _FORMS.get((kind, version)) or _FORMS[kind, _NEWEST[kind]]
    try:
        stored = _decoders[form].decode(document)
    except msgspec.ValidationError as error:
        first = located(error)
    else:
        return stored if isinstance(stored, Lease) else stored.converted()
    # If a key appears twice, the decoder refuses the first one, although only the last one counts.
    raise WrongTypesError((list(_problems(form, bytes(document), "")) if first[1] else []) or [first])


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
