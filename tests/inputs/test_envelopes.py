"""`why` says of an audit log in an envelope what it says of the log itself; a hostile envelope costs itself alone."""

import gzip
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.envelopes import ENVELOPES, FOLDER, INCIDENT, recorded, wrapped
from tests.factories import Document
from tests.history.observing import observe_all
from tests.incidents import at_metadata, incident
from tests.inputs.reading import read
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs import envelopes
from webhook.analysis.inputs.items import InputKind, Item, LogEnd, Observation, Unreadable

GOOGLE = "google-cloud-logging.json"
EVENT = recorded()[0]


def account(data: bytes) -> Document:
    histories = ClusterHistory()
    observe_all(histories, list(read("in", [data])))
    assert histories.bounds.until is not None
    return make_account_json(make_account(histories, histories.leases[incident(INCIDENT).key], histories.bounds.until))


@pytest.mark.parametrize("name", sorted(set(ENVELOPES) - {GOOGLE}))
def test_an_envelope_changes_no_answer(name: str) -> None:
    log = "\n".join(recorded()).encode()
    assert account((FOLDER / f"{name}.gz").read_bytes()) == account(log)


@pytest.mark.parametrize("name", sorted(set(ENVELOPES) - {GOOGLE}))
def test_an_envelope_changes_no_answer_at_level_metadata(name: str) -> None:
    log = at_metadata("\n".join(recorded()).encode())
    assert account(wrapped(name, log.decode().splitlines())) == account(log)


def test_the_stored_envelopes_are_those_that_are_made() -> None:
    for name in ENVELOPES:
        assert gzip.decompress((FOLDER / f"{name}.gz").read_bytes()) == wrapped(name, recorded()), name


def test_google_shows_the_holders_and_the_times() -> None:
    answer, expected = account((FOLDER / f"{GOOGLE}.gz").read_bytes()), account("\n".join(recorded()).encode())
    assert [one["holder"] for one in answer["tenures"]] == [one["holder"] for one in expected["tenures"]]
    for key in ("state", "holder", "last_renewal", "takeable_at", "changes", "leaderless_seconds"):
        assert answer.get(key) == expected.get(key), key


def test_each_key_of_a_service_has_one_place_in_the_order() -> None:
    hint = "KEYS_IN_ORDER of webhook/analysis/inputs/envelopes.py says which of an object's keys is read"
    assert sorted(envelopes.KEYS_IN_ORDER) == sorted({key for one in envelopes.SERVICES for key in one.keys}), hint


@pytest.mark.parametrize("key", envelopes.KEYS_IN_ORDER)
def test_each_key_of_a_service_is_needed_for_an_example(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [wrapped(name, recorded()[:2]) for name in ENVELOPES]
    before = [list(read("in", [data])) for data in examples]
    monkeypatch.setattr(envelopes, "KEYS_IN_ORDER", [one for one in envelopes.KEYS_IN_ORDER if one != key])
    assert [list(read("in", [data])) for data in examples] != before


def follow(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Yield what a path leads to, as jq does; a string that holds JSON is opened."""
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if not steps:
        yield value
    elif steps[0] == "[]":
        for item in value if isinstance(value, list) else ():
            yield from follow(item, steps[1:])
    elif isinstance(value, dict) and steps[0] in value:
        yield from follow(value[steps[0]], steps[1:])


def values_in(text: str) -> Iterator[Any]:
    """Yield the JSON values of a file, and those in an array at its top."""
    while text := text.lstrip():
        value, end = json.JSONDecoder().raw_decode(text)
        yield value
        yield from value if isinstance(value, list) else ()
        text = text[end:]


@pytest.mark.parametrize("path", [path for service in envelopes.SERVICES for path in service.shown_paths])
def test_each_path_leads_to_the_events_of_an_example(path: str) -> None:
    steps = path.replace("[]", ".[]").split(".")
    values = (value for name in ENVELOPES for value in values_in(wrapped(name, recorded()[:2]).decode()))
    inner = (one for value in values for one in follow(value, steps))
    assert any("audit.k8s.io" in json.dumps(one) for one in inner)


def test_an_object_that_two_services_could_read_has_its_events_once() -> None:
    event = json.loads(EVENT)
    both = {"_source": event, "message": EVENT, "@message": EVENT, "log": EVENT}
    assert len(list(envelopes.find_events(json.dumps({"hits": {"hits": [both, both]}}).encode()))) == 2


@pytest.mark.parametrize(("first", "second"), [*itertools.pairwise(envelopes.KEYS_IN_ORDER)])
def test_of_two_keys_with_events_the_first_in_order_is_read(first: str, second: str) -> None:
    other = json.dumps(json.loads(EVENT) | {"auditID": "other"})
    line = {second: other, first: EVENT}
    assert list(envelopes.find_events(json.dumps(line).encode())) == [EVENT.encode()]


@pytest.mark.parametrize(("first", "second"), [*itertools.pairwise(envelopes.KEYS_IN_ORDER)])
def test_a_key_without_events_leaves_an_object_to_the_next(first: str, second: str) -> None:
    line = {first: "kube-apiserver-audit", second: EVENT}
    assert list(envelopes.find_events(json.dumps(line).encode())) == [EVENT.encode()]


def test_a_log_of_datadog_whose_message_was_cut_off_is_read_from_its_attributes() -> None:
    (log,) = ENVELOPES["datadog.jsonl"]([EVENT])
    log["attributes"]["message"] = EVENT[:300]
    (found,) = envelopes.find_events(json.dumps(log).encode())
    assert json.loads(found) == json.loads(EVENT)


def google(**changes: Any) -> list[Item]:
    entry = ENVELOPES[GOOGLE]([EVENT])[0]
    payload = entry["protoPayload"] | changes
    return list(read("in", [json.dumps(entry | {"protoPayload": payload}).encode()]))


def test_google_names_the_writer_and_the_lease() -> None:
    (seen, end) = google()
    assert isinstance(seen, Observation)
    assert isinstance(end, LogEnd)
    truth = json.loads(EVENT)
    assert (seen.input_kind, seen.verb) == (InputKind.AUDIT_LOG, truth["verb"])
    assert (seen.namespace, seen.name) == (truth["objectRef"]["namespace"], truth["objectRef"]["name"])
    assert seen.writer is not None
    assert seen.writer.user == truth["user"]["username"]
    assert seen.object is not None


@pytest.mark.parametrize(
    ("fraction", "microseconds"),
    [("", 0), (".123", 123_000), (".123456", 123_456), (".123456789", 123_456)],
)
def test_google_writes_fractions_of_any_length(fraction: str, microseconds: int) -> None:
    entry = ENVELOPES[GOOGLE]([EVENT])[0] | {"timestamp": f"1970-01-01T00:00:05{fraction}Z"}
    seen = next(iter(read("in", [json.dumps(entry).encode()])))
    assert isinstance(seen, Observation)
    assert seen.at == 5_000_000 + microseconds


def test_a_time_of_google_that_cannot_be_read_is_unknown() -> None:
    entry = ENVELOPES[GOOGLE]([EVENT])[0] | {"timestamp": "yesterday"}
    seen = next(iter(read("in", [json.dumps(entry).encode()])))
    assert isinstance(seen, Observation)
    assert seen.at is None


@pytest.mark.parametrize(
    ("code", "status"),
    [(7, 403), (6, 409), (10, 409), (5, 404), (14, 503), (16, 401), (99, 500)],
    ids=["permission denied", "already exists", "aborted", "not found", "unavailable", "unauthenticated", "unknown"],
)
def test_google_answers_become_http(code: int, status: int) -> None:
    seen = google(status={"code": code, "message": "no"})[0]
    assert isinstance(seen, Observation)
    assert seen.answer is not None
    assert (seen.answer.code, seen.answer.message) == (status, "no")
    assert not seen.is_stored


def test_google_does_not_say_what_a_collection_lost() -> None:
    name = "coordination.k8s.io/v1/namespaces/shop/leases"
    seen = google(methodName="io.k8s.coordination.v1.leases.deletecollection", resourceName=name)[0]
    assert isinstance(seen, Observation)
    assert (seen.namespace, seen.name) == ("shop", "")
    assert seen.collection_deletion is not None
    assert seen.collection_deletion.is_unknown


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"serviceName": "compute.googleapis.com"}, 0),
        ({"resourceName": "core/v1/namespaces/shop", "methodName": "io.k8s.core.v1.namespaces.update"}, 0),
        ({"resourceName": "core/v1/namespaces/shop/pods/a", "methodName": "io.k8s.core.v1.pods.create"}, 0),
        ({"resourceName": ""}, 0),
    ],
    ids=["another service", "a namespace", "a pod", "no name"],
)
def test_google_events_of_other_things_say_nothing(changes: dict[str, Any], number: int) -> None:
    assert sum(isinstance(one, Observation) for one in google(**changes)) == number


@pytest.mark.parametrize("changes", [{"resourceName": 5}, {"status": "no"}, {"authenticationInfo": []}])
def test_google_events_with_wrong_types_are_passed_over_or_unreadable(changes: dict[str, Any]) -> None:
    assert not any(isinstance(one, Observation) for one in google(**changes))


def test_a_line_that_was_cut_off_is_unreadable() -> None:
    items = list(read("in", [json.dumps({"message": EVENT[:300]}).encode() + b"\n" + EVENT.encode()]))
    assert isinstance(items[0], Unreadable)
    assert sum(isinstance(one, Observation) for one in items) == 1


@pytest.mark.parametrize(
    "value",
    [
        {"message": "level=info"},
        {"message": {"kind": "Lease", "apiVersion": "v1", "x": "audit.k8s.io"}},
        {"message": {"kind": 5, "x": "audit.k8s.io"}},
        {"data": {"message": None}},
        {"message": "[1, "},
    ],
    ids=["a line of text", "another object", "a kind of another type", "nothing", "broken, but no event"],
)
def test_what_holds_no_event_is_no_envelope(value: object) -> None:
    assert list(envelopes.find_events(json.dumps(value).encode())) == []


def nested(depth: int) -> bytes:
    text = EVENT
    for _ in range(depth):
        text = f'{{"data": {text}}}'
    return text.encode()


def test_events_in_too_many_envelopes_are_not_found() -> None:
    assert len([one for one in read("in", [nested(10)]) if isinstance(one, Observation)]) == 1
    assert not [one for one in read("in", [nested(20)]) if isinstance(one, Observation)]


HOSTILE = [
    b'{"data":' * 5000 + b"1" + b"}" * 5000,
    b'{"data":' * 100_000,
    b"[" * 5000 + b'"audit.k8s.io"' + b"]" * 5000,
    b'{"message":"' + b'{\\"message\\":' * 20_000 + b'"}',
    b'{"protoPayload":5,"x":"audit.k8s.io"}',
    b'{"protoPayload":{"serviceName":"k8s.io","methodName":"x","resourceName":"' + b"/" * 100_000 + b'"}}',
    b'{"results":[[{"field":"@message","value":"{\\"kind\\":\\"Event\\",\\"apiVersion\\":\\"audit.k8s.io/v1\\"}"}]]}',
    b'{"message":"{\\"kind\\":\\"Event\\",\\"apiVersion\\":\\"audit.k8s.io/v1\\",\\"verb\\":5,\\"objectRef\\":[]}"}',
    b'{"message":"\\ud800 audit.k8s.io"}',
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: repr(data[:24]))
def test_hostile_envelopes_are_read_to_their_end(data: bytes) -> None:
    items = list(read("in", [data + b"\n" + EVENT.encode()]))
    assert sum(isinstance(one, Observation) for one in items) <= 1
    assert len(items) < 5


KEYS = st.sampled_from(sorted({*envelopes.KEYS_IN_ORDER} | {"kind", "apiVersion", "protoPayload", "x"}))
LEAVES = st.sampled_from([EVENT, EVENT[:200], "text", 5, None, True, 1e308, "{", "[", '"', "{}"]) | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | inner.map(json.dumps),
    max_leaves=8,
)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_whatever_an_envelope_holds_it_is_read(value: object) -> None:
    for item in read("in", [json.dumps(value).encode()]):
        assert isinstance(item, Item)


def mutated(data: bytes, changes: Sequence[tuple[int, int]]) -> bytes:
    changed = bytearray(data)
    for place, byte in changes:
        changed[place % len(changed)] = byte
    return bytes(changed)


@given(
    st.sampled_from(sorted(ENVELOPES)),
    st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=4),
    st.integers(0, 5000),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_a_broken_delivery_never_ends_the_reading(
    name: str, changes: Sequence[tuple[int, int]], cut: int, is_zipped: bool
) -> None:
    data = mutated(wrapped(name, recorded()[:2]), changes)
    data = gzip.compress(data) if is_zipped else data
    assert all(isinstance(one, Item) for one in read("in", pieces(data[: len(data) - cut])))


def pieces(data: bytes) -> Iterator[bytes]:
    return (data[place : place + 100] for place in range(0, len(data), 100))


def test_gzip_that_was_cut_off_says_so() -> None:
    data = (FOLDER / "cloudwatch-subscription.json.gz").read_bytes()
    items = list(read("in", [data[: len(data) // 2]]))
    assert isinstance(items[-1], Unreadable)
    assert "gzip" in items[-1].error


def test_several_deliveries_in_one_file_are_read() -> None:
    data = b"".join(gzip.compress(wrapped("cloudwatch-subscription.json", recorded()[place:][:5])) for place in (0, 5))
    assert sum(isinstance(one, Observation) for one in read("in", [data])) == sum(
        isinstance(one, Observation) for one in read("in", ["\n".join(recorded()[:10]).encode()])
    )
