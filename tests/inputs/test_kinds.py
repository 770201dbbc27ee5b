"""Dumps, watch streams, audit logs and reviews become observations with their time and writer."""

import json
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import (
    NOW,
    Document,
    Tweak,
    as_version,
    changed,
    drop,
    make_candidate,
    make_lease,
    make_review,
    put,
    to_bytes,
)
from tests.inputs.events import make_event, watched
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs import documents, files, kinds
from webhook.analysis.inputs.audit_event import NO_POD, decode_event
from webhook.analysis.inputs.items import (
    Act,
    CollectionDeletion,
    ElectionEvent,
    InputKind,
    Item,
    LogEnd,
    Observation,
    OtherObject,
    Place,
    Unreadable,
    Writer,
)
from webhook.kubernetes.objects import Lease, LeaseCandidate


def items(*documents: Document, indent: int | None = None, size: int = 1000) -> list[Item]:
    text = "\n".join(json.dumps(one, indent=indent, separators=None if indent else (",", ":")) for one in documents)
    return list(read("in", cut(text.encode(), size)))


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[place : place + size] for place in range(0, len(data), size))


def only(whole: list[Item]) -> Observation:
    (only_item,) = (item for item in whole if not isinstance(item, LogEnd))
    assert isinstance(only_item, Observation)
    return only_item


def test_a_dump_of_kubectl() -> None:
    dump = {"apiVersion": "v1", "items": [make_lease(), make_candidate()], "kind": "List"}
    lease, candidate = items(dump, indent=4)
    assert isinstance(lease, Observation)
    assert isinstance(candidate, Observation)
    assert (lease.input_kind, lease.act, lease.kind, lease.namespace, lease.name) == (
        InputKind.DUMP,
        Act.STORED,
        "Lease",
        "shop",
        "checkout",
    )
    assert (lease.latest_stamp, lease.at, lease.writer, lease.is_stored) == (NOW, None, None, True)
    assert isinstance(lease.object, Lease)
    assert isinstance(candidate.object, LeaseCandidate)
    assert str(candidate.place) == "in#2"


def test_the_items_of_a_typed_list_have_its_kind() -> None:
    lease = make_lease(drop("kind"), drop("apiVersion"))
    observation = only(items({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": [lease]}))
    assert (observation.kind, observation.name) == ("Lease", "checkout")


def test_an_object_without_managed_fields_says_so() -> None:
    observation = only(items(make_lease(drop("metadata.managedFields"))))
    assert (observation.has_managed_fields, observation.latest_stamp, list(observation.entries)) == (False, None, [])
    assert only(items(make_lease())).has_managed_fields


@pytest.mark.parametrize(("event", "act"), [("ADDED", Act.STORED), ("MODIFIED", Act.UPDATED), ("DELETED", Act.DELETED)])
def test_an_event_of_a_watch(event: str, act: Act) -> None:
    observation = only(items(watched(make_lease(), event), indent=4))
    assert (observation.input_kind, observation.act, observation.name) == (InputKind.WATCH, act, "checkout")


def test_an_event_of_a_watch_in_yaml_is_not_a_manifest() -> None:
    text = yaml.safe_dump(watched(make_lease())).encode()
    observation = only(list(read("in", [text])))
    assert (observation.input_kind, observation.act, observation.name) == (InputKind.WATCH, Act.UPDATED, "checkout")
    (document,) = documents.split_documents("in", [text])
    assert isinstance(document, documents.Document)
    assert kinds.is_of_history(document)


def test_a_bookmark_and_an_error_of_a_watch_say_nothing() -> None:
    assert items(watched(make_lease(), "BOOKMARK"), watched({"kind": "Status"}, "ERROR")) == []


def test_an_update_in_an_audit_log() -> None:
    event, end = items(make_event())
    assert isinstance(event, Observation)
    assert (event.input_kind, event.act, event.at, event.is_dry_run) == (
        InputKind.AUDIT_LOG,
        Act.UPDATED,
        NOW + 104_000,
        False,
    )
    assert event.writer is not None
    assert event.writer.process == Writer("system:serviceaccount:shop:checkout", "checkout-6d5f9c-x2x8p")
    assert (event.verb, event.writer.name) == ("update", "shop/checkout")
    assert event.answer is not None
    assert (event.answer.code, event.answer.took) == (200, 4000)
    assert event.answer.annotations == {"authorization.k8s.io/decision": "allow"}
    assert isinstance(event.object, Lease)
    assert end == LogEnd(NOW + 104_000)


def test_the_object_of_an_audit_event_is_the_stored_one() -> None:
    sent = make_lease(put("spec.holderIdentity", "as-sent"))
    observation = only(items(make_event(put("requestObject", sent))))
    assert isinstance(observation.object, Lease)
    assert observation.object.spec.holder_identity == "checkout-6d5f9c-x2x8p_1f0e"
    observation = only(items(make_event(put("requestObject", sent), drop("responseObject"))))
    assert isinstance(observation.object, Lease)
    assert observation.object.spec.holder_identity == "as-sent"


@pytest.mark.parametrize(
    ("version", "foreign"), [("v1alpha1", "strategy"), ("v1alpha2", "preferredStrategies"), ("", "preferredStrategies")]
)
def test_a_candidate_in_an_audit_log_is_read_in_the_version_of_its_request(version: str, foreign: str) -> None:
    candidate = make_candidate(as_version(version or "v1beta1"), put(f"spec.{foreign}", 5))
    event = make_event(
        put("objectRef.resource", "leasecandidates"),
        put("objectRef.apiVersion", version),
        put("responseObject", candidate),
        drop("requestObject"),
    )
    observation = only(items(event))
    assert isinstance(observation.object, LeaseCandidate)
    assert (observation.problem, observation.object.spec.strategies) == ("", ("OldestEmulationVersion",))


@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param((drop("requestObject"), drop("responseObject")), id="at level Metadata"),
        pytest.param((put("verb", "patch"), drop("responseObject")), id="a patch is not an object"),
        pytest.param((put("responseStatus.code", 409), drop("responseObject")), id="refused"),
        pytest.param((put("verb", "get"),), id="a read"),
    ],
)
def test_an_audit_event_without_the_stored_object(tweaks: tuple[object, ...]) -> None:
    observation = only(items(make_event(*tweaks)))  # type: ignore[arg-type]
    assert (observation.object, observation.problem) == (None, "")
    assert (observation.namespace, observation.name) == ("shop", "checkout")


@pytest.mark.parametrize("groups", [["a", "system:masters"], ["system:masters-of-none"], None])
def test_a_writer_has_the_groups_that_the_api_server_names(groups: list[str] | None) -> None:
    observation = only(items(make_event(put("user.groups", groups))))
    assert observation.writer is not None
    assert observation.writer.groups == tuple(groups or ())
    reviewed = only(items(make_review(put("request.userInfo.groups", groups))))
    assert reviewed.writer is not None
    assert reviewed.writer.groups == tuple(groups or ())


@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
def test_a_request_about_many_leases_says_nothing_of_a_single_one(verb: str) -> None:
    observation = only(items(make_event(put("verb", verb), drop("objectRef.name"))))
    assert (observation.act, observation.verb, observation.name, observation.object) == (Act.COLLECTION, verb, "", None)
    history = ClusterHistory()
    history.add(observation)
    assert not history.leases


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("stage", "RequestReceived"), id="another stage"),
        pytest.param(put("verb", "proxy"), id="a verb that concerns no lease"),
        pytest.param(put("objectRef.resource", "pods"), id="another resource"),
        pytest.param(put("objectRef.subresource", "status"), id="a subresource, of which leases have none"),
        pytest.param(put("objectRef.apiGroup", "coordination.k8s.io.example"), id="another group"),
    ],
)
def test_an_audit_event_that_says_nothing_of_leases(tweak: object) -> None:
    assert items(make_event(tweak)) == [LogEnd(NOW + 104_000)]  # type: ignore[arg-type]


def test_a_create_gives_the_name_that_the_api_server_made() -> None:
    observation = only(items(make_event(put("verb", "create"), drop("objectRef.name"))))
    assert (observation.act, observation.name) == (Act.CREATED, "checkout")


def deletion(options: object, *tweaks: Tweak) -> Document:
    status = put("responseObject", {"kind": "Status", "apiVersion": "v1"})
    return make_event(put("verb", "delete"), put("requestObject", options), status, *tweaks)


@pytest.mark.parametrize(
    ("event", "is_dry_run"),
    [
        pytest.param(deletion({"kind": "DeleteOptions", "dryRun": ["All"]}), True, id="a deletion"),
        pytest.param(deletion({"kind": "DeleteOptions"}), False, id="one that was made"),
        pytest.param(deletion(["dryRun"]), False, id="options that are none"),
        pytest.param(deletion({"preconditions": {"uid": '"dryRun":["All"]'}}), False, id="a text"),
        pytest.param(make_event(put("requestObject", {"dryRun": ["All"]})), False, id="an update with such a field"),
        pytest.param(make_event(put("requestURI", "/x?fieldManager=dryRun=All")), False, id="another parameter"),
        pytest.param(make_event(put("requestURI", "/x?a=b&dryRun=All&c=d")), True, id="among other parameters"),
        pytest.param(make_event(put("requestURI", "/x?a=#&dryRun=All")), True, id="after what begins a fragment"),
        pytest.param(make_event(put("requestURI", "//[x?dryRun=All")), True, id="after what looks like a host"),
        pytest.param(make_event(put("requestURI", "/x?dryRun=%41ll")), True, id="escaped"),
        pytest.param(make_event(put("requestURI", "/x?dryRun=All%zz")), False, id="with an invalid escape"),
        pytest.param(make_event(put("requestURI", "/x?a=b;dryRun=All")), False, id="after a semicolon"),
        pytest.param(deletion(None, put("requestURI", "/x?dryRun=All")), True, id="a deletion without a body"),
        pytest.param(deletion({"kind": "DeleteOptions"}, put("requestURI", "/x?dryRun=All")), False, id="a body alone"),
    ],
)
def test_where_a_dry_run_says_so(event: Document, *, is_dry_run: bool) -> None:
    assert only(items(event)).is_dry_run is is_dry_run


@pytest.mark.parametrize(
    ("tweaks", "is_surely_not_dry_run"),
    [
        pytest.param((put("level", "Metadata"),), False, id="level Metadata"),
        pytest.param((put("level", "Metadata"), put("requestURI", "/x?dryRun=All")), False, id="a query"),
        pytest.param((put("level", "Request"),), True, id="level Request"),
        pytest.param(
            (put("level", "Request"), put("annotations", {"audit.k8s.io/truncated": "true"})), False, id="truncated"
        ),
        pytest.param((put("user.username", "system:node:worker-1"),), True, id="a kubelet"),
    ],
)
def test_a_deletion_whose_body_is_hidden_may_have_been_a_dry_run(
    tweaks: Sequence[Tweak], *, is_surely_not_dry_run: bool
) -> None:
    event = make_event(put("verb", "delete"), drop("requestObject"), drop("responseObject"), *tweaks)
    observation = only(items(event))
    assert (observation.is_dry_run, observation.is_surely_not_dry_run) == (False, is_surely_not_dry_run)


def collection_deletion(query: str, *tweaks: Tweak) -> Document:
    uri = put("requestURI", f"/apis/coordination.k8s.io/v1/namespaces/shop/leases{query}")
    deleted = put("verb", "deletecollection"), drop("objectRef.name"), drop("responseObject")
    return make_event(*deleted, uri, *tweaks)


ITEMS: Final = [
    {"kind": "Lease", "metadata": {"name": "checkout", "uid": "u-1"}},
    {"kind": "Lease", "metadata": {"name": "mail", "uid": "u-2", "finalizers": ["example.com/guard"]}},
]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (collection_deletion(""), CollectionDeletion(is_whole=True, is_shown=False)),
        (collection_deletion("?labelSelector=app%3Ddb"), CollectionDeletion(is_shown=False)),
        (collection_deletion("?limit=1"), CollectionDeletion(is_shown=False)),
        (
            collection_deletion("?fieldSelector=metadata.name%3Dcheckout"),
            CollectionDeletion((("checkout", ""),), is_shown=False),
        ),
        (collection_deletion("?fieldSelector=metadata.name!%3Dcheckout"), CollectionDeletion(is_shown=False)),
        (
            collection_deletion("?fieldSelector=metadata.name%3Dcheckout&labelSelector=app"),
            CollectionDeletion(is_shown=False),
        ),
        (
            collection_deletion("?limit=1", put("responseObject", {"items": ITEMS})),
            CollectionDeletion((("checkout", "u-1"),)),
        ),
        (collection_deletion("", put("responseObject", {"items": []})), CollectionDeletion()),
        (
            collection_deletion("", put("responseObject", {"kind": "Status"})),
            CollectionDeletion(is_whole=True, is_shown=False),
        ),
        (
            collection_deletion("", put("responseObject", {"items": 5})),
            CollectionDeletion(is_whole=True, is_shown=False),
        ),
    ],
    ids=[
        "all of a namespace",
        "a label",
        "a limit",
        "a name",
        "all but a name",
        "a name and a label",
        "as the answer says",
        "none",
        "an answer without objects",
        "an answer of a wrong type",
    ],
)
def test_what_a_deletion_of_many_leases_deleted(event: Document, expected: CollectionDeletion) -> None:
    assert only(items(event)).collection_deletion == expected


def make_election_event(*tweaks: Tweak) -> Document:
    """An Event as client-go records it."""
    about = {"kind": "Lease", "namespace": "shop", "name": "checkout", "apiVersion": "coordination.k8s.io/v1"}
    event: Document = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "checkout.17", "namespace": "shop"}}
    event |= {"involvedObject": about, "reason": "LeaderElection", "message": "a_1 became leader", "eventTime": None}
    return changed({**event, "lastTimestamp": "2025-11-20T12:00:00Z"}, *tweaks)


NEW_FORM = make_election_event(
    put("apiVersion", "events.k8s.io/v1"),
    drop("involvedObject"),
    drop("message"),
    drop("lastTimestamp"),
    put("regarding", make_election_event()["involvedObject"]),
    put("note", "a_1 became leader"),
    put("eventTime", "2025-11-20T12:00:00.000000Z"),
)


@pytest.mark.parametrize(
    "event", [pytest.param(make_election_event(), id="v1"), pytest.param(NEW_FORM, id="events.k8s.io/v1")]
)
def test_an_event_says_who_led(event: Document) -> None:
    (item,) = items(event)
    assert isinstance(item, ElectionEvent)
    assert (item.namespace, item.lease, item.at) == ("shop", "checkout", 1_763_640_000_000_000)
    assert item.text == "a_1 became leader"


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("involvedObject.kind", "Endpoints"), id="about another kind"),
        pytest.param(put("message", "alice deleted the lease"), id="another sentence"),
        pytest.param(put("message", "a_1\nbecame leader"), id="two lines"),
        pytest.param(put("message", "a" * 300 + " became leader"), id="a long name"),
        pytest.param(put("message", 7), id="a message that is no text"),
        pytest.param(put("involvedObject", "Lease"), id="about a text"),
        pytest.param(put("lastTimestamp", "yesterday"), id="no time"),
    ],
)
def test_other_events_say_nothing(tweak: Tweak) -> None:
    (event,) = items(make_election_event(tweak))
    assert type(event) is OtherObject


def test_a_dry_run_was_never_stored() -> None:
    observation = only(items(make_event(put("requestURI", "/apis/x?dryRun=All"))))
    assert (observation.is_dry_run, observation.is_stored) == (True, False)


def test_a_refused_write_was_never_stored() -> None:
    assert not only(items(make_event(put("responseStatus.code", 403)))).is_stored


def test_the_impersonated_user_is_the_writer() -> None:
    observation = only(items(make_event(put("impersonatedUser", {"username": "ci"}))))
    groups = ("system:serviceaccounts",)
    account = "system:serviceaccount:shop:checkout"
    assert observation.writer == Writer("ci", impersonator=account, impersonator_groups=groups)
    assert observation.writer.name == "ci"


def test_an_event_without_times() -> None:
    observation = only(items(make_event(put("stageTimestamp", "soon"), put("requestReceivedTimestamp", ""))))
    assert observation.at is None
    received = only(items(make_event(drop("stageTimestamp"))))
    assert (received.at, received.answer and received.answer.took) == (NOW + 100_000, 0)


def test_an_answer_before_its_request_took_no_time() -> None:
    early = only(items(make_event(put("stageTimestamp", "1970-01-01T00:00:05.000000Z"))))
    assert early.at == 5_000_000
    assert early.answer is not None
    assert early.answer.took == 0


def test_only_lines_that_name_leases_are_decoded() -> None:
    other = make_event(
        put("objectRef", {"resource": "pods", "apiGroup": ""}), drop("requestObject"), drop("responseObject")
    )
    read_items = items(other, other, make_event(), other, make_event(), put_end := other)
    numbers = [one.place.document for one in read_items if isinstance(one, Observation)]
    assert numbers == [3, 5]
    assert put_end is other
    assert read_items[-1] == LogEnd(NOW + 104_000)


def test_a_broken_line_of_a_log_costs_only_itself() -> None:
    line = json.dumps(make_event(), separators=(",", ":"))
    text = f"{line}\n{line[:-1]}\n{line}\n"
    kinds = [type(one) for one in read("log", cut(text.encode(), 999))]
    assert kinds == [Observation, Unreadable, Observation, LogEnd]


def test_a_log_that_ends_in_the_middle_of_a_line() -> None:
    line = json.dumps(make_event(), separators=(",", ":"))
    assert [type(one) for one in read("log", [f"{line}\n{line[:2000]}".encode()])] == [Observation, Unreadable]


def test_a_line_larger_than_any_request_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT", 20_000)
    monkeypatch.setattr(files, "MAX_DOCUMENT", 20_000)
    line = json.dumps(make_event(), separators=(",", ":"))
    text = f"{line}\n{line[:-1]}{'x' * 50_000}\n{line}\n"
    items = list(read("log", cut(text.encode(), 1000)))
    assert [type(one) for one in items if not isinstance(one, Unreadable)] == [Observation, Observation, LogEnd]
    assert Unreadable(Place("log", 2), "a line of more than 20 MiB") in items


def test_a_review_brings_the_object_before_and_after() -> None:
    new = make_lease(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"))
    observation = only(items(make_review(new=new, old=make_lease())))
    assert (observation.input_kind, observation.act, observation.writer and observation.writer.name) == (
        InputKind.REVIEW,
        Act.UPDATED,
        "shop/checkout",
    )
    assert isinstance(observation.object, Lease)
    assert isinstance(observation.old, Lease)
    assert observation.at == NOW
    (at,) = (one.at for one in read("r", [to_bytes(make_review())], NOW + 7) if isinstance(one, Observation))
    assert at == NOW + 7


def test_a_review_of_a_deletion_has_the_object_before_it() -> None:
    observation = only(items(make_review(put("request.operation", "DELETE"), new=None, old=make_lease())))
    assert (observation.act, observation.object is observation.old) == (Act.DELETED, True)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        pytest.param({"kind": "AdmissionReview"}, "AdmissionReview", id="a review of nothing"),
        pytest.param(make_review(put("request.operation", "MAKE")), "request.operation must be", id="a contradiction"),
        pytest.param(make_lease(put("apiVersion", "v1")), "a Lease needs apiVersion", id="no group"),
        pytest.param({"kind": 7}, "not a Kubernetes object", id="a kind that is not a text"),
    ],
)
def test_what_cannot_be_read_is_named(document: Document, error: str) -> None:
    (item,) = items(document)
    assert isinstance(item, Unreadable)
    assert error in item.error


def test_what_nests_too_deeply_is_named() -> None:
    text = json.dumps(make_lease(put("metadata.managedFields", [])))
    deep = text.replace('"managedFields": []', '"managedFields": ' + "[" * 5000 + "]" * 5000).encode()
    (item,) = read("in", [deep])
    assert isinstance(item, Unreadable)
    assert "nested too deeply" in item.error


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"kind": "Pod", "apiVersion": "v1"}, "Pod"),
        ({"kind": "Lease", "apiVersion": "example.com/v1"}, "Lease"),
        ({"a": 1}, "no kind"),
        (make_review(put("request.subResource", "status")), "Lease"),
        (make_review(put("request.resource.group", "x"), put("request.kind.group", "x")), "Lease"),
    ],
)
def test_other_kinds_are_passed_over(document: Document, kind: str) -> None:
    assert items(document) == [OtherObject(Place("in", 1), kind)]


@pytest.mark.parametrize(
    ("spec", "account"),
    [({"serviceAccountName": "checkout"}, "checkout"), ({"serviceAccountName": 5}, ""), (None, ""), ([], "")],
)
def test_a_pod_names_its_service_account(spec: object, account: str) -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "checkout-0", "namespace": "shop"}, "spec": spec}
    assert items(pod) == [OtherObject(Place("in", 1), "Pod", "shop", "checkout-0", account)]


def test_wrong_types_are_named_and_the_lease_is_not_lost() -> None:
    observation = only(items(make_lease(put("spec.leaseDurationSeconds", "15"))))
    assert (observation.namespace, observation.name, observation.object) == ("shop", "checkout", None)
    assert observation.problem == "spec.leaseDurationSeconds must be an integer, not a string"
    assert observation.entries == ()
    nameless = only(items(make_lease(put("metadata", [7]))))
    assert (nameless.name, nameless.problem) == ("", "metadata must be an object, not a list")
    assert only(items(make_lease(put("metadata.name", 7)))).name == ""


def test_wrong_types_in_what_a_log_shows_as_sent_are_named() -> None:
    sent = make_lease(put("spec.leaseDurationSeconds", "15"))
    observation = only(items(make_event(put("requestObject", sent), drop("responseObject"))))
    assert (observation.object, observation.resource_version) == (None, "")
    assert observation.problem == "spec.leaseDurationSeconds must be an integer, not a string"


def test_wrong_types_in_a_review_are_named() -> None:
    observation = only(items(make_review(new=make_lease(put("spec.leaseTransitions", "a")))))
    assert "spec.leaseTransitions" in observation.problem


@pytest.mark.parametrize(
    "start",
    [b" \n", b"\xef\xbb\xbf", b"# of yesterday\n", b"---\n", b"a: 1\n---\n", b"a: 1\n", b"- 1\n", b"{a: [1,}\n"],
)
def test_json_is_found_behind_what_is_none(start: bytes) -> None:
    *_, item = read("in", [start, to_bytes(make_lease())])
    assert isinstance(item, Observation)


NOISE = st.sampled_from([b"{", b"}", b"[", b"]", b'"', b"\n", b"\\", b",", b":", b"null", b"1e999", b"\xff", b"Lease"])


@given(st.data(), st.integers(1, 400))
@settings(max_examples=150, deadline=None)
def test_damaged_input_never_fails(data: st.DataObject, size: int) -> None:
    kinds = [make_event(), watched(make_lease()), make_review(), {"kind": "List", "items": [make_lease()]}]
    text = b"\n".join(to_bytes(one) for one in kinds)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + data.draw(NOISE | st.binary(max_size=8)) + text[place + data.draw(st.integers(0, 50)) :]
    for item in read("in", cut(text, size)):
        if isinstance(item, Observation):
            assert item.latest_stamp is None or item.entries


def test_blanks_before_the_first_value_are_not_kept() -> None:
    """A megabyte of gzip may hold a gigabyte of them."""
    tracemalloc.start()
    try:
        pieces = list(documents.split_documents("in", (b" \n" * 2048 for _ in range(500))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert pieces == []
    assert peak < 100_000
    assert [type(one) for one in read("in", [b" \n" * 100, b"\n", to_bytes(make_lease())])] == [Observation]


def test_an_event_of_the_audit_log_knows_its_pod() -> None:
    assert decode_event(to_bytes(make_event())).pod == "checkout-6d5f9c-x2x8p"
    assert decode_event(to_bytes(make_event(drop("user.extra")))).pod == NO_POD


def test_options_of_another_type_leave_the_verb_of_the_operation() -> None:
    assert only(items(make_review(put("request.options.kind", 7)))).verb == "create"


def test_options_that_are_no_object_leave_the_verb_of_the_operation() -> None:
    read_items = items(make_review(put("request.options", [])))
    assert [getattr(one, "verb", "create") for one in read_items] == ["create"]


@pytest.mark.parametrize("change", [{"type": "ADDED", "object": 5}, {"type": "ADDED", "object": {"kind": 5}}])
def test_a_change_of_a_watch_without_an_object_is_named(change: Document) -> None:
    (item,) = items(change)
    assert isinstance(item, Unreadable)
    assert item.error == "not a Kubernetes object"
