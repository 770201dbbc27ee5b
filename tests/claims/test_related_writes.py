"""Writes to what the holders of a lease depend on: listed if they may matter, and never given as the cause."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import Tweak, changed, drop, put
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.history.observing import follow_log
from tests.inputs.test_absences import CREATED, NODE, missing_pod_event
from tests.inputs.test_related_writes import DEBUGGED, read_events, write_event
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.evidence.writers.related_writes import describe_related_write
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.history.audit_log import related_writes
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.kubernetes.times import format_micro_time

RIGHTS = "rbac.authorization.k8s.io"
FORBIDDEN = 'leases.coordination.k8s.io "db" is forbidden: User "system:serviceaccount:shop:db" cannot update'
OWNER = (
    """leases.coordination.k8s.io "db" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"""
)
ADMISSION = "admissionregistration.k8s.io"
QUOTA = 'leases.coordination.k8s.io "db" is forbidden: exceeded quota: objects'
POLICY = "leases.coordination.k8s.io \"db\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request"
PARAMETERS = f"{POLICY}: failed to configure binding: no params found"
PRIORITIES = "flowcontrol.apiserver.k8s.io"
INVALID = 'Lease.coordination.k8s.io "db" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater'
TERMINATING = (
    "leases.coordination.k8s.io is forbidden: unable to create new content in namespace shop because it is being "
    "terminated"
)
WEBHOOK = 'admission webhook "w.example.com" denied the request: no'
UNREACHED = 'failed calling webhook "w.example.com": context deadline exceeded'


BY_BOB = put("user.username", "bob@example.org")


def log_write(server: FakeServer, kind: str, group: str, *tweaks: Tweak) -> None:
    server.log.append(write_event(kind, group, put("stageTimestamp", format_micro_time(server.now)), *tweaks))


def refuse(code: int, message: str, kind: str, group: str, *tweaks: Tweak) -> FakeServer:
    """A leader whose renewals are refused from the moment of a write on."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    server.wait(1)
    log_write(server, kind, group, *tweaks)
    for _ in range(8):
        server.wait(2)
        db.fail(code, message)
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("code", "message", "kind", "group", "verb", "words"),
    [
        (403, FORBIDDEN, "rolebindings", RIGHTS, "delete", "RoleBinding shop/db was deleted by alice@example.org"),
        (403, FORBIDDEN, "roles", RIGHTS, "delete", "Role shop/db was deleted"),
        (403, QUOTA, "resourcequotas", "", "create", "ResourceQuota shop/db was created"),
        (422, PARAMETERS, "configmaps", "", "delete", "ConfigMap shop/db was deleted"),
        (422, POLICY, "validatingadmissionpolicies", ADMISSION, "create", "ValidatingAdmissionPolicy shop/db was"),
        (403, WEBHOOK, "validatingwebhookconfigurations", ADMISSION, "create", "ValidatingWebhookConfiguration shop/"),
        (500, UNREACHED, "mutatingwebhookconfigurations", ADMISSION, "create", "MutatingWebhookConfiguration shop/db"),
        (429, "too many requests", "prioritylevelconfigurations", PRIORITIES, "delete", "PriorityLevelConfiguration"),
        (403, TERMINATING, "namespaces", "", "delete", "Namespace db was deleted"),
        (403, WEBHOOK, "namespaces", "", "patch", "Namespace db was "),
        (422, POLICY, "namespaces", "", "patch", "Namespace db was "),
        (500, UNREACHED, "namespaces", "", "patch", "Namespace db was "),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)
def test_changes_of_what_may_grant_or_refuse_are_listed_beside_refusals(
    code: int, message: str, kind: str, group: str, verb: str, words: str
) -> None:
    server = refuse(code, message, kind, group, put("verb", verb))
    assert words in explain(server)
    assert any(words in line.text for line in list_latest(account(follow_log(server), server.now)))


@pytest.mark.parametrize(
    ("code", "message", "kind", "group", "verb"),
    [
        (403, FORBIDDEN, "rolebindings", RIGHTS, "create"),
        (403, QUOTA, "resourcequotas", "", "delete"),
        (422, POLICY, "validatingadmissionpolicies", ADMISSION, "delete"),
        (403, WEBHOOK, "validatingwebhookconfigurations", ADMISSION, "delete"),
        (422, PARAMETERS, "configmaps", "", "create"),
        (422, INVALID, "namespaces", "", "patch"),
        (403, FORBIDDEN, "namespaces", "", "patch"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)
def test_changes_that_cannot_cause_refusals_are_not_listed_before_them(
    code: int, message: str, kind: str, group: str, verb: str
) -> None:
    assert " by alice@example.org" not in explain(refuse(code, message, kind, group, put("verb", verb)))


@pytest.mark.parametrize(
    ("code", "message", "kind", "group", "verb", "is_told"),
    [
        (403, FORBIDDEN, "roles", RIGHTS, "create", True),
        (403, FORBIDDEN, "roles", RIGHTS, "update", True),
        (403, FORBIDDEN, "roles", RIGHTS, "delete", False),
        (403, QUOTA, "resourcequotas", "", "delete", True),
        (403, QUOTA, "resourcequotas", "", "create", False),
        (429, "too many requests", "flowschemas", PRIORITIES, "create", True),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)
def test_changes_that_may_have_ended_refusals_are_listed_after_them(
    code: int, message: str, kind: str, group: str, verb: str, *, is_told: bool
) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    for _ in range(4):
        server.wait(2)
        db.fail(code, message)
    log_write(server, kind, group, put("verb", verb))
    db.lead(20)
    assert (" by alice@example.org" in explain(server)) is is_told


@pytest.mark.parametrize(("verb", "is_told"), [("delete", True), ("create", False)])
def test_a_deleted_secret_is_listed_before_requests_whose_credentials_are_not_accepted(
    verb: str, *, is_told: bool
) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    log_write(server, "secrets", "", put("verb", verb))
    for _ in range(8):
        server.wait(2)
        db.fail_unauthenticated()
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    assert any(f"Secret shop/db was {verb}d by alice@example.org" in one for one in latest) is is_told


@pytest.mark.parametrize(
    ("seconds", "is_told"),
    [(30, True), (110, True), (130, False), (3600, False), (7070, False), (7100, True)],
    ids=str,
)
def test_a_write_is_listed_near_the_start_or_end_of_refusals_but_not_between(seconds: int, *, is_told: bool) -> None:
    """A right is refused once at the start and once two hours later, and a role is changed between."""
    server, (db, *_) = shop()
    db.retry = 10
    db.lead(20)
    db.fail(403, FORBIDDEN)
    db.lead(seconds)
    log_write(server, "roles", RIGHTS, put("verb", "update"))
    db.lead(7200 - seconds)
    db.fail(403, FORBIDDEN)
    db.lead(20)
    assert ("Role shop/db was " in explain(server)) is is_told


def refuse_around_a_write(
    server: FakeServer, elector: Elector, *later: Elector, message: str = FORBIDDEN, tweaks: tuple[Tweak, ...] = ()
) -> None:
    """Refuse an elector before and after a Role is updated, and others after it alone."""
    for number in range(20):
        server.wait(2)
        elector.fail(403, message)
        if number == 10:
            log_write(server, "roles", RIGHTS, put("verb", "update"), *tweaks)
        for other in later if number > 10 else ():
            other.fail(403, FORBIDDEN)


@pytest.mark.parametrize("message", [FORBIDDEN, OWNER], ids=["for lack of a right", "by admission for lack of one"])
def test_after_a_write_in_the_middle_of_a_run_of_refusals_they_went_on(message: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    refuse_around_a_write(server, db, message=message)
    assert "Role shop/db was updated by alice@example.org, after which refusals went on until " in explain(server)


def test_after_a_write_that_helped_for_a_while_refusals_did_not_go_on() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    refuse_around_a_write(server, db)
    db.renew()
    for _ in range(8):
        server.wait(2)
        db.fail(403, FORBIDDEN)
    assert "refusals went on" not in explain(server)


@pytest.mark.parametrize(
    ("message", "tweaks"),
    [
        (FORBIDDEN, (put("objectRef.namespace", ""),)),
        (FORBIDDEN, (put("verb", "delete"),)),
        (FORBIDDEN, (put("objectRef.resource", "rolebindings"), put("verb", "delete"))),
        (FORBIDDEN, (put("objectRef.resource", "secrets"), put("objectRef.apiGroup", ""))),
        (WEBHOOK, ()),
    ],
    ids=["of another place", "that takes a right", "that takes a binding", "of no such kind", "of no right"],
)
def test_a_write_amid_refusals_that_nobody_meant_to_end_them_is_not_listed(
    message: str, tweaks: tuple[Tweak, ...]
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    refuse_around_a_write(server, db, message=message, tweaks=tweaks)
    assert "refusals went on" not in explain(server)


def test_what_began_for_another_process_meanwhile_may_have_been_caused() -> None:
    server, (db, mail, _) = shop()
    mail.lease = db.lease
    db.lead(20)
    refuse_around_a_write(server, db, mail)
    assert "Role shop/db" in explain(server)


def refuse_again(server: FakeServer, elector: Elector, *, times: int, apart: float, before_write: int) -> None:
    """Refuse the writes of an elector again and again, so many of them before a role is updated."""
    for number in range(times):
        if number == before_write:
            log_write(server, "roles", RIGHTS, put("verb", "update"))
        server.wait(apart)
        elector.fail(403, FORBIDDEN)


def test_where_the_start_of_refusals_is_forgotten_no_write_is_before_it() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for one in range(MAX_LISTED):
        server.elector(f"db-{one + 1}", "shop/db").fail(403, FORBIDDEN)
    server.wait(180)
    refuse_again(server, db, times=130, apart=2, before_write=30)
    assert "Role shop/db" not in explain(server)


def test_refusals_of_which_those_in_between_are_forgotten_did_not_end_there() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    refuse_again(server, db, times=250, apart=5, before_write=40)
    assert "Role shop/db was updated by alice@example.org, after which refusals went on until" in explain(server)


@pytest.mark.parametrize(
    ("code", "message", "tweaks"),
    [
        (403, QUOTA, ()),
        (403, FORBIDDEN, (put("objectRef.namespace", "mail"),)),
        (403, FORBIDDEN, (put("stageTimestamp", "2026-11-18T08:00:00.000000Z"),)),
    ],
    ids=["refused for another reason", "of another namespace", "an hour before"],
)
def test_unrelated_changes_of_rights_are_not_listed(code: int, message: str, tweaks: tuple[Tweak, ...]) -> None:
    assert " was deleted by alice@example.org" not in explain(refuse(code, message, "rolebindings", RIGHTS, *tweaks))


def test_rights_in_the_namespace_of_an_account_do_not_explain_refusals_of_a_lease_elsewhere() -> None:
    server, (db, *_) = shop()
    db.user = "system:serviceaccount:ops:db"
    db.lead(20)
    log_write(server, "rolebindings", RIGHTS, put("objectRef.namespace", "ops"))
    log_write(server, "serviceaccounts", "", put("objectRef.namespace", "ops"))
    for _ in range(8):
        server.wait(2)
        db.fail(403, FORBIDDEN)
    output = explain(server)
    assert "ServiceAccount ops/db was deleted" in output
    assert "RoleBinding ops/db" not in output


def test_changes_of_the_workload_of_a_holder_are_listed() -> None:
    server, (db, *_) = shop()
    db.pod = "db-7c9d-x2x8p"
    log_write(server, "deployments", "apps", put("verb", "create"))
    db.lead(20)
    log_write(server, "deployments", "apps", put("verb", "patch"), put("objectRef.subresource", "scale"))
    log_write(server, "deployments", "apps", put("objectRef.name", "mail"))
    output = explain(server)
    assert "Deployment shop/db was created by alice@example.org" in output
    assert "Deployment shop/db was scaled by alice@example.org" in output
    assert "Deployment shop/mail" not in output
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    assert "Deployment shop/db was scaled by alice@example.org" in latest
    assert "Deployment shop/db was created by alice@example.org" not in latest


def test_a_workload_that_was_created_beside_a_holder_is_among_the_latest_lines() -> None:
    server, (db, *_) = shop()
    db.pod = "db-7c9d-x2x8p"
    db.lead(20)
    log_write(server, "deployments", "apps", put("verb", "create"), put("objectRef.name", "db-canary"))
    canary = server.elector("db-canary-66f7cb-x2x8p", "shop/db", pod="db-canary-66f7cb-x2x8p")
    canary.take()  # while it is live
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    assert "Deployment shop/db-canary was created by alice@example.org" in latest


def test_the_latest_lines_have_what_began_an_incident_and_what_ended_it() -> None:
    server, (db, *_) = shop()
    db.pod = "db-7c9d-x2x8p"
    db.lead(20)
    users = (("patch", one) for one in ("ann", "joe", "bob", "cem", "dan"))
    for verb, user in (*users, ("delete", "eve")):
        server.wait(2)
        log_write(server, "deployments", "apps", put("verb", verb), put("user", {"username": user}))
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    changed = [one.rpartition(" ")[2] for one in latest if one.startswith("Deployment")]
    assert changed == ["ann", "bob", "cem", "dan", "eve"]


def roll(times: int, *tweaks: Tweak) -> list[str]:
    """Have a Deployment be written once or more, each time followed by a new holder, and return the latest lines."""
    server, (db, *_) = shop()
    db.pod = "db-7c9d-x2x8p"
    db.lead(20)
    for number in range(times):
        log_write(server, "deployments", "apps", put("verb", "patch"), *tweaks)
        db.release()
        server.wait(1)
        db = server.elector(f"db-{number + 1}", "shop/db", pod=f"db-7c9d-x2x8{'bcdfg'[number]}")
        db.lead(10)
    log_write(server, "deployments", "apps", put("verb", "patch"), BY_BOB)
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    return [one for one in latest if one.startswith("Deployment")]


def test_what_is_done_again_and_again_is_one_of_the_latest_lines() -> None:
    assert roll(4) == [
        "Deployment shop/db was updated 4 times until 11:07:33Z by alice@example.org",
        "Deployment shop/db was updated by bob@example.org",
    ]
    assert roll(3) == [*["Deployment shop/db was updated by alice@example.org"] * 3, f"{roll(4)[1]}"]


@pytest.mark.parametrize(("below", "number"), [("", 2), ("scale", 1)], ids=["updated", "scaled"])
def test_a_change_and_its_return_are_two_lines(below: str, number: int) -> None:
    server, (db, *_) = shop()
    db.pod = "db-7c9d-x2x8p"
    db.lead(20)
    for _ in range(2):
        log_write(server, "deployments", "apps", put("verb", "patch"), put("objectRef.subresource", below))
        db.lead(20)
    lines = [line.text for line in list_events(account(follow_log(server), server.now))]
    assert len([one for one in lines if one.startswith("Deployment")]) == number


@pytest.mark.parametrize(
    ("pod", "kind", "name", "is_its"),
    [
        ("checkout-operator-5f-x2x8p", "deployments", "checkout", False),
        ("checkout-operator-5f-x2x8p", "deployments", "checkout-operator", True),
        ("checkout-canary-x2x8p", "deployments", "checkout", False),
        ("db-66f7cb-x2x8p", "deployments", "db", True),
        ("db-59qrv6xmq-x2x8p", "deployments", "db", True),
        ("db-59qrv6x-x2x8p", "deployments", "db", False),
        ("web-0", "deployments", "web", False),
        ("web-0", "statefulsets", "web", True),
        ("web-12", "statefulsets", "web", True),
        ("web-canary-0", "statefulsets", "web", False),
        ("web-canary-0", "statefulsets", "web-canary", True),
        ("web-01", "statefulsets", "web", False),
        ("web-66f7cb-x2x8p", "statefulsets", "web", False),
        ("web", "statefulsets", "web", False),
    ],
)
def test_a_workload_is_that_of_a_pod_by_its_whole_name(pod: str, kind: str, name: str, *, is_its: bool) -> None:
    server, (db, *_) = shop()
    db.pod = pod
    db.lead(20)
    log_write(server, kind, "apps", put("objectRef.name", name))
    assert (f" shop/{name} was deleted" in explain(server)) is is_its


def test_a_deleted_account_of_a_holder_is_listed_unless_that_was_a_dry_run() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    log_write(server, "serviceaccounts", "", put("level", "Metadata"), put("responseObject", None))
    log_write(server, "serviceaccounts", "", put("objectRef.name", "mail"))
    assert "ServiceAccount shop/db was deleted by alice@example.org, unless that was a dry run" in explain(server)
    assert "ServiceAccount shop/mail" not in explain(server)


def test_a_recreated_account_is_among_the_latest_lines_and_a_new_one_is_not() -> None:
    server, (db, *_) = shop()
    log_write(server, "serviceaccounts", "", put("verb", "create"))
    db.lead(20)
    new = account(follow_log(server), server.now)
    assert "ServiceAccount shop/db was created by alice@example.org" in text(new)
    assert not any("ServiceAccount" in line.text for line in list_latest(new))
    log_write(server, "serviceaccounts", "")
    server.wait(2)
    log_write(server, "serviceaccounts", "", put("verb", "create"))
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    assert [one for one in latest if "ServiceAccount" in one] == [
        "ServiceAccount shop/db was deleted by alice@example.org",
        "ServiceAccount shop/db was created by alice@example.org",
    ]


def test_an_autoscaler_does_not_displace_what_happened_to_the_lease() -> None:
    server, (db, *_) = shop()
    db.pod = "db-7c9d-x2x8p"
    other = server.elector("db-1", "shop/db")
    db.lead(20)
    other.take()  # while it is live
    for _ in range(29):
        log_write(server, "deployments", "apps", put("verb", "update"), put("objectRef.subresource", "scale"))
        other.lead(60)
    log_write(server, "deployments", "apps", put("verb", "patch"), put("objectRef.subresource", "scale"), BY_BOB)
    lines = [line.text for line in list_events(account(follow_log(server), server.now))]
    assert any("db-1_1" in one for one in lines)
    assert [one for one in lines if one.startswith("Deployment")] == [
        "Deployment shop/db was scaled 29 times until 11:35:00Z by alice@example.org",
        "Deployment shop/db was scaled by bob@example.org",
    ]


def test_a_user_without_an_account_has_no_workload() -> None:
    server, (db, *_) = shop()
    db.user, db.pod = "dave", ""
    db.lead(20)
    log_write(server, "deployments", "apps")
    assert "Deployment" not in explain(server)


def test_only_the_latest_writes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_writes, "MAX_WRITES", 3)
    server, _ = shop()
    for number in range(5):
        log_write(server, "deployments", "apps", put("objectRef.name", f"db-{number}"))
    assert [one.name for one in follow_log(server).list_related_writes()] == ["db-2", "db-3", "db-4"]


@pytest.mark.parametrize("is_reversed", [False, True], ids=["then with its body", "then without"])
def test_a_write_in_two_copies_of_a_log_is_one_with_what_both_show(*, is_reversed: bool) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    copies = [(put("level", "Metadata"), put("responseObject", None)), ()]
    for tweaks in reversed(copies) if is_reversed else copies:
        log_write(server, "serviceaccounts", "", *tweaks)
    lines = [line.text for line in list_events(account(follow_log(server), server.now))]
    found = [one for one in lines if "ServiceAccount" in one]
    assert found == ["ServiceAccount shop/db was deleted by alice@example.org"]


NETWORK = "networking.k8s.io"


def cut_off(before: float, after: float, *tweaks: Tweak) -> FakeServer:
    """A policy of the network is created so long before or after the last renewal, and deleted before the next one."""
    server, (db, mail, cart) = shop()
    follower = server.elector("db-1", "shop/db")
    together(20, db, mail, cart)
    at = server.now
    server.now = at + int((after - before) * SECOND)
    log_write(server, "networkpolicies", NETWORK, put("verb", "create"), *tweaks)
    server.log.sort(key=lambda event: event["stageTimestamp"])
    server.now = at
    together(60, mail, cart)
    log_write(server, "networkpolicies", NETWORK, put("verb", "delete"), *tweaks)
    server.wait(2)
    follower.take()
    together(10, follower, mail, cart)
    return server


def test_policies_of_the_network_are_listed_where_a_silence_begins_and_ends() -> None:
    output = explain(cut_off(1, 0))
    assert "NetworkPolicy shop/db was created by alice@example.org" in output
    assert "NetworkPolicy shop/db was deleted by alice@example.org" in output


def test_policies_of_the_network_after_a_silence_began_or_of_another_namespace_are_not_listed() -> None:
    assert "NetworkPolicy shop/db was created" not in explain(cut_off(0, 20))
    assert "NetworkPolicy" not in explain(cut_off(1, 0, put("objectRef.namespace", "other")))


def test_policies_of_the_network_are_not_listed_where_a_lease_is_handed_over() -> None:
    server, (db, mail, cart) = shop()
    follower = server.elector("db-1", "shop/db")
    together(20, db, mail, cart)
    log_write(server, "networkpolicies", NETWORK, put("verb", "create"))
    db.release()
    server.wait(1)
    follower.take()
    together(10, follower, mail, cart)
    assert "NetworkPolicy" not in explain(server)


def test_policies_of_the_network_are_listed_while_a_holder_is_silent_or_after_it_was_late() -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    log_write(server, "networkpolicies", NETWORK, put("verb", "create"))
    together(12, mail, cart)
    db.renew()
    assert "NetworkPolicy shop/db was created" in explain(server)
    server.log.pop()
    together(20, mail, cart)
    db.ask()
    assert "NetworkPolicy shop/db was created" in explain(server)


def test_an_apply_that_creates_an_object_is_said_to_create_it() -> None:
    tweaks = put("verb", "patch"), put("responseStatus.code", 201)
    assert "NetworkPolicy shop/db was updated" not in explain(cut_off(1, 0, *tweaks))
    assert "NetworkPolicy shop/db was created" in explain(cut_off(1, 0, *tweaks))


BY_NODE_CONTROLLER = put("user.username", "system:serviceaccount:kube-system:node-controller")


def lose_on_node(name: str, *tweaks: Tweak, before: int = 0, has_node: bool = True) -> FakeServer:
    """A holder on node n1 that falls silent, and a write to a node so many seconds before."""
    server, (db, mail, cart) = shop()
    server.nodes = {"db-0": "n1"} if has_node else {}
    together(200, db, mail, cart)
    log_write(server, "nodes", "", put("objectRef", {"resource": "nodes", "name": name}), put("verb", "patch"), *tweaks)
    together(before, db, mail, cart)
    together(20, mail, cart)
    server.elector("db-1", "shop/db").take()
    return server


def test_what_was_done_to_the_node_of_a_holder_as_it_fell_silent_is_listed() -> None:
    assert "Node n1 was updated by alice@example.org" in explain(lose_on_node("n1", before=100))
    status = put("objectRef.subresource", "status")
    assert (
        "Node n1 was given another status by kube-system/node-controller, as when its kubelet is not heard"
        in explain(lose_on_node("n1", BY_NODE_CONTROLLER, status))
    )


def test_a_taint_is_listed_unless_the_status_says_that_the_node_is_not_heard() -> None:
    tainted = "Node n1 was updated by kube-system/node-controller, as when it taints a node that is not ready"
    assert tainted in explain(lose_on_node("n1", BY_NODE_CONTROLLER))
    server = lose_on_node("n1", BY_NODE_CONTROLLER, put("objectRef.subresource", "status"), before=30)
    about = put("objectRef", {"resource": "nodes", "name": "n1"}), put("verb", "patch"), BY_NODE_CONTROLLER
    at = put("stageTimestamp", format_micro_time(server.now - 30 * SECOND))
    server.log.append(write_event("nodes", "", *about, at))
    output = explain(server)
    assert "Node n1 was given another status" in output
    assert tainted not in output


@pytest.mark.parametrize(
    ("seconds", "tweaks", "is_said"),
    [
        (0.9, (), False),
        (1.1, (), True),
        (0.9, (BY_NODE_CONTROLLER,), True),
        (0.9, (put("objectRef", {"resource": "nodes", "name": "n2"}),), True),
    ],
    ids=["just before", "some time before", "by the node controller itself", "of another node"],
)
def test_a_taint_that_follows_an_edit_of_its_node_says_nothing_of_its_health(
    seconds: float, tweaks: tuple[Tweak, ...], is_said: bool
) -> None:
    server = lose_on_node("n1", BY_NODE_CONTROLLER)
    at = put("stageTimestamp", format_micro_time(server.now - int((20 + seconds) * SECOND)))
    server.log.append(write_event("nodes", "", ABOUT_NODE, put("verb", "patch"), at, *tweaks))
    output = explain(server)
    assert ("Node n1 was updated by alice@example.org" in output) is (not tweaks)
    assert ("as when it taints a node that is not ready" in output) is is_said


ABOUT_NODE = put("objectRef", {"resource": "nodes", "name": "n1"})
BY_KUBELET = put("user.username", "system:node:n1")


def test_a_node_that_was_created_again_was_deleted_and_its_taints_are_those_of_a_new_one() -> None:
    server = lose_on_node("n1", put("verb", "delete"), put("level", "Metadata"), put("responseObject", None), before=5)
    doubtful = "Node n1 was deleted by alice@example.org, unless that was a dry run, which the log does not show"
    assert doubtful in explain(server)
    for seconds, tweaks in (
        (18, (put("verb", "create"), put("responseStatus.code", 201), BY_KUBELET)),
        (17, (put("verb", "patch"), BY_NODE_CONTROLLER)),
    ):
        at = put("stageTimestamp", format_micro_time(server.now - seconds * SECOND))
        server.log.append(write_event("nodes", "", ABOUT_NODE, at, *tweaks))
    output = explain(server)
    assert "Node n1 was deleted by alice@example.org" in output
    assert "unless that was a dry run" not in output
    assert "Node n1 was created by system:node:n1" in output
    assert "taints" not in output


def test_a_node_that_was_not_seen_to_be_deleted_is_as_new_as_any() -> None:
    created = put("verb", "create"), put("responseStatus.code", 201), BY_KUBELET
    assert "Node" not in explain(lose_on_node("n1", *created, before=5))


@pytest.mark.parametrize(
    "server",
    [lose_on_node("n2"), lose_on_node("n1", has_node=False), lose_on_node("n1", before=130)],
    ids=["another node", "its node is not known", "long before"],
)
def test_what_was_done_to_a_node_that_need_not_concern_a_holder_is_not_listed(server: FakeServer) -> None:
    assert "Node" not in explain(server)


DELETED = put("verb", "delete"), put("level", "Metadata"), drop("responseObject")
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


def log_absence(server: FakeServer, *tweaks: Tweak) -> None:
    """Have the API server answer a person that node n1 is not there."""
    now = format_micro_time(server.now)
    at = put("requestReceivedTimestamp", now), put("stageTimestamp", now)
    server.log.append(missing_pod_event(*NODE, *at, *tweaks))


def collect_lease(server: FakeServer, *tweaks: Tweak) -> None:
    """Have the garbage collector delete the lease of node n1, as its owner is gone."""
    server.leases["kube-node-lease/n1"] = server.leases["shop/mail"]
    server.delete("kube-node-lease/n1", COLLECTOR)
    server.log[-1] = changed(server.log[-1], *tweaks)


@pytest.mark.parametrize(
    "happen",
    [log_absence, lambda server: log_absence(server, *CREATED), collect_lease],
    ids=["it was not found", "it was created again", "its lease was collected"],
)
def test_the_deletion_of_a_node_that_was_gone_then_was_no_dry_run(happen: Callable[[FakeServer], None]) -> None:
    server = lose_on_node("n1", *DELETED)
    assert "Node n1 was deleted by alice@example.org, unless that was a dry run" in explain(server)
    happen(server)
    output = explain(server)
    assert "Node n1 was deleted by alice@example.org" in output
    assert "dry run" not in output


@pytest.mark.parametrize(
    "happen",
    [
        lambda server: log_absence(server, put("objectRef.name", "n2")),
        lambda server: log_absence(server, put("requestReceivedTimestamp", format_micro_time(START))),
        lambda server: collect_lease(server, put("user.username", "alice")),
        lambda server: collect_lease(server, put("impersonatedUser", {"username": COLLECTOR})),
    ],
    ids=["another node", "before", "its lease was deleted by another", "who acts as the collector"],
)
def test_what_does_not_show_that_the_deletion_of_a_node_was_no_dry_run(happen: Callable[[FakeServer], None]) -> None:
    server = lose_on_node("n1", *DELETED)
    happen(server)
    assert "Node n1 was deleted by alice@example.org, unless that was a dry run" in explain(server)


def test_of_two_deletions_of_a_node_either_may_have_been_a_dry_run() -> None:
    server = lose_on_node("n1", *DELETED)
    log_write(server, "nodes", "", put("objectRef", {"resource": "nodes", "name": "n1"}), *DELETED)
    server.wait(1)
    log_absence(server)
    assert "Node n1 was deleted by alice@example.org, unless that was a dry run" in explain(server)


def test_of_the_lease_of_a_node_what_was_done_to_that_before_it_was_gone_is_listed() -> None:
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    node.lead(30)
    server.wait(1)
    about = put("objectRef", {"resource": "nodes", "name": "n1"})
    log_write(server, "nodes", "", about, put("verb", "patch"))
    server.wait(10)
    log_write(server, "nodes", "", about)
    server.delete("kube-node-lease/n1", "system:serviceaccount:kube-system:generic-garbage-collector")
    histories = follow_log(server)
    output = text(make_account(histories, histories.leases["kube-node-lease", "n1"], server.now))
    assert "Node n1 was updated by alice@example.org" in output
    assert "Node n1 was deleted by alice@example.org" in output


def test_a_node_that_was_updated_was_not_to_be_deleted() -> None:
    server = FakeServer()
    node = server.elector("n1", "kube-node-lease/n1", user="system:node:n1", retry=10, duration=40)
    node.identity, node.pod = "n1", ""
    node.lead(50)
    log_write(server, "nodes", "", put("objectRef", {"resource": "nodes", "name": "n1"}), put("verb", "patch"))
    server.wait(90)
    node.renew()
    node.lead(50)
    histories = follow_log(server)
    found = text(make_account(histories, histories.leases["kube-node-lease", "n1"], server.now))
    assert "Node n1 was updated by alice@example.org" in found
    assert "asked for the deletion of its Node" not in found


TAINTED = put("requestObject", {"spec": {"taints": [{"key": "m", "effect": "NoExecute"}]}}), put("level", "Request")
BY_TAINT = put("user.username", "system:serviceaccount:kube-system:node-controller")


def not_ready(name: str, *, source: str = "10.9.9.9", status: str = "False") -> tuple[Tweak, ...]:
    """Changes of a write by which a node says that it is not ready, from an address."""
    sent = {"status": {"conditions": [{"type": "Ready", "status": status, "message": "PLEG is not healthy"}]}}
    by = put("user", {"username": f"system:node:{name}"}), put("sourceIPs", [source]), put("userAgent", "curl/8.5.0")
    return (put("objectRef.subresource", "status"), put("requestObject", sent), *by)


def evict_by_taint(*writes: tuple[float, str, tuple[Tweak, ...]], by: Tweak = BY_TAINT) -> str:
    """A holder on n1 whose pod is deleted; nodes are written at seconds after that; another holder comes after 10 s."""
    server, (db, mail, cart) = shop()
    server.nodes = {"db-0": "n1"}
    together(200, db, mail, cart)
    server.wait(0.5)
    at = server.now
    for after, name, tweaks in writes:
        server.now = at + int(after * SECOND)
        node = put("objectRef", {"resource": "nodes", "name": name})
        log_write(server, "nodes", "", node, put("verb", "patch"), *tweaks)
    server.now = at
    server.delete_pod("db-0", by)
    db.release()
    together(10, mail, cart)
    server.elector("db-1", "shop/db").take()
    server.log.sort(key=lambda event: event["stageTimestamp"])
    return explain(server)


@pytest.mark.parametrize("name", ["n1", "n2"])
@pytest.mark.parametrize("after", [-1.5, 9.0])
def test_taints_around_the_deletion_of_a_pod_for_a_taint_are_listed(name: str, after: float) -> None:
    output = evict_by_taint((after, name, TAINTED))
    assert f"Node {name} was updated by alice@example.org, which left it with the taint m:NoExecute" in output
    assert (
        "was deleted by kube-system/node-controller, as is a pod that does not tolerate a taint of its node" in output
    )


def with_taints(*keys: str, level: str = "RequestResponse") -> tuple[Tweak, ...]:
    """Changes of a patch that repeats taints which others set, with its answer unless the log has requests only."""
    taints = [{"key": key, "effect": "NoExecute"} for key in keys]
    answer = put("responseObject", {"kind": "Node", "spec": {"taints": taints}})
    sent = put("requestObject", {"spec": {"taints": taints}}), put("level", level)
    return (*sent, answer) if level == "RequestResponse" else (*sent, put("responseObject", None))


@pytest.mark.parametrize("level", ["Request", "RequestResponse"])
def test_who_repeats_a_taint_did_not_set_it(level: str) -> None:
    output = evict_by_taint(
        (-1.5, "n1", (*with_taints("gone", level=level), BY_TAINT)), (5, "n1", with_taints("out", "gone", level=level))
    )
    assert "Node n1 was updated by alice@example.org, which set the taint out:NoExecute\n" in output


def test_who_removes_a_taint_did_not_set_those_that_are_left() -> None:
    output = evict_by_taint((-1.5, "n1", with_taints("out", "gone")), (5, "n1", with_taints("gone")))
    assert "which left it with the taints out:NoExecute, gone:NoExecute" in output
    assert "which removed the taint out:NoExecute" in output


@pytest.mark.parametrize(
    "between",
    [
        put("verb", "delete"),
        put("requestObject", None),
    ],
    ids=["a deletion", "not shown"],
)
def test_where_the_taints_before_are_not_known_nobody_is_said_to_have_set_one(between: Tweak) -> None:
    output = evict_by_taint(
        (-1.5, "n1", with_taints("gone")), (2, "n1", (between,)), (5, "n1", with_taints("out", "gone"))
    )
    assert "which left it with the taints out:NoExecute, gone:NoExecute" in output


def test_a_taint_that_evicts_is_listed_beside_the_status_of_its_node() -> None:
    server = lose_on_node("n1", BY_NODE_CONTROLLER, put("objectRef.subresource", "status"), before=30)
    about = put("objectRef", {"resource": "nodes", "name": "n1"}), put("verb", "patch"), BY_NODE_CONTROLLER
    at = put("stageTimestamp", format_micro_time(server.now - 30 * SECOND))
    server.log.append(write_event("nodes", "", *about, at, *with_taints("gone")))
    output = explain(server)
    assert "Node n1 was given another status" in output
    assert "Node n1 was updated by kube-system/node-controller, which left it with the taint gone:NoExecute" in output


def test_a_taint_of_the_controller_that_evicts_is_named_if_the_log_shows_it() -> None:
    output = evict_by_taint((-1.5, "n1", (*TAINTED, BY_TAINT)))
    assert "Node n1 was updated by kube-system/node-controller, which left it with the taint m:NoExecute\n" in output


def test_a_node_that_wrote_that_it_is_not_ready_is_listed_with_where_that_came_from() -> None:
    output = evict_by_taint((-7.5, "n1", not_ready("n1")), (-5.5, "n1", (*TAINTED, BY_TAINT)))
    assert (
        "Node n1 was given another status by system:node:n1, which set Ready to False, from 10.9.9.9 with the user "
        "agent curl\n"
    ) in output


def test_in_a_log_without_bodies_a_write_just_before_to_the_node_of_the_pod_is_listed() -> None:
    assert "Node n1 was updated by alice@example.org" in evict_by_taint((-1.5, "n1", ()))


@pytest.mark.parametrize(
    ("write", "by"),
    [
        ((-1.5, "n2", ()), BY_TAINT),
        ((-130, "n1", TAINTED), BY_TAINT),
        ((-20, "n1", ()), BY_TAINT),
        ((20, "n1", TAINTED), BY_TAINT),
        ((-1.5, "n1", TAINTED), put("user.username", "bob")),
        ((-1.5, "n1", (BY_TAINT,)), BY_TAINT),
        ((-1.5, "n2", (*TAINTED, BY_TAINT)), BY_TAINT),
        ((-1.5, "n2", not_ready("n2")), BY_TAINT),
    ],
    ids=[
        "another node",
        "long before",
        "before",
        "later",
        "deleted by a person",
        "by the controller",
        "another node by the controller",
        "another node that is not ready",
    ],
)
def test_writes_to_nodes_that_need_not_have_led_to_a_deletion_for_a_taint_are_not_listed(
    write: tuple[float, str, tuple[Tweak, ...]], by: Tweak
) -> None:
    assert "Node n" not in evict_by_taint(write, by=by)


POD = "db-7d9c6b5f4-7hq2x"
OFF = put("requestObject", {"spec": {"template": {"spec": {"containers": [{"args": ["--leader-elect=false"]}]}}}})
ON = put("requestObject", {"spec": {"template": {"spec": {"containers": [{"args": ["--leader-elect=true"]}]}}}})
PATCH = put("verb", "patch")
LEFT_OVER = "This lease may be left over: at 11:07:"


def switch(*changes: Tweak, at: int = 20) -> str:
    """A holder that stops after its Deployment was changed, some seconds after it had begun; nobody follows it."""
    server, (db, mail, cart) = shop()
    db.pod = POD
    if at < 0:
        log_write(server, "deployments", "apps", PATCH, *changes)
        server.wait(60)
    together(20, db, mail, cart)
    for change in changes if at > 0 else ():
        server.wait(0.1)
        log_write(server, "deployments", "apps", PATCH, change)
    together(30, mail, cart)
    return explain(server)


def test_an_election_that_was_switched_off_leaves_a_lease_over() -> None:
    output = switch(OFF)
    assert "Deployment shop/db was updated by alice@example.org, which set args (--leader-elect=false)" in output
    assert LEFT_OVER in output
    assert (
        "Z a container of Deployment shop/db was given an argument that switches leader election off; "
        "if it ran the election"
    ) in output


@pytest.mark.parametrize("output", [switch(ON), switch(OFF, ON), switch(OFF, at=-1)], ids=["on", "on again", "before"])
def test_an_election_that_need_not_be_off_is_not_said_to_be(output: str) -> None:
    assert "Deployment shop/db was updated" in output
    assert "left over" not in output


def test_a_patch_that_only_tests_is_no_change() -> None:
    test = put("requestObject", [{"op": "test", "path": "/spec/replicas", "value": 3}])
    assert "Deployment" not in switch(test)


def test_of_copies_of_a_request_that_which_shows_more_is_listed() -> None:
    for order in (1, -1):
        server, (db, mail, cart) = shop()
        db.pod = POD
        together(20, db, mail, cart)
        server.wait(1)
        for tweaks in ([(), (OFF,)])[::order]:
            log_write(server, "deployments", "apps", PATCH, *tweaks)
        together(10, db, mail, cart)
        found = [one for one in explain(server).splitlines() if "Deployment shop/db was updated" in one]
        assert [one.partition("org")[2] for one in found] == [", which set args (--leader-elect=false)"]


def reload(name: str, *tweaks: Tweak, before: float = 6, duration: int = 90) -> str:
    """A holder that has its lease last for another time some seconds after a ConfigMap was written."""
    server, (db, mail, cart) = shop()
    db.pod = POD
    together(20, db, mail, cart)
    server.wait(1)
    about = put("objectRef.name", name)
    log_write(server, "configmaps", "", about, PATCH, *tweaks)
    for _ in range(int(before / 2)):
        together(2, db, mail, cart)
    db.duration = duration
    together(10, db, mail, cart)
    return explain(server)


def test_a_config_map_that_was_written_just_before_a_duration_changed_is_listed() -> None:
    assert "ConfigMap shop/db-config was updated by alice@example.org" in reload("db-config")


@pytest.mark.parametrize(
    "output",
    [
        reload("mail-config"),
        reload("db-config", before=70),
        reload("db-config", duration=15),
        reload("db-config", put("verb", "delete")),
        reload("db-config", put("user.username", "system:serviceaccount:shop:db")),
        reload("db-config", put("objectRef.namespace", "other")),
    ],
    ids=["of another workload", "long before", "no change", "deleted", "by its account", "of another namespace"],
)
def test_a_config_map_that_need_not_be_of_its_settings_is_not_listed(output: str) -> None:
    assert "ConfigMap" not in output


@pytest.mark.parametrize(
    ("message", "kind", "is_renewed", "is_told"),
    [
        (UNREACHED, "validatingwebhookconfigurations", True, True),
        (UNREACHED, "validatingwebhookconfigurations", False, False),
        (WEBHOOK, "validatingwebhookconfigurations", True, False),
        (UNREACHED, "namespaces", True, False),
    ],
    ids=["then renewed", "not renewed since", "refused by a webhook", "a namespace"],
)
def test_a_configuration_that_was_written_after_the_last_failure_of_a_webhook_is_said_to_be(
    message: str, kind: str, *, is_renewed: bool, is_told: bool
) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    for _ in range(8):
        server.wait(2)
        db.fail(500 if message == UNREACHED else 403, message)
    server.wait(1)
    log_write(server, kind, ADMISSION if kind != "namespaces" else "", put("verb", "update"))
    server.wait(1)
    for _ in range(3 if is_renewed else 0):
        together(2, db, mail, cart)
    output = explain(server)
    assert " was updated by alice@example.org" in output
    assert (", after the last write of the lease that failed because of a webhook" in output) is is_told


@pytest.mark.parametrize(
    ("name", "after", "is_said"),
    [("db-0", 20, True), ("db-1", 20, False), ("db-0", 60, False)],
    ids=["its pod", "another pod", "its pod, once another one holds the lease"],
)
def test_a_container_for_debugging_in_the_pod_of_a_holder_is_said(name: str, after: int, *, is_said: bool) -> None:
    server, (db, mail, cart) = shop()
    follower = server.elector("db-1", "shop/db")
    together(20, db, mail, cart)
    for second in range(20, 70, 2):
        if second == after:
            log_write(server, "pods", "", *DEBUGGED, put("objectRef.name", name))
        together(2, *([follower] if second >= 40 else []), mail, cart)
    said = f"Pod shop/{name} was given an ephemeral container that runs gdb by alice@example.org"
    assert (said in explain(server)) is is_said


def test_a_container_for_debugging_in_a_pod_of_no_account_is_no_holder() -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db", user="nina@example.org", pod="")
    holder.lead(20)
    log_write(server, "pods", "", *DEBUGGED)
    holder.lead(4)
    assert "ephemeral" not in explain(server)


@pytest.mark.parametrize(
    ("strategy", "reader", "account", "is_said"),
    [
        ("acme.example/PreferZoneB", "zones-7f99c47b78-jqhhb", "shop:zones", True),
        ("OldestEmulationVersion", "zones-7f99c47b78-jqhhb", "shop:zones", False),
        (None, "zones-7f99c47b78-jqhhb", "shop:zones", False),
        ("acme.example/PreferZoneB", "other-7f99c47b78-jqhhb", "shop:zones", False),
        ("acme.example/PreferZoneB", "zones-7f99c47b78-jqhhb", "elsewhere:zones", False),
    ],
    ids=["a strategy of others", "that of API servers", "no strategy", "another workload", "another namespace"],
)
def test_a_workload_that_may_choose_the_holder_is_said_to_be_scaled(
    strategy: str | None, reader: str, account: str, *, is_said: bool
) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    chooser = server.elector(reader, "shop/db", user=f"system:serviceaccount:{account}")
    holder.take(strategy=strategy)
    for _ in holder.ticks(20):
        holder.renew(strategy=strategy)
        chooser.ask()
    scaled = (put("verb", "patch"), put("requestObject", {"spec": {"replicas": 0}}), put("objectRef.name", "zones"))
    log_write(server, "deployments", "apps", *scaled)
    for _ in holder.ticks(4):
        holder.renew(strategy=strategy)
    said = "Deployment shop/zones was updated by alice@example.org, which set replicas 0"
    assert (said in explain(server)) is is_said


BY_PROGRAM = put("user.username", "system:serviceaccount:flux-system:kustomize-controller")


@pytest.mark.parametrize(
    ("kind", "tweaks", "is_doubtful"),
    [
        ("rolebindings", (put("verb", "patch"), put("level", "Metadata"), BY_PROGRAM), True),
        ("rolebindings", (put("verb", "patch"), put("level", "Metadata")), False),
        ("rolebindings", (put("verb", "update"), put("level", "Metadata"), BY_PROGRAM), False),
        ("rolebindings", (put("verb", "patch"), put("requestObject", {"subjects": []}), BY_PROGRAM), False),
        ("configmaps", (put("verb", "patch"), put("level", "Metadata"), BY_PROGRAM), False),
    ],
    ids=[
        "a patch that is not shown",
        "a patch by a person",
        "an update",
        "a patch that is shown",
        "a patch of settings",
    ],
)
def test_a_patch_of_rights_that_a_log_does_not_show_may_have_changed_nothing(
    kind: str, tweaks: tuple[Tweak, ...], is_doubtful: bool
) -> None:
    group = "" if kind == "configmaps" else "rbac.authorization.k8s.io"
    (write, *_) = read_events(write_event(kind, group, *tweaks))
    assert ("unless its patch changed nothing" in describe_related_write(write)) is is_doubtful
