"""Lease and LeaseCandidate as frozen values, with the JSON types that the API server's decoder insists on.

Times stay text here: a webhook is shown years -0001 and 10000, which rules must be able to name.
Explicit null and an absent key are one value, as in Go, so every field may be None.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType, convert, field
from msgspec.inspect import is_struct_type

from webhook.kubernetes.decoding_errors import split_path
from webhook.kubernetes.managed_fields import NO_ENTRIES

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
    """The differences between versions of LeaseCandidate.

    `strategies` is the name of the field that has the strategies of the election: a list in order of preference if
    `is_list`, else one text.
    """

    strategies: str
    is_list: bool
    needs_binary_version: bool

    def make_path_of_strategy(self, index: int) -> str:
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


OLDEST_EMULATION_VERSION: Final = "OldestEmulationVersion"
"""The one strategy that Kubernetes knows itself."""


def is_foreign_strategy(strategy: str | None) -> bool:
    """Return whether a strategy is one by which no API server chooses a holder; "" and None are no strategy."""
    return bool(strategy) and strategy != OLDEST_EMULATION_VERSION


NO_METADATA = ObjectMeta()
NO_LEASE_SPEC = LeaseSpec()
NO_CANDIDATE_SPEC = LeaseCandidateSpec()


class Lease(Struct, frozen=True, gc=False):
    """A Lease, v1 or v1beta1; metadata and spec are empty if the document has none."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta = NO_METADATA
    spec: LeaseSpec = NO_LEASE_SPEC


class LeaseCandidate(Struct, frozen=True, gc=False):
    """A LeaseCandidate, converted from the JSON of its version; metadata and spec are empty if that has none."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta = NO_METADATA
    spec: LeaseCandidateSpec = NO_CANDIDATE_SPEC


# ---- the JSON of each version ---------------------------------------------------------------------------------------


class Document(Struct, frozen=True, gc=False, rename="camel"):
    """An object of any kind and version; its spec is JSON, with fields that are not known here, and with nulls."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta | None = None
    spec: dict[str, Any] | None = None


class _CandidateFields(Struct, frozen=True, gc=False, rename="camel"):
    lease_name: str | None = None
    ping_time: str | None = None
    renew_time: str | None = None
    binary_version: str | None = None
    emulation_version: str | None = None

    def add_strategies(self, strategies: tuple[str, ...], schema: CandidateSchema) -> LeaseCandidateSpec:
        """Return the spec that rules evaluate: versions differ in how they name strategies."""
        return LeaseCandidateSpec(
            self.lease_name,
            self.ping_time,
            self.renew_time,
            self.binary_version,
            self.emulation_version,
            strategies,
            schema,
        )


class _SpecV1Alpha1(_CandidateFields, frozen=True, gc=False, rename="camel"):
    preferred_strategies: list[str | None] | None = None

    def convert(self) -> LeaseCandidateSpec:
        strategies = tuple(strategy or "" for strategy in self.preferred_strategies or ())
        return self.add_strategies(strategies, PREFERRED_STRATEGIES)


class _SpecV1Alpha2(_CandidateFields, frozen=True, gc=False, rename="camel"):
    """v1beta1 is the same."""

    strategy: str | None = None

    def convert(self) -> LeaseCandidateSpec:
        return self.add_strategies((self.strategy,) if self.strategy else (), ONE_STRATEGY)


_Spec = type[LeaseSpec | _SpecV1Alpha1 | _SpecV1Alpha2]
_SPECS: Final[dict[tuple[str, str], _Spec]] = {
    ("Lease", "v1"): LeaseSpec,
    ("Lease", "v1beta1"): LeaseSpec,
    ("LeaseCandidate", "v1beta1"): _SpecV1Alpha2,
    ("LeaseCandidate", "v1alpha2"): _SpecV1Alpha2,
    ("LeaseCandidate", "v1alpha1"): _SpecV1Alpha1,
}
"""The spec of each version, the newest one of a kind first."""
_NEWEST: Final = {kind: spec for (kind, _), spec in reversed(_SPECS.items())}


def list_versions(kind: str) -> tuple[str, ...]:
    """Return the versions of a kind that are decoded and evaluated, the newest one first."""
    return tuple(version for one, version in _SPECS if one == kind)


def list_spec_fields(kind: str, version: str) -> tuple[str, ...]:
    """Return the names that `spec` may have in this version, as JSON spells them."""
    return _SPECS[kind, version].__struct_encode_fields__


class WrongTypesError(ValueError):
    """Values of wrong types: `problems` are (problem, path) in msgspec's words, the first one of each field."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__(*problems[0])
        self.problems = problems


_documents: Final = msgspec.json.Decoder(Document)


def decode_object(kind: str, version: str, text: Raw | bytes) -> Lease | LeaseCandidate:
    """Decode a Lease or LeaseCandidate; a version that is not known is read as the newest one.

    Raises WrongTypesError, msgspec.DecodeError or (nesting) RecursionError.
    """
    return _decode(kind, version, text)[1]


def decode_document(kind: str, version: str, text: Raw | bytes) -> Document:
    """Decode what `convert_document` takes, with the types of this kind and version; raises as `decode_object` does."""
    return _decode(kind, version, text)[0]


def _decode(kind: str, version: str, text: Raw | bytes) -> tuple[Document, Lease | LeaseCandidate]:
    """Return an object, with the document that it was made of."""
    try:
        document = _documents.decode(text)
        return document, convert_document(kind, version, document)
    except msgspec.ValidationError as error:
        first = split_path(error)
    problems = _find_problems(Document, _find_spec_type(kind, version), bytes(text), "") if first[1] else ()
    # If a key appears twice, the decoder refuses the first one, although only the last one counts.
    raise WrongTypesError(list(problems) or [first])


def convert_document(kind: str, version: str, document: Document) -> Lease | LeaseCandidate:
    """Return the typed object that a document is; raises msgspec.ValidationError for a spec with wrong types."""
    spec, metadata = document.spec, document.metadata or NO_METADATA
    if kind == "Lease":
        lease_spec = NO_LEASE_SPEC if spec is None else convert(spec, LeaseSpec)
        return Lease(document.api_version, document.kind, metadata, lease_spec)
    candidate_spec = convert(spec or {}, _find_spec_type(kind, version)).convert()
    return LeaseCandidate(document.api_version, document.kind, metadata, candidate_spec)


def _find_spec_type(kind: str, version: str) -> Any:  # noqa: ANN401 - a class
    return _SPECS.get((kind, version)) or _NEWEST[kind]


def _find_problems(form: type[Struct], spec: type[Struct], document: bytes, path: str) -> Iterator[tuple[str, str]]:
    """Decode each field by itself, because a decoder stops at the first wrong type."""
    pieces, decoders = _make_plan(form, spec)
    known = pieces.decode(document)
    for field_, (name, decoder, inner) in decoders.items():
        piece = getattr(known, field_)
        if not isinstance(piece, Raw):
            continue
        text = bytes(piece)
        if inner and text.startswith(b"{"):
            yield from _find_problems(inner, spec, text, f"{path}{name}.")
            continue
        try:
            decoder.decode(text)
        except msgspec.ValidationError as error:
            problem, inside = split_path(error)
            dot = "." if inside and not inside.startswith("[") else ""
            yield problem, f"{path}{name}{dot}{inside}"


@cache
def _make_plan(
    form: type[Struct], spec: type[Struct]
) -> tuple[msgspec.json.Decoder[Any], dict[str, tuple[str, msgspec.json.Decoder[Any], Any]]]:
    """Return what decodes a form into its fields as bytes, and by field its name in JSON, its decoder and its form.

    `spec` is the form of a document's spec.
    """
    fields = msgspec.structs.fields(form)
    pieces = [(one.name, Raw | UnsetType, field(default=msgspec.UNSET, name=one.encode_name)) for one in fields]
    made = msgspec.json.Decoder(msgspec.defstruct(f"{form.__name__}Pieces", pieces))
    inner = {one.name: next(filter(is_struct_type, get_args(one.type)), None) for one in fields}
    if form is Document:
        inner["spec"] = spec
    return made, {one.name: (one.encode_name, msgspec.json.Decoder(one.type), inner[one.name]) for one in fields}
