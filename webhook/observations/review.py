"""An AdmissionReview as an observation: the objects before and after the write, and who made it."""

from webhook.api.request import Operation
from webhook.api.review import ReviewError, decode
from webhook.observations.observation import Act, Foreign, Observation, Origin, Source, Unreadable, Writer
from webhook.rules.change import change_made_by
from webhook.rules.tampering import stamp_of_writer

_ACTS = {Operation.CREATE: Act.CREATED, Operation.UPDATE: Act.UPDATED, Operation.DELETE: Act.DELETED}


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
    mine = [entry for entry in change.new_entries if change.was_set.any_owned_by(entry)]
    return Observation(
        source=source,
        origin=Origin.REVIEW,
        act=act,
        kind=request.kind,
        namespace=request.namespace,
        name=request.name,
        object=request.old if act is Act.DELETED else request.new,
        old=request.old,
        at=stamp_of_writer(mine) if received is None else received,
        writer=Writer(user.username, user.pod_name) if user else None,
        is_dry_run=bool(request.options.dry_run),
        problem=str(request.object_errors[0]) if request.object_errors else "",
    )
