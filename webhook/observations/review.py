"""An AdmissionReview as an observation: the objects before and after the write, and who made it."""

from typing import Final

import msgspec
from msgspec import Struct

from webhook.api.request import Operation
from webhook.api.review import ReviewError, decode
from webhook.observations.observation import Act, Foreign, Observation, Origin, Source, Unreadable, Writer
from webhook.rules.change import change_made_by
from webhook.rules.tampering import stamp_of_writer

_ACTS: Final = {Operation.CREATE: Act.CREATED, Operation.UPDATE: Act.UPDATED, Operation.DELETE: Act.DELETED}
_VERBS: Final = {"CreateOptions": "create", "UpdateOptions": "update", "PatchOptions": "patch"}


ADMINISTRATORS: Final = "system:masters"


class _Options(Struct, frozen=True):
    kind: object = None


class _Request(Struct, frozen=True):
    options: _Options | None = None


class _Review(Struct, frozen=True):
    request: _Request = _Request()


_options: Final = msgspec.json.Decoder(_Review)


def observation_of(data: bytes, source: Source, received: int | None) -> Observation | Foreign | Unreadable:
    """What a review says; `received` is when it came, None if nothing but its own stamps can say."""
    try:
        request = decode(data)
    except ReviewError as error:
        return Unreadable(source, error.text)
    act = _ACTS.get(request.operation)
    if request.contradiction:
        return Unreadable(source, request.contradiction)
    if act is None or request.sub_resource or not request.is_ours:
        return Foreign(source, request.kind or "no kind")
    user = request.user
    change = change_made_by(request, received or 0)
    return Observation(
        source=source,
        origin=Origin.REVIEW,
        act=act,
        kind=request.kind,
        namespace=request.namespace,
        name=request.name,
        object=request.old if act is Act.DELETED else request.new,
        old=request.old,
        at=stamp_of_writer(change.was_set.owners_among(change.new_entries)) if received is None else received,
        verb=verb_of(data, request.operation),
        writer=Writer(user.username, user.pod_name, is_administrator=ADMINISTRATORS in user.groups) if user else None,
        is_dry_run=bool(request.options.dry_run),
        problem=str(request.object_errors[0]) if request.object_errors else "",
        request=request,
    )


def verb_of(data: bytes, operation: Operation) -> str:
    """What RBAC calls the request of a review: its options have a kind of their own for each verb."""
    try:
        options = _options.decode(data).request.options or _Options()
    except msgspec.ValidationError:
        options = _Options()
    return _VERBS.get(str(options.kind), operation.lower())
