"""The writes of recorded clients as an API server sends them where it stamps writers: none of them is denied."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import msgspec
import pytest

from tests.evidence.stamping import SUFFIX, WRITER, annotations_of, stamped
from tests.evidence.stored_lease import Lease, lease_of
from tests.recordings import Recording, recordings
from webhook.admission.policy.parse import parse
from webhook.admission.rules.change import NODE_LEASES
from webhook.server.reviewer import respond

CLIENTS = sorted(
    {PurePath(one.file).parent.as_posix() for one in recordings() if not one.by_person} - {"1.36.3/node-heartbeat"}
)
ADOPTIONS = {"1.36.3/cloudnative-pg/13-update-untouched.json"}
"""Writes of operators that set the owner of a lease which another one holds: a binding has to list them."""

ADMINISTRATORS = {"admin", "system:apiserver"}


def writes(client: str) -> Iterator[tuple[Recording, dict[str, Any]]]:
    """The requests of one client about Leases, in order."""
    for recording in recordings():
        request = recording.document()["request"]
        is_lease = request["resource"]["resource"] == "leases" and request["namespace"] != NODE_LEASES
        if PurePath(recording.file).parent.as_posix() == client and is_lease and request["operation"] != "DELETE":
            yield recording, request


def state_before(known: Lease | None, request: dict[str, Any], last: dict[str, Any]) -> Lease | None:
    """Return the stored leases; renewals that were not recorded are of the last writer, or of who writes now."""
    if request["operation"] == "CREATE":
        return None
    old = lease_of(request["oldObject"])
    if known is not None and known.spec == old.spec:
        return known
    is_own = known is None or known.holder != old.holder
    return stamped(known, old, request["userInfo"] if is_own else last)


@pytest.mark.parametrize("client", CLIENTS)
def test_no_honest_write_is_denied_where_writers_are_stamped(client: str) -> None:
    stored: dict[str, tuple[Lease, dict[str, Any]]] = {}
    for recording, request in writes(client):
        policy = f"{{suffix: {SUFFIX}, namespaces: [{request['namespace']}]}}"
        strict = parse(f"apiVersion: lease-webhook/v1\npreset: strict\nstamps: [{policy}]\n")
        known, last = stored.get(request["name"], (None, {}))
        old = state_before(known, request, last)
        new = stamped(old, lease_of(request["object"]), request["userInfo"])
        review = recording.document()
        review["request"]["object"] = msgspec.Raw(new.encode())
        review["request"]["oldObject"] = msgspec.Raw(b"null" if old is None else old.encode())
        reply = respond(msgspec.json.encode(review), strict, recording.received)
        assert reply.verdict is not None
        if recording.file in ADOPTIONS:
            assert {one.rule for one in reply.verdict.findings} == {"owner-reference-added", "foreign-writer"}
            continue
        assert reply.verdict.allowed, (recording.file, reply.verdict.message)
        assert not {one.rule for one in reply.verdict.findings} & {"foreign-writer", "renewal-stamp-tampered"}
        assert annotations_of(new)[WRITER] or request["userInfo"]["username"] in ADMINISTRATORS
        stored[request["name"]] = new, request["userInfo"]
    assert stored
