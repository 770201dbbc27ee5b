"""Rules about who writes: coordinated fields, releases, identities, nodes, API servers, deletions, candidates."""

import pytest

from tests.factories import HOLDER, Document, Tweak, changed, drop, make_candidate, make_lease, make_review, put
from tests.rules.verdicts import (
    DENY,
    FORBIDDEN,
    INVALID,
    NOW,
    RIVAL,
    SECOND,
    WARN,
    by_node,
    by_service_account,
    by_user,
    in_namespace,
    said,
    take,
    update,
    written,
)
from webhook.rules.writer_identity import fits_pod

HOLDER_FIELD = "spec.holderIdentity"
POD = "checkout-6d5f9c-x2x8p"
DENIED = {(FORBIDDEN, HOLDER_FIELD, DENY)}


@pytest.mark.parametrize(
    ("rule", "name"), [("strategy-writer", "strategy"), ("preferred-holder-writer", "preferredHolder")]
)
@pytest.mark.parametrize(
    ("old", "new", "speaks"),
    [
        pytest.param(None, "a/b", True, id="introduced"),
        pytest.param("a/c", "a/b", True, id="changed"),
        pytest.param("a/b", "a/b", False, id="kept"),
        pytest.param("a/b", None, False, id="cleared"),
        pytest.param("a/b", "", False, id="emptied"),
        pytest.param(None, None, False, id="absent"),
    ],
)
def test_coordinated_fields(rule: str, name: str, old: str | None, new: str | None, speaks: bool) -> None:
    expected = {(FORBIDDEN, f"spec.{name}", DENY)} if speaks else set()
    edit = put("spec.leaseTransitions", 6)
    assert said(rule, update(edit, put(f"spec.{name}", new), old=[put(f"spec.{name}", old)])) == expected
    if old is None:
        assert said(rule, make_review(new=make_lease(put(f"spec.{name}", new)))) == expected


@pytest.mark.parametrize(
    ("holder", "fits"),
    [
        pytest.param(POD, True, id="the pod's name"),
        pytest.param(f"{POD}_1f0e", True, id="then an underscore"),
        pytest.param(f"{POD}-1", True, id="then a dash"),
        pytest.param(f"{POD}é", True, id="then a letter of another script"),
        pytest.param(f"{POD}2", False, id="then a digit"),
        pytest.param(f"{POD}z", False, id="then a letter"),
        pytest.param(f"{POD}Z", False, id="then a capital"),
        pytest.param("other", False, id="another name"),
        pytest.param("", False, id="nobody"),
        pytest.param(POD[:-1], False, id="part of the name"),
    ],
)
def test_what_fits_a_pod(holder: str, fits: bool) -> None:
    assert fits_pod(holder, POD) is fits


def test_a_long_pod_name_fits_whole_and_cut_to_a_host_name() -> None:
    pod = "a" * 70
    assert fits_pod(pod, pod)
    assert fits_pod("a" * 63 + "_id", pod)
    assert not fits_pod("a" * 64 + "_id", pod)


def release(*tweaks: Tweak, at: str = "2025-11-20T12:00:04Z", by: Tweak) -> Document:
    return update(written(take(""), *tweaks, at=at), review=[by])


@pytest.mark.parametrize(
    ("review", "foreign", "across"),
    [
        pytest.param(release(by=by_service_account("shop", "checkout", POD)), False, False, id="by the holder's pod"),
        pytest.param(release(by=by_service_account("shop", "checkout", "other-1")), True, False, id="by another pod"),
        pytest.param(
            release(by=by_service_account("guest", "intruder", "x-1")), True, True, id="by a pod of another namespace"
        ),
        pytest.param(
            release(by=by_service_account("guest", "intruder")),
            False,
            True,
            id="by a token of another namespace without a pod",
        ),
        pytest.param(
            release(by=by_service_account("guest", "intruder", POD)),
            False,
            True,
            id="by a pod of another namespace that bears the holder's name",
        ),
        pytest.param(release(by=by_user("dev")), False, False, id="by a user"),
        pytest.param(
            release(by=by_service_account("guest", "intruder", "x-1"), at="2025-11-20T12:00:15Z"),
            False,
            False,
            id="after expiry",
        ),
    ],
)
def test_foreign_release(review: Document, foreign: bool, across: bool) -> None:
    assert said("foreign-release", review) == (DENIED if foreign else set())
    assert said("foreign-release-across-namespaces", review) == (DENIED if across else set())


def test_a_release_to_null_is_measured_by_our_clock() -> None:
    unowned = drop("metadata.managedFields[0].fieldsV1.f:spec.f:holderIdentity")
    review = update(drop(HOLDER_FIELD), unowned, review=[by_service_account("guest", "intruder", "x-1")])
    assert said("foreign-release", review, now=NOW + 4 * SECOND) == DENIED
    assert said("foreign-release", review, now=NOW + 15 * SECOND) == set()


@pytest.mark.parametrize(
    ("holder", "type_and_tier"),
    [
        pytest.param("node-1 with blanks", None, id="blanks"),
        pytest.param("größe", None, id="letters of other scripts"),
        pytest.param("a" * 512, None, id="512 bytes"),
        pytest.param("a" * 513, WARN, id="513 bytes"),
        pytest.param("é" * 257, WARN, id="514 bytes in 257 characters"),
        pytest.param("a" * 4096, WARN, id="4096 bytes"),
        pytest.param("a" * 4097, DENY, id="4097 bytes"),
        pytest.param("a\nb", DENY, id="a newline"),
        pytest.param("a\x1b[2Jb", DENY, id="an escape"),
        pytest.param("a\u202eb", WARN, id="right to left"),
        pytest.param("a\u200bb", WARN, id="zero width"),
        pytest.param("a\u2028b", WARN, id="a line separator"),
        pytest.param("a\u2029b", WARN, id="a paragraph separator"),
        pytest.param("", None, id="nobody"),
        pytest.param(HOLDER, None, id="the same holder"),
    ],
)
def test_holder_identity_shape(holder: str, type_and_tier: object) -> None:
    review = update(take(holder), put("spec.leaseTransitions", 6))
    assert said("holder-identity-shape", review) == (
        {(INVALID, HOLDER_FIELD, type_and_tier)} if type_and_tier else set()
    )


def test_a_strange_holder_that_was_there_may_stay() -> None:
    strange = put(HOLDER_FIELD, "a\nb")
    assert said("holder-identity-shape", update(put("spec.leaseTransitions", 6), old=[strange])) == set()


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(make_review(new=make_lease()), False, id="create by the holder's pod"),
        pytest.param(make_review(new=make_lease(take(RIVAL))), True, id="create with another name"),
        pytest.param(make_review(new=make_lease(drop(HOLDER_FIELD))), False, id="create without a holder"),
        pytest.param(update(take(RIVAL)), True, id="steal under another name"),
        pytest.param(update(take(RIVAL), old=[take("")]), True, id="claim under another name"),
        pytest.param(update(take(f"{POD}_2"), old=[take("other")]), False, id="steal under its own name"),
        pytest.param(update(take(RIVAL), review=[by_user("dev")]), False, id="by a user"),
        pytest.param(update(take("")), False, id="release"),
    ],
)
def test_holder_identity_mismatch(review: Document, speaks: bool) -> None:
    assert said("holder-identity-mismatch", review) == (DENIED if speaks else set())


NODE = in_namespace("kube-node-lease", "n1")


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(take(RIVAL), review=[by_node("n1"), NODE]), True, id="another holder"),
        pytest.param(update(take(""), review=[by_node("n1"), NODE]), True, id="no holder"),
        pytest.param(update(take("n1"), review=[by_node("n1"), NODE]), False, id="its own name"),
        pytest.param(
            update(put("spec.leaseTransitions", 6), review=[by_node("n1"), NODE]), False, id="the holder stays"
        ),
        pytest.param(update(take(RIVAL), review=[by_node("n1")]), False, id="elsewhere than in kube-node-lease"),
        pytest.param(
            update(take(RIVAL), review=[by_service_account("kwok", "kwok"), NODE]),
            False,
            id="by a service account, as kwok",
        ),
    ],
)
def test_node_lease_holder(review: Document, speaks: bool) -> None:
    assert said("node-lease-holder", review) == (DENIED if speaks else set())


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(make_review(NODE, by_node("n1"), new=make_lease()), False, id="its node"),
        pytest.param(make_review(NODE, by_node("n2"), new=make_lease()), True, id="another node"),
        pytest.param(make_review(by_node("n2"), new=make_lease()), False, id="elsewhere than in kube-node-lease"),
        pytest.param(update(take(RIVAL), review=[NODE, by_user("dev")]), True, id="a user"),
        pytest.param(
            update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), review=[NODE, by_user("dev")]),
            False,
            id="a renewal",
        ),
    ],
)
def test_node_lease_writer(review: Document, speaks: bool) -> None:
    assert said("node-lease-writer", review) == ({(FORBIDDEN, "spec", DENY)} if speaks else set())


IDENTITY = put("metadata.labels", {"apiserver.kubernetes.io/identity": "kube-apiserver"})
SERVER = in_namespace("kube-system", "apiserver-7x")
EDIT = put("spec.leaseTransitions", 6)


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(EDIT, old=[IDENTITY], review=[SERVER]), True, id="by somebody else"),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[SERVER, by_user("system:apiserver")]), False, id="by the API server"
        ),
        pytest.param(update(EDIT, review=[SERVER]), False, id="without the label"),
        pytest.param(update(EDIT, IDENTITY, review=[SERVER]), False, id="with the label in this write only"),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[in_namespace("kube-system", "other")]), False, id="under another name"
        ),
        pytest.param(
            update(EDIT, old=[IDENTITY], review=[in_namespace("shop", "apiserver-7x")]),
            False,
            id="in another namespace",
        ),
        pytest.param(update(put("metadata.labels.a", "1"), old=[IDENTITY], review=[SERVER]), False, id="a label"),
        pytest.param(
            update(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), old=[IDENTITY], review=[SERVER]),
            False,
            id="a renewal",
        ),
    ],
)
def test_apiserver_lease_writer(review: Document, speaks: bool) -> None:
    assert said("apiserver-lease-writer", review) == ({(FORBIDDEN, "spec", DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("tweaks", "user", "speaks"),
    [
        pytest.param([drop("metadata.labels")], by_user("dev"), True, id="all labels"),
        pytest.param([put("metadata.labels", {"a": "b"})], by_user("dev"), True, id="the label, and another added"),
        pytest.param([drop("metadata.labels"), EDIT], by_user("dev"), True, id="beside an edit"),
        pytest.param(
            [drop("metadata.labels"), put("spec.renewTime", "2025-11-20T12:00:02.000000Z")],
            by_user("dev"),
            True,
            id="in a renewal",
        ),
        pytest.param([drop("metadata.labels")], by_user("system:apiserver"), False, id="by the API server"),
    ],
)
def test_the_label_of_an_apiserver_lease_is_not_removed(tweaks: list[Tweak], user: Tweak, speaks: bool) -> None:
    review = update(*tweaks, old=[IDENTITY], review=[SERVER, user])
    expected = {(FORBIDDEN, "metadata.labels", DENY)} if speaks else set()
    assert said("apiserver-lease-writer", review) == expected


def delete(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> Document:
    return make_review(*tweaks, old=make_lease(*old))


@pytest.mark.parametrize(
    ("review", "after_seconds", "speaks"),
    [
        pytest.param(delete(), 4, True, id="live"),
        pytest.param(delete(put("request.name", "")), 4, True, id="live, as an item of a collection"),
        pytest.param(delete(), 15, False, id="expired"),
        pytest.param(delete(old=(take(""),)), 4, False, id="released"),
        pytest.param(delete(by_user("system:kube-controller-manager")), 4, False, id="by the controller manager"),
        pytest.param(
            delete(by_service_account("kube-system", "generic-garbage-collector")),
            4,
            False,
            id="by the garbage collector",
        ),
        pytest.param(
            delete(by_service_account("kube-system", "namespace-controller")),
            4,
            False,
            id="by the namespace controller",
        ),
        pytest.param(delete(by_service_account("guest", "namespace-controller")), 4, True, id="by a namesake"),
    ],
)
def test_live_lease_deleted(review: Document, after_seconds: int, speaks: bool) -> None:
    expected = {(FORBIDDEN, "metadata", DENY)} if speaks else set()
    assert said("live-lease-deleted", review, now=NOW + after_seconds * SECOND) == expected


def candidate(*tweaks: Tweak, old: tuple[Tweak, ...] = ()) -> Document:
    before = make_candidate(*old)
    return make_review(old=before, new=changed(before, *tweaks))


PING = "spec.pingTime"
PINGED = put(PING, "2025-11-20T12:00:00.000000Z")


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(candidate(PINGED), True, id="set"),
        pytest.param(candidate(put(PING, "2025-11-20T12:00:01.000000Z"), old=(PINGED,)), True, id="changed"),
        pytest.param(make_review(new=make_candidate(PINGED)), True, id="set on CREATE"),
        pytest.param(candidate(drop(PING), old=(PINGED,)), False, id="cleared"),
        pytest.param(candidate(put("spec.renewTime", "2025-11-20T12:00:01.000000Z"), old=(PINGED,)), False, id="kept"),
        pytest.param(
            candidate(put(PING, "2025-11-20T13:00:00.000000+01:00"), put("spec.leaseName", "b"), old=(PINGED,)),
            False,
            id="the same instant in another zone",
        ),
    ],
)
def test_ping_time_writer(review: Document, speaks: bool) -> None:
    assert said("ping-time-writer", review) == ({(FORBIDDEN, PING, DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("review", "fields"),
    [
        pytest.param(candidate(put("spec.binaryVersion", "1.37.0")), {"binaryVersion"}, id="binaryVersion"),
        pytest.param(candidate(put("spec.emulationVersion", "1.35.0")), {"emulationVersion"}, id="emulationVersion"),
        pytest.param(candidate(put("spec.strategy", "a/b")), {"strategy"}, id="strategy"),
        pytest.param(
            candidate(put("spec.preferredStrategies", ["a/b"])), {"preferredStrategies"}, id="preferredStrategies"
        ),
        pytest.param(
            candidate(put("spec.strategy", "a/b"), drop("spec.emulationVersion")),
            {"strategy", "emulationVersion"},
            id="two at once",
        ),
        pytest.param(candidate(put("spec.renewTime", "2025-11-20T12:00:01.000000Z")), set(), id="a renewal"),
    ],
)
def test_candidate_changed(review: Document, fields: set[str]) -> None:
    assert said("candidate-changed", review) == {(FORBIDDEN, f"spec.{field}", DENY) for field in fields}
