"""The decoder of sound reviews and the general one read the same request out of the same bytes."""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.factories import Document, Tweak, changed, drop, make_candidate, make_lease, make_review, put, to_bytes
from tests.recordings import recordings
from webhook.api import review
from webhook.api.review import ReviewError, decode
from webhook.rules.change import change_made_by

UPDATE = make_review(old=make_lease(), new=make_lease(put("spec.leaseTransitions", 6)))


def read(body: bytes, decoder: Any = decode) -> Any:
    """Return what a decoder reads; the structs of a sound review are types of their own, so values are compared."""
    try:
        request = decoder(body)
    except ReviewError as error:
        return error.status, error.text
    values = {name: getattr(request, name) for name in request.__struct_fields__ if name not in {"body", "is_sound"}}
    return msgspec.json.encode([values, sorted(change_made_by(request, 0).was_set.spec) if request.new else None])


def test_every_recorded_review_reads_the_same() -> None:
    bodies = [recording.body for recording in recordings()]
    assert [body for body in bodies if read(body) != read(body, review._decode_parts)] == []
    sound = [body for body in bodies if review._decode_sound(body) is not None]
    assert len(sound) > len(bodies) // 2, "most reviews are sound"


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("request.userInfo", None), id="no writer"),
        pytest.param(put("request.options", None), id="options null"),
        pytest.param(drop("request.options"), id="options absent"),
        pytest.param(put("request.options.fieldManager", "me"), id="options that say something"),
        pytest.param(put("request.options.dryRun", 5), id="options of a wrong type"),
        pytest.param(put("kind", "Review"), id="another kind of document"),
        pytest.param(put("apiVersion", "admission.k8s.io/v1beta1"), id="v1beta1"),
        pytest.param(put("request.operation", "CREATE"), id="CREATE"),
        pytest.param(put("request.resource.version", "v1beta1"), id="another version of the resource"),
        pytest.param(put("request.resource.resource", "pods"), id="another resource"),
        pytest.param(put("request.resource.group", ""), id="another group of the resource"),
        pytest.param(put("request.kind.group", ""), id="another group of the kind"),
        pytest.param(put("request.kind.version", "v1beta1"), id="another version of the kind"),
        pytest.param(put("request.kind.kind", "Pod"), id="another kind"),
        pytest.param(put("request.uid", ""), id="no uid"),
        pytest.param(put("request.uid", "u" * 257), id="a long uid"),
        pytest.param(put("request.name", ""), id="no name"),
        pytest.param(put("request.namespace", ""), id="no namespace"),
        pytest.param(drop("request.object.kind"), id="no kind in the object"),
        pytest.param(put("request.oldObject.kind", "Pod"), id="another kind in the old object"),
        pytest.param(put("request.object.apiVersion", "v1"), id="another version in the object"),
        pytest.param(put("request.oldObject.apiVersion", "v1"), id="another version in the old object"),
        pytest.param(put("request.object.metadata.name", "other"), id="another name in the object"),
        pytest.param(put("request.object.metadata.namespace", "other"), id="another namespace in the object"),
        pytest.param(put("request.object", None), id="no object"),
        pytest.param(put("request.object.metadata", None), id="no metadata in the object"),
        pytest.param(put("request.oldObject.metadata", None), id="no metadata in the old object"),
        pytest.param(put("request.object.spec", None), id="no spec in the object"),
        pytest.param(put("request.oldObject.spec", None), id="no spec in the old object"),
        pytest.param(put("request.object.spec.leaseTransitions", "6"), id="a wrong type"),
        pytest.param(put("request.subResource", None), id="a null that is not usual"),
        pytest.param(put("request.subResource", "status"), id="a subresource"),
    ],
)
def test_what_is_odd_reads_the_same(tweak: Tweak) -> None:
    body = to_bytes(changed(UPDATE, tweak))
    assert read(body) == read(body, review._decode_parts)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a document with each of its keys or positions."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from places(value)


@pytest.mark.parametrize("value", [None, 5, "", "x", [], {}], ids=repr)
@pytest.mark.parametrize(
    "document", [UPDATE, make_review(old=make_candidate(), new=make_candidate())], ids=["lease", "candidate"]
)
def test_any_value_in_any_place_reads_the_same(document: Document, value: Any) -> None:
    review_ = copy.deepcopy(document)
    for node, key in places(review_):
        before, node[key] = node[key], value
        body = to_bytes(review_)
        assert read(body) == read(body, review._decode_parts), key
        node[key] = before
