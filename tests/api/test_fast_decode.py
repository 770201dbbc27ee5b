"""The fast path and the general decoder read the same request out of the same bytes."""

from pathlib import Path

import pytest

from tests.factories import Tweak, changed, drop, make_lease, make_review, put, to_bytes
from webhook.api import review
from webhook.api.fast_decode import lease_update

RECORDINGS = sorted(Path(__file__).parent.parent.joinpath("data", "recordings").rglob("*.json"))
UPDATE = make_review(old=make_lease(), new=make_lease(put("spec.leaseTransitions", 6)))


def general(body: bytes) -> object:
    return review._decode_any(body)


def test_every_recorded_review_reads_the_same() -> None:
    fast = 0
    for file in RECORDINGS:
        body = file.read_bytes()
        request = lease_update(body)
        assert request is None or request == general(body), file
        fast += request is not None
    assert fast > len(RECORDINGS) // 2, "most reviews take the fast path"


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("request.userInfo", None), id="no writer"),
        pytest.param(put("request.options", None), id="options null"),
        pytest.param(drop("request.options"), id="options absent"),
        pytest.param(put("request.options.fieldManager", "me"), id="options that say something"),
        pytest.param(put("request.object.spec", None), id="spec null"),
    ],
)
def test_taken_by_the_fast_path(tweak: Tweak) -> None:
    body = to_bytes(changed(UPDATE, tweak))
    assert lease_update(body) == general(body)


@pytest.mark.parametrize(
    "tweak",
    [
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
        pytest.param(put("request.object.spec.leaseTransitions", "6"), id="a wrong type"),
        pytest.param(put("request.subResource", None), id="a null that is not usual"),
        pytest.param(put("request.subResource", "status"), id="a subresource"),
    ],
)
def test_left_to_the_general_decoder(tweak: Tweak) -> None:
    assert lease_update(to_bytes(changed(UPDATE, tweak))) is None
