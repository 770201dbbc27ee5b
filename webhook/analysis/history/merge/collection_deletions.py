"""Deletions of many objects in a namespace, as a deletion of each."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from webhook.analysis.inputs.items import Act, Observation


def list_deletions(request: Observation, known: Iterable[str]) -> Iterator[Observation]:
    """Yield a deletion of each object that such a request deleted; `known` are the names of what was seen there."""
    assert request.collection_deletion is not None
    known_names = dict.fromkeys(known, "")
    uids = dict(request.collection_deletion.names)
    if request.collection_deletion.is_whole:
        uids = known_names
    elif not request.collection_deletion.is_shown:
        uids = {name: uid for name, uid in uids.items() if name in known_names}
    for name, uid in uids.items():
        yield replace(request, act=Act.DELETED, name=name, uid=uid, collection_deletion=None)
