"""The drawing of the four renewals in docs/glossary.md is true of every recorded update of a Lease."""

from functools import cache

import pytest

from tests.factories import changed, make_lease, make_review, put, to_bytes
from tests.match_condition import of_update, why_reviewed
from tests.recordings import Recording, recordings
from webhook.api.request import AdmissionRequest
from webhook.api.review import decode
from webhook.rules.change import change_made_by
from webhook.rules.events import Event
from webhook.rules.fast_renewal import is_fast_renewal
from webhook.rules.limits import DEFAULT_LIMITS


def is_plain(recording: Recording) -> bool:
    return why_reviewed(recording.document()["request"]) is None


def is_renewal(request: AdmissionRequest, now: int) -> bool:
    return request.resource == "leases" and change_made_by(request, now).event is Event.RENEWAL


def is_fast(request: AdmissionRequest, now: int) -> bool:
    return is_fast_renewal(request, now, DEFAULT_LIMITS, None)


@cache
def requests() -> tuple[tuple[Recording, AdmissionRequest], ...]:
    return tuple((recording, decode(recording.body)) for recording in recordings())


def test_every_plain_renewal_and_every_fast_one_is_a_renewal() -> None:
    for recording, request in requests():
        if is_plain(recording) or is_fast(request, recording.received):
            assert is_renewal(request, recording.received), recording.file


def test_every_node_heartbeat_is_in_all_of_them() -> None:
    heartbeats = [
        (recording, request)
        for recording, request in requests()
        if recording.client == "node-heartbeat" and is_renewal(request, recording.received)
    ]
    assert heartbeats
    for recording, request in heartbeats:
        assert is_plain(recording)
        assert is_fast(request, recording.received)


@pytest.mark.parametrize(
    ("stored", "is_dropped", "takes_the_fast_path"),
    [
        pytest.param(put("metadata.labels", {"app": "checkout"}), True, False, id="with a label: plain, not fast"),
        pytest.param(
            put("spec.renewTime", "2025-11-18T11:00:00.000000Z"), False, True, id="after two days: fast, not plain"
        ),
        pytest.param(put("metadata.generation", None), True, True, id="as usual: both"),
    ],
)
def test_neither_contains_the_other(stored: object, is_dropped: bool, takes_the_fast_path: bool) -> None:
    assert callable(stored)
    old = make_lease(stored)
    new = changed(old, put("spec.renewTime", "2025-11-20T12:00:02.000000Z"))
    request = decode(to_bytes(make_review(new=new, old=old)))
    now = 1_763_640_002_000_000
    assert is_renewal(request, now)
    assert (of_update(new, old) is None) is is_dropped
    assert is_fast(request, now) is takes_the_fast_path
