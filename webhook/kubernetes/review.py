"""The bytes of an AdmissionReview become a frozen request, or a `ReviewError`.

There are two ways to refuse: a review without a readable uid is a `ReviewError` (an HTTP 4xx, so that failurePolicy
decides); a review with a uid whose request contradicts itself is a request with `contradiction` set.

No body costs more than a second or 256 MiB. An API server takes requests of 3 MiB and stores objects of 1.5 MiB. Its
reviews grow beyond twice that only because Go writes `<`, `>`, `&` and control characters as six bytes. So a review may
be long, but it cannot have many values.
"""

import codecs
import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import asdict, replace

from webhook.kubernetes.decoding_errors import OVERSIZED_NUMBERS, explain_problem, split_path
from webhook.kubernetes.field import FieldError, type_invalid
from webhook.kubernetes.managed_fields import count_of, truncate_review
from webhook.kubernetes.objects import (
    NO_METADATA,
    Document,
    Lease,
    LeaseCandidate,
    WrongTypesError,
    convert_document,
    decode_document,
)
from webhook.kubernetes.request import (
    GROUP,
    KIND_OF,
    MAX_REQUEST,
    NO_OPTIONS,
    NO_SPECS,
    NULL,
    VERSIONS_OF,
    AdmissionRequest,
    Operation,
    Options,
    Specs,
    decode_user,
)

VALIDATE: Final = "/validate"
REVIEW_PATH: Final = re.compile(r"/validate(-coordination-k8s-io-v[0-9]+((alpha|beta)[0-9]+)?-(lease|leasecandidate))?")
"""The HTTP paths at which reviews are answered: a short one, and controller-runtime's for each version and kind."""
REVIEW_VERSIONS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
MAX_UID: Final = 256
_ABSENT: Final = Raw(b"")

_KIND: Final = "AdmissionReview"
OPENING: Final = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1'
"""How an API server begins a review, v1 or v1beta1: it writes the fields in this order and without white space."""

MAX_TOKENS: Final = 1_500_000
"""Strings, commas and opening brackets of one object. A stored object of 1.5 MiB has fewer: an owner reference of
one-letter texts, which has most of them for its size, takes 14 bytes in etcd and has 13."""

MAX_STORED_ENTRIES: Final = 50_000
"""Entries of managedFields of one object. A stored object of 1.5 MiB has fewer: an entry that an API server keeps takes
35 bytes in etcd, for operation, fieldsType, a manager of its own and a set of fields."""

MAX_TOKENS_OF_ENTRIES: Final = 800_000
"""The same as MAX_TOKENS for managedFields of one object. A stored object has fewer: a field takes 8 bytes in etcd and
has three, an entry takes 35 and has 13."""

MAX_STORED: Final = 1_572_864
"""Bytes of an object in etcd (`--max-request-bytes`), and so the most escapes that its JSON can have."""

MAX_JSON: Final = 4 * MAX_STORED
"""Bytes of an object as JSON in which each escape counts as one. A stored object has fewer: an owner reference of
one-letter texts, which grows most, takes 14 bytes in etcd and 51 here."""

_ESCAPE: Final = 6
"""Bytes of the longest escape, such as `\\u003c`."""

_PIECE: Final = 1024 * 1024
_TOKENS_A_STEP: Final = 1000
_TOKENS: Final = re.compile(rb'(?:[^",{\[]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[,{\[])){%d}' % _TOKENS_A_STEP, re.DOTALL)


class ReviewError(Exception):
    """The body is not a review that can be answered.

    `status` is the HTTP status, `text` one plain line; `user` is the writer of a body that no API server sends.
    """

    def __init__(self, status: int, text: str, user: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.user = user


def decode(body: bytes) -> AdmissionRequest:
    """Read one AdmissionReview, v1 or v1beta1; raises ReviewError for anything else, and without a usable uid."""
    if not body.isascii() and not is_utf8(body):
        raise ReviewError(400, "the body is not UTF-8")
    try:
        return _decode_whole(body) if len(body) <= MAX_REQUEST else _decode_large(body)
    except RecursionError:
        return decode(_truncate(body))


def _decode_large(body: bytes) -> AdmissionRequest:
    """Decode a review that is larger than most writes; raises RecursionError."""
    if not may_be_a_review(len(body), body):
        raise ReviewError(413, "a body of this size must begin as an API server begins a review")
    if is_more_than(body, 2):
        return _make_contradictory_request(body, _TOO_MUCH)
    request = _decode_parts(body)
    if any(one and _has_too_many_fields(one.metadata.managed_fields) for one in (request.new, request.old)):
        return _make_contradictory_request(body, "managedFields hold more than a stored object can have")
    return request


_TOO_MUCH: Final = "the review holds more than two stored objects can have"


def _make_contradictory_request(body: bytes, contradiction: str) -> AdmissionRequest:
    return replace(read_uid(body), contradiction=contradiction)


def _make_request_without_content(uid: str, api_version: str, contradiction: str = "") -> AdmissionRequest:
    return AdmissionRequest(uid, api_version=api_version, contradiction=contradiction)


def _decode_whole(body: bytes) -> AdmissionRequest:
    """Decode a review in one pass, and in parts what is refused as a whole; raises RecursionError."""
    try:
        review = _review.decode(body)
        if review.kind != _KIND or review.api_version not in REVIEW_VERSIONS:
            raise ReviewError(*_NOT_A_REVIEW)
        return _make_request(review.request, review.api_version, body, [])
    except msgspec.DecodeError:
        return _decode_parts(body)


def _decode_parts(body: bytes) -> AdmissionRequest:
    """Decode a review part by part, so that each thing that is wrong is found; raises RecursionError.

    A body with lone surrogates is read as Go reads it.
    """
    envelope = _open_envelope(body)
    try:
        wire = _parts.decode(envelope.request)
    except msgspec.ValidationError as error:
        field = split_path(error)[1].partition(".")[0]
        contradiction = envelope.surrogates or f"request.{field} has a type that no API server sends"
        return _make_request_without_content(envelope.uid, envelope.api_version, contradiction)
    parts = wire.object, wire.old_object, wire.options
    if len(body) > MAX_REQUEST and any(is_more_than(bytes(part), 1) for part in parts):
        return _make_request_without_content(wire.uid, envelope.api_version, _TOO_MUCH)
    errors: list[FieldError] = []
    request = _decode_parts_of_request(wire, errors)
    return _make_request(request, envelope.api_version, envelope.body, errors, envelope.surrogates)


def _truncate(body: bytes) -> bytes:
    """Return a body without what nests too deeply. Only managedFields nest freely in a Lease."""
    truncated = truncate_review(body)
    if len(truncated) == len(body):
        # Operators want to know who sends what nests elsewhere.
        named = _USERNAME.search(body)
        raise ReviewError(400, "the body is nested too deeply", named[1].decode() if named else "")
    return truncated


_USERNAME: Final = re.compile(rb'"userInfo"\s*:\s*\{\s*"username"\s*:\s*"([^"\\]{1,256})"')


_NOT_A_REVIEW: Final = 400, "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1"


# ---- what a body may cost -------------------------------------------------------------------------------------------


def may_be_a_review(size: int, beginning: bytes | bytearray) -> bool:
    """Return true if a body of so many bytes that begins like this may be a review.

    A body of up to MAX_REQUEST may have any form. A longer one begins as an API server writes it; of a beginning
    that is shorter than OPENING only that part is compared.
    """
    return size <= MAX_REQUEST or OPENING.startswith(bytes(beginning[: len(OPENING)]))


def is_more_than(text: bytes, objects: int) -> bool:
    """Return true if a text is longer, or has more escapes or tokens, than so many stored objects can have as JSON."""
    # A run of backslashes is made of escaped ones, and one of another character if it is odd.
    escapes = text.count(b"\\") - text.count(b"\\\\")
    return (
        escapes > objects * MAX_STORED
        or len(text) - (_ESCAPE - 1) * escapes > objects * MAX_JSON
        or _has_more_tokens(text, objects * MAX_TOKENS)
    )


def _has_too_many_fields(managed_fields: Raw) -> bool:
    if count_of(managed_fields) > MAX_STORED_ENTRIES:
        return True
    return _has_more_tokens(bytes(managed_fields), MAX_TOKENS_OF_ENTRIES)


def _has_more_tokens(text: bytes, most: int) -> bool:
    """Nothing is allocated for a token, and the count ends at the limit; what stands in strings does not count."""
    if text.count(b",") + text.count(b"{") + text.count(b"[") + text.count(b'"') // 2 <= most:
        return False
    end, left = 0, most // _TOKENS_A_STEP
    while left and (found := _TOKENS.match(text, end)):
        end, left = found.end(), left - 1
    return not left


def is_utf8(body: bytes) -> bool:
    """Return true for UTF-8; it is decoded in pieces, because one rare character makes a text four times as large."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _PIECE):
            decoder.decode(body[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


_HEX: Final = rb"[0-9a-fA-F]{2}"
_UP_TO_A_LONE_SURROGATE: Final = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|\\u(?![dD][89a-fA-F])|\\[^u])*+"
    rb"(?=\\u[dD][89a-fA-F]" + _HEX + rb")"
)
_REPLACEMENT: Final = b"\\ufffd"
"""As long as what it replaces, so that all offsets stay the same."""


def replace_lone_surrogates(document: bytes) -> bytes | None:
    """Return the document with U+FFFD for each escaped half of a surrogate pair, as Go reads it; None without one."""
    replaced, end = bytearray(document), 0
    while found := _UP_TO_A_LONE_SURROGATE.match(document, end):
        start = found.end()
        end = start + len(_REPLACEMENT)
        replaced[start:end] = _REPLACEMENT
    return bytes(replaced) if end else None


# ---- the wire form --------------------------------------------------------------------------------------------------


_Uid = Annotated[str, Meta(min_length=1, max_length=MAX_UID)]


class _Kind(Struct, frozen=True, gc=False):
    group: str | None = None
    version: str | None = None
    kind: str | None = None


class _Resource(Struct, frozen=True, gc=False):
    group: str | None = None
    version: str | None = None
    resource: str | None = None


class _RequestFields(Struct, frozen=True, gc=False, rename="camel"):
    uid: _Uid
    kind: _Kind | None = None
    resource: _Resource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str | None = None
    user_info: Raw = NULL
    options: Raw = NULL


class _Request(_RequestFields, frozen=True, gc=False, rename="camel"):
    object: Document | None = None
    old_object: Document | None = None


class _RequestInParts(_RequestFields, frozen=True, gc=False, rename="camel"):
    object: Raw = NULL
    old_object: Raw = NULL


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    api_version: str
    request: _Request


_review: Final = msgspec.json.Decoder(_Review)
_parts: Final = msgspec.json.Decoder(_RequestInParts)
_options: Final = msgspec.json.Decoder(Options | None)

_OPERATIONS: Final = {operation.value: operation for operation in Operation}
_CREATE, _DELETE, _CONNECT = Operation.CREATE, Operation.DELETE, Operation.CONNECT
_USUAL_OPTIONS: Final = frozenset(
    b'{"kind":"%bOptions","apiVersion":"meta.k8s.io/v1"}' % verb for verb in (b"Create", b"Update", b"Delete")
)
"""Empty options, as an API server writes them."""

_EVALUATED: Final = frozenset(
    (_Resource(GROUP, version, resource), _Kind(GROUP, version, KIND_OF[resource]))
    for resource, versions in VERSIONS_OF.items()
    for version in versions
)
"""The pairs of resource and kind that are decoded and evaluated."""

_VERSION_LEFT_OUT: Final = frozenset({None, "", "/", f"{GROUP}/"})
"""An apiVersion without a version, for which the API server takes that of the request."""


def _make_request(
    wire: _Request, api_version: str, body: bytes, errors: list[FieldError], surrogates: str = ""
) -> AdmissionRequest:
    """Return the request with typed objects, or with its contradiction, which is `surrogates` if that is not "".

    An object may be missing if there are `errors`. Raises msgspec.ValidationError for a wrong type in a spec.
    """
    uid, operation, resource, kind = wire.uid, _OPERATIONS.get(wire.operation or ""), wire.resource, wire.kind
    if operation is None:
        return _make_request_without_content(
            uid, api_version, surrogates or "request.operation must be CREATE, UPDATE, DELETE or CONNECT"
        )
    if resource is None or kind is None or not resource.resource or not kind.kind:
        return _make_request_without_content(
            uid, api_version, surrogates or "request.resource and request.kind must be set"
        )
    new = old = None
    specs, options, contradiction = NO_SPECS, NO_OPTIONS, ""
    if (resource, kind) in _EVALUATED:
        # Neither resource has subresources or CONNECT, so the rest of such a request is not evaluated.
        if operation is not _CONNECT and not wire.sub_resource:
            new_document = None if operation is _DELETE else wire.object
            old_document = None if operation is _CREATE else wire.old_object
            new, old, specs = _convert_objects(new_document, old_document, kind.kind, resource.version or "")
            if new is None and operation is not _DELETE and not errors:
                contradiction = f"{operation} needs request.object"
            elif old is None and operation is not _CREATE and not errors:
                contradiction = f"{operation} needs request.oldObject"
            options = NO_OPTIONS if bytes(wire.options) in _USUAL_OPTIONS else _read_options(wire.options, errors)
    elif operation is not _CONNECT and not wire.sub_resource:
        contradiction = _find_contradiction_of_kind(resource, kind)
    subject = old if new is None else new
    metadata = NO_METADATA if subject is None else subject.metadata
    return AdmissionRequest(
        uid,
        operation,
        resource.resource,
        kind.kind,
        resource.version or "",
        resource.group or "",
        wire.sub_resource or "",
        wire.namespace or metadata.namespace or "",
        wire.name or metadata.name or "",
        decode_user(wire.user_info),
        new,
        old,
        specs,
        options,
        tuple(errors),
        surrogates or contradiction or _find_contradiction_of_objects(wire, kind.kind, resource.version, new, old),
        api_version,
        body,
    )


Content = Lease | LeaseCandidate | None


def _convert_objects(
    new: Document | None, old: Document | None, kind: str, version: str
) -> tuple[Content, Content, Specs]:
    """Return both objects, and their specs as JSON."""
    return (
        None if new is None else convert_document(kind, version, new),
        None if old is None else convert_document(kind, version, old),
        ({} if new is None else new.spec or {}, {} if old is None else old.spec or {}),
    )


def _find_contradiction_of_kind(resource: _Resource, kind: _Kind) -> str:
    """Return what is contradictory about this resource and this kind in one request, or ""."""
    ours = KIND_OF.get(resource.resource or "") if resource.group == GROUP else None
    if ours is None and not (kind.group == GROUP and kind.kind in KIND_OF.values()):
        return ""
    if ours != kind.kind or resource.group != kind.group or resource.version != kind.version:
        return "request.resource and request.kind must name the same thing"
    return ""


def _find_contradiction_of_objects(
    wire: _RequestFields, kind: str, version: str | None, new: Content, old: Content
) -> str:
    """Return how the objects contradict the request, or ""; what an object leaves out is taken from the request."""
    api_version = f"{GROUP}/{version}"
    for role, document in (("object", new), ("oldObject", old)):
        if document is None:
            continue
        if document.kind and document.kind != kind:
            return f"{role}.kind must be the kind that the request names"
        if document.api_version != api_version and document.api_version not in _VERSION_LEFT_OUT:
            return f"{role}.apiVersion must be the group and version that the request names"
        if document is old and new is not None:
            continue
        metadata = document.metadata
        if wire.namespace and metadata.namespace and metadata.namespace != wire.namespace:
            return f"{role}.metadata.namespace must be the namespace that the request names"
        if wire.name and metadata.name and metadata.name != wire.name:
            return f"{role}.metadata.name must be the name that the request names"
    return ""


def _decode_parts_of_request(parts: _RequestInParts, errors: list[FieldError]) -> _Request:
    """Return the request with its objects decoded, those that its operation has; one with wrong types is left out.

    Each field of a wrong type is an error.
    """
    written = stored = None
    if (parts.resource, parts.kind) in _EVALUATED and parts.operation != _CONNECT and not parts.sub_resource:
        assert parts.resource is not None
        assert parts.kind is not None
        kind, version = parts.kind.kind or "", parts.resource.version or ""
        if parts.operation != _DELETE:
            written = _decode_document(parts.object, kind, version, "", errors)
        if parts.operation != _CREATE:
            # That object is missing comes before what is wrong with oldObject.
            is_missing = parts.operation != _DELETE and written is None and not errors
            stored = _decode_document(parts.old_object, kind, version, "oldObject", [] if is_missing else errors)
    return _Request(**{**asdict(parts), "object": written, "old_object": stored})


def _decode_document(value: Raw, kind: str, version: str, role: str, errors: list[FieldError]) -> Document | None:
    """Return an object; None without an error for null, and with an error for each field of a wrong type."""
    if bytes(memoryview(value)[:1]) != b"{":
        return None
    try:
        return decode_document(kind, version, value)
    except WrongTypesError as error:
        errors.extend(_make_type_error(problem, path, role) for problem, path in error.problems)
        return None


def _make_type_error(problem: str, path: str, role: str) -> FieldError:
    if problem in OVERSIZED_NUMBERS:
        raise ReviewError(400, "the body has a number that no API server sends")
    return type_invalid(
        f"{role}.{path}".strip(".") or "object", explain_problem(problem) or "is not of the type that the API has"
    )


def _read_options(raw: Raw, errors: list[FieldError]) -> Options:
    try:
        options = _options.decode(raw)
    except msgspec.ValidationError as error:
        errors.append(_make_type_error(*split_path(error), "options"))
        return NO_OPTIONS
    return NO_OPTIONS if options is None or options == NO_OPTIONS else options


# ---- what is around a request --------------------------------------------------------------------------------------


class _Envelope(Struct, frozen=True, gc=False):
    """A body and its request; `surrogates` is the contradiction if it is not the body that was sent."""

    uid: str
    api_version: str
    body: bytes
    request: Raw
    surrogates: str


class _LooseRequest(Struct, frozen=True, gc=False):
    uid: Raw = _ABSENT


class _LooseReview(Struct, frozen=True, gc=False, rename="camel"):
    kind: Raw = _ABSENT
    api_version: Raw = _ABSENT
    request: Raw = _ABSENT


_loose_review: Final = msgspec.json.Decoder(_LooseReview)
_loose_request: Final = msgspec.json.Decoder(_LooseRequest)
_string: Final = msgspec.json.Decoder(str)
_BEGINNING: Final = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":"(?P<version>admission\.k8s\.io/v1(?:beta1)?)",'
    rb'"request":\{"uid":(?P<uid>"[!#-\[\]-~]{1,256}")'
)
"""How an API server begins a review, up to a uid without escapes."""


def read_uid(body: bytes) -> AdmissionRequest:
    """Return the request with its uid and the review's apiVersion only; raises ReviewError as `decode` does.

    What an API server sends is read as far as its uid, so the size, depth and content of the rest do not matter.
    """
    found = _BEGINNING.match(body)
    if found:
        return _make_request_without_content(_string.decode(found["uid"]), found["version"].decode())
    try:
        envelope = _open_envelope(body)
    except RecursionError:
        return read_uid(_truncate(body))
    return _make_request_without_content(envelope.uid, envelope.api_version)


def _open_envelope(body: bytes) -> _Envelope:
    """Return what is around a request, which is not decoded; raises ReviewError, or RecursionError."""
    try:
        review = _loose_review.decode(body)
    except msgspec.ValidationError:
        raise ReviewError(*_NOT_A_REVIEW) from None
    except msgspec.DecodeError:
        # An API server never sends a lone surrogate, so it is a contradiction; the rest is read as Go reads it.
        replaced = replace_lone_surrogates(body) if len(body) <= MAX_REQUEST else None
        if replaced is None:
            raise ReviewError(400, "the body is not JSON") from None
        surrogates = "the review contains an escaped lone surrogate, which no API server sends"
        return replace(_open_envelope(replaced), surrogates=surrogates)
    api_version = _decode_text(review.api_version)
    if _decode_text(review.kind) != _KIND or api_version not in REVIEW_VERSIONS:
        raise ReviewError(*_NOT_A_REVIEW)
    try:
        uid = _decode_text(_loose_request.decode(review.request).uid)
    except msgspec.DecodeError:
        raise ReviewError(400, "the review has no request") from None
    if not uid:
        raise ReviewError(400, "the request has no uid")
    if len(uid) > MAX_UID:
        raise ReviewError(400, f"the uid of the request is longer than {MAX_UID} characters")
    return _Envelope(uid, api_version, body, review.request, "")


def _decode_text(raw: Raw) -> str:
    """Return a string; "" for anything else."""
    try:
        return _string.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
