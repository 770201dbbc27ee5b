"""Check the three renewals of docs/glossary.md against every recorded update of a Lease."""

from functools import cache

from tests.match_condition import is_reviewed
from tests.recordings import Recording, recordings
from webhook.admission.rules.change import Event, make_change
from webhook.kubernetes.request import AdmissionRequest
from webhook.kubernetes.review import decode


def is_plain(recording: Recording) -> bool:
    return not is_reviewed(recording.document()["request"])


def is_renewal(request: AdmissionRequest, now: int) -> bool:
    return request.resource == "leases" and make_change(request, now).event is Event.RENEWAL


@cache
def requests() -> tuple[tuple[Recording, AdmissionRequest], ...]:
    return tuple((recording, decode(recording.body)) for recording in recordings())


def test_every_plain_renewal_is_a_renewal() -> None:
    for recording, request in requests():
        if is_plain(recording):
            assert is_renewal(request, recording.received), recording.file


def test_every_node_heartbeat_is_in_both() -> None:
    heartbeats = [
        recording
        for recording, request in requests()
        if recording.client == "node-heartbeat" and is_renewal(request, recording.received)
    ]
    assert heartbeats
    for recording in heartbeats:
        assert is_plain(recording)
