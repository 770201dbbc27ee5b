"""Advice: the command fits the cause, and no one is advised to give rights to a stranger."""

import re
from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_both import NAMES, found_in
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, advise, follow_log, follow_watch
from tests.history.test_refusal import RIGHTS, WEBHOOK
from webhook.admission.rules.change import GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER
from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.commands import (
    Pod,
    advise_on_log_of_writer,
    make_command_for_log_of_pod,
    make_command_for_pod_of_writer,
    make_command_for_rights,
)
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.handovers import FREQUENT, FREQUENT_WITHIN
from webhook.analysis.claims.presentation.advise import advise as advise_account
from webhook.analysis.inputs.items import Writer
from webhook.analysis.named_pods import find_named_pod, guess_named_pod
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND

TERMINATED = (
    'leases.coordination.k8s.io "db" is forbidden: unable to create new content in namespace shop because it is being '
    "terminated"
)


def advise_after_expiry(message: str, *, user: str = "system:serviceaccount:shop:db", code: int = 403) -> str:
    """Return the advice if a write of another pod is refused after the lease has expired."""
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    together(30, mail, cart)
    server.elector("db-1", "shop/db", user=user).fail(code, message)
    return advise(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("message", "sentence", "command"),
    [
        (WEBHOOK, "See why webhook leases.lease-webhook.svc refuses the writes of shop/db:", "lease-webhook doctor"),
        (RIGHTS, "shop/db lacked the right to update", "kubectl auth can-i update leases."),
        (
            TERMINATED,
            "The lease could not be created, because its namespace was being deleted",
            "kubectl get namespace shop",
        ),
    ],
    ids=["a webhook", "rights", "a namespace that is deleted"],
)
def test_what_refuses_the_next_holder_is_what_to_look_at(message: str, sentence: str, command: str) -> None:
    advice = advise_after_expiry(message)
    assert advice.startswith(f"No other can take the lease while its writes are refused. {sentence}")
    assert command in advice


def test_a_quota_is_not_a_missing_right() -> None:
    message = 'leases.coordination.k8s.io "db" is forbidden: exceeded quota: few, requested: count/leases=1'
    advice = advise_after_expiry(message)
    assert "A ResourceQuota of the namespace left no room for the write of shop/db" in advice
    assert advice.endswith("kubectl -n shop describe resourcequota few")


def test_an_invalid_write_of_the_next_holder_is_not_about_rights() -> None:
    advice = advise_after_expiry("Lease is invalid: spec.leaseTransitions", code=422)
    assert "The API server refused what shop/db wrote" in advice
    assert advice.endswith("kubectl -n shop get lease db -o yaml")


def test_the_refused_writes_of_a_stranger_are_not_what_keeps_a_lease_free() -> None:
    advice = advise_after_expiry(RIGHTS, user="system:serviceaccount:shop:mallory")
    assert advice.startswith("Check whether db-0_1 still runs, and whether another replica runs that can take over:")
    assert "auth can-i" not in advice


def test_a_stranger_needs_no_rights() -> None:
    server, electors = shop()
    together(40, *electors)
    server.elector("x", "shop/db", user="system:serviceaccount:shop:mallory").fail(
        403, RIGHTS.replace("update", "delete")
    )
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("shop/mallory lacked the right, and did not hold the lease in this input.")
    assert "kubectl auth can-i delete leases.coordination.k8s.io/db -n shop" in advice


@pytest.mark.parametrize(
    ("user", "sentence", "command"),
    [
        (
            NAMESPACE_CONTROLLER,
            "The namespace of the lease was deleted with everything in it.",
            "kubectl get namespace shop",
        ),
        (
            GARBAGE_COLLECTOR,
            "Kubernetes deletes an object if none of the owners that it names exists.",
            "lease-webhook writers shop/db",
        ),
        ("alice", "Decide whether alice should delete leases.", "lease-webhook writers shop/db"),
    ],
)
@pytest.mark.parametrize("is_created_again", [True, False], ids=["created again", "gone"])
def test_who_deleted_a_lease_decides_what_to_look_at(
    user: str, sentence: str, command: str, is_created_again: bool
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(1)
    server.delete("shop/db", user)
    if is_created_again:
        server.wait(1)
        db.lead(10)
    advice = advise(account(follow_log(server), server.now))
    if is_created_again or user != "alice":
        assert advice.startswith(sentence)
        assert command in advice
    else:
        assert advice.endswith("kubectl -n shop get leases --field-selector metadata.name=db --watch")


@pytest.mark.parametrize(
    ("users", "names"),
    [
        (("bo", "ada"), "bo and ada"),
        (("ada", "bo", "ada"), "bo and ada"),
        (("ada", "ada"), "ada"),
        ((GARBAGE_COLLECTOR, "ada"), "ada"),
    ],
    ids=["two people", "one of them twice", "one person", "the garbage collector before"],
)
def test_all_who_deleted_a_held_lease_are_to_be_asked(users: tuple[str, ...], names: str) -> None:
    server, (db, *_) = shop()
    for number, user in enumerate(users):
        server.elector(f"db-{number}", "shop/db").lead(20)
        server.delete("shop/db", user)
        server.wait(1)
    db.lead(10)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith(f"Decide whether {names} should delete leases.")


@pytest.mark.parametrize("is_own", [True, False], ids=["as a release", "of an expired lease"])
def test_who_deleted_a_lease_without_harm_is_not_asked(is_own: bool) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(1 if is_own else 30)
    server.delete("shop/db", db.user if is_own else "bo", db.pod if is_own else "")
    server.wait(1)
    other = server.elector("db-1", "shop/db")
    other.lead(20)
    server.delete("shop/db", "ada")
    server.wait(1)
    db.lead(10)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("Decide whether ada should delete leases.")


@pytest.mark.parametrize(
    ("remover", "sentence"),
    [
        ("curl", "The audit log shows who removed the holder:"),
        ("kubectl-edit", "Check whether ghost_1, which lost the lease,"),
    ],
    ids=["as the next holder", "as neither holder"],
)
def test_of_a_holder_that_came_by_a_removal_under_its_field_manager_the_removal_is_looked_at(
    remover: str, sentence: str
) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    server.elector("db-0", "shop/db", manager=remover).release()
    ghost = server.elector("ghost", "shop/db", manager="curl")
    together(20, ghost, mail, cart)
    together(20, mail, cart)
    together(20, db, mail, cart)
    found = account(follow_watch(server), server.now)
    assert {"holder-removed", "leader-lost"} <= {one.check for one in found.findings}
    assert sentence in advise(found)


GONE = 'namespaces "shop" not found'


@pytest.mark.parametrize(
    ("answers", "is_there"),
    [
        ([], False),
        ([(403, TERMINATED)], True),
        ([(403, TERMINATED), (404, GONE)], False),
        ([(403, f'{RIGHTS}, as "{TERMINATED}"')], False),
    ],
    ids=["nothing was created since", "it was not gone", "it was gone then", "a text that quotes that answer"],
)
def test_a_namespace_that_waits_for_what_is_left_in_it_is_not_said_to_be_gone(
    answers: list[tuple[int, str]], is_there: bool
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(1)
    server.delete("shop/db", NAMESPACE_CONTROLLER)
    for code, message in answers:
        server.wait(2)
        db.fail(code, message, verb="create")
    found = account(follow_log(server), server.now)
    (deleted,) = (one for one in found.findings if isinstance(one, Claim) and one.check == "lease-deleted")
    for advice in (advise(found), f"{deleted.advice} {deleted.fix}"):
        assert ("waits for the finalizers of what is left" in advice) == is_there
        assert ("deleted with everything in it" in advice) <= (not is_there)
        assert advice.endswith("kubectl get namespace shop -o yaml") == is_there


def test_a_namespace_that_is_there_again_has_nothing_left_of_the_one_before() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(1)
    server.delete("shop/db", NAMESPACE_CONTROLLER)
    server.wait(2)
    db.fail(403, TERMINATED, verb="create")
    server.wait(2)
    db.lead(10)
    (deleted,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-deleted")
    assert deleted.fix == "kubectl get namespace shop"


@pytest.mark.parametrize(
    ("user", "severity"),
    [(NAMESPACE_CONTROLLER, Severity.WARNING), ("alice", Severity.ERROR)],
    ids=["with its namespace", "alone"],
)
def test_the_pods_of_a_deleted_namespace_do_not_lead_beside_those_of_the_next_one(
    user: str, severity: Severity
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(1)
    server.delete("shop/db", user)
    server.wait(1)
    server.elector("db-1", "shop/db").lead(10)
    (deleted,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-deleted")
    assert deleted.severity is severity
    assert ("two may have led at once" in deleted.message) is (user == "alice")


def test_missing_rights_come_before_what_the_namespace_controller_deleted() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db", NAMESPACE_CONTROLLER)
    server.wait(2)
    db.fail(403, RIGHTS)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("shop/db lacked the right to update the lease;")


@pytest.mark.parametrize("replicas", [FREQUENT, FREQUENT + 1], ids=["a rolling restart", "more often"])
def test_a_lease_that_is_passed_on_again_and_again_is_not_well(replicas: int) -> None:
    server = FakeServer()
    for number in range(replicas):
        elector = server.elector(f"db-{number}", "shop/db")
        elector.lead(6)
        if number < replicas - 1:
            elector.release()
    advice = advise(account(follow_log(server), server.now))
    if replicas == FREQUENT:
        assert advice == "It is held and renewed; a lease does not show whether its holder works."
    else:
        assert advice.startswith("The lease is held and renewed, but its holder changed 4 times since 11:06:46Z.")
        assert advice.endswith(f"kubectl -n shop logs db-{replicas - 1}")


def test_a_holder_that_takes_its_own_lease_again_and_again_has_not_changed() -> None:
    server = FakeServer()
    elector = server.elector("db-0", "shop/db")
    for _ in range(FREQUENT + 1):
        elector.lead(6)
        elector.release()
        server.wait(1)
    elector.lead(6)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("It is held now. See why pod db-0 takes it and releases it again and again: kubectl -n ")


def test_changes_of_yesterday_are_not_frequent() -> None:
    server = FakeServer()
    for number in range(FREQUENT + 1):
        elector = server.elector(f"db-{number}", "shop/db")
        elector.lead(6)
        if number < FREQUENT:
            elector.release()
    elector.lead(FREQUENT_WITHIN / SECOND + 10)
    assert (
        advise(account(follow_log(server), server.now))
        == "It is held and renewed; a lease does not show whether its holder works."
    )


def write_holder_in(*, wait: float) -> FakeServer:
    """Return a server on which alice wrote a holder into a free lease."""
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(20, db, mail)
    db.release()
    server.elector("alice", "shop/db", user="alice").take(holderIdentity="ghost-0_1")
    together(wait, mail)
    return server


def test_of_a_holder_that_never_ran_it_is_not_asked_why_it_stopped() -> None:
    server = write_holder_in(wait=30)
    answer = account(follow_log(server), server.now)
    assert make_headline(answer).startswith(
        "alice from pod alice wrote ghost-0_1 into it 30 s ago, and ghost-0_1 has not renewed it"
    )
    assert advise(answer).startswith("Check whether ghost-0_1, which alice from pod alice wrote in, exists:")
    assert advise(answer).endswith(" kubectl -n shop get pods")


def advise_on_slow_renewals(holder: str, **settings: Any) -> str:
    """Return the advice about a holder that renews less often than its lease expires."""
    server, (_, mail, cart) = shop()
    slow = server.elector(holder, "shop/db", duration=5, retry=8.0, pod="" if "." in holder else holder, **settings)
    slow.take()
    for _ in range(6):
        together(8, mail, cart)
        slow.renew()
    together(6, mail, cart)
    return advise(account(follow_log(server), server.now))


def test_a_holder_that_renews_too_rarely_is_not_looked_for() -> None:
    advice = advise_on_slow_renewals("db-0")
    assert advice.startswith("Let it renew several times within the lease's duration.")
    assert advice.endswith("kubectl -n shop get pod db-0 -o jsonpath='{..args}'")


def test_of_a_holder_without_a_pod_that_renews_too_rarely_the_lease_is_looked_at() -> None:
    advice = advise_on_slow_renewals("host.example", user="alice")
    assert advice.endswith("To see the lease: kubectl -n shop get lease db -o yaml")


def test_a_single_request_of_a_former_holder_does_not_show_that_it_went_on() -> None:
    """A process may have sent it before it ended, and a proxy held it back."""
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    together(20, mail, cart)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    together(2, follower, mail, cart)
    db.fail(409, "the object has been modified")
    together(8, follower, mail, cart)
    said = text(account(follow_log(server), server.now))
    assert (
        "ADVICE A request for the lease by the pod of db-0_1, which lost the lease, came later; see whether it runs:"
        in said
    )
    assert "a write by pod db-0, the previous holder, was refused, as another one had come before it (409)" in said
    assert "had been" not in said
    assert "asks for the lease" not in said


def test_a_pod_that_was_heard_again_has_logs() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    together(20, mail, cart)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    for _ in range(4):
        together(2, follower, mail, cart)
        db.ask()
    advice = advise(account(follow_log(server), server.now))
    sentence = "The pod of db-0_1, which lost the lease, asked for it again; see what it did meanwhile:"
    previous = "kubectl -n shop logs db-0 --previous --all-containers --ignore-errors"
    assert advice == f"{sentence} kubectl -n shop logs db-0; {previous}"


@pytest.mark.parametrize(
    ("user", "sentence", "command"),
    [
        ("system:serviceaccount:shop:db", "Give each replica an identity of its own", "describe pods db-"),
        ("system:serviceaccount:shop:mallory", "Find out why shop/mallory renewed it as db-0_1.", "pod db-1"),
    ],
    ids=["a replica", "another user"],
)
def test_who_shares_an_identity_decides_what_to_do(user: str, sentence: str, command: str) -> None:
    server, (db, *_) = shop()
    other = server.elector("db-1", "shop/db", user=user)
    db.lead(10)
    for _ in range(6):
        server.wait(1)
        other.renew(holderIdentity="db-0_1")
        server.wait(1)
        db.renew()
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith(sentence)
    assert command in advice


def test_pods_of_one_name_cannot_be_told_to_use_it_as_their_identity() -> None:
    server, (db, *_) = shop()
    db.identity = "db-0"
    db.take()
    for number in range(8):
        server.wait(2)
        server.uids["db-0"] = f"uid-{number % 2}"
        db.renew()
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "2 pods renew it as db-0"
    assert "at least shop/db from pod db-0, 2 pods by their uids, as if each led" in text(answer)
    assert advise(answer).startswith("Check whether an earlier pod of that name still runs")


def test_a_writer_that_is_not_known_has_no_empty_name() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("db-1", "shop/db").fail_unauthenticated()
    (refused,) = (one for one in account(follow_log(server), server.now).findings if one.check == "write-refused")
    assert refused.message.startswith("1 write by an unknown user (test at 10.")


@pytest.mark.parametrize(
    ("holder", "pod"),
    [
        pytest.param("db-7d4b9c-x2x8p_8c1", "db-7d4b9c-x2x8p", id="a pod and something random"),
        pytest.param("db-0", "db-0", id="a pod"),
        pytest.param("bc82e343-1fbe-4674-9738-16e9007b6474", "", id="a UUID alone"),
        pytest.param("db-0-bc82e343-1fbe-4674-9738-16e9007b6474", "db-0", id="a pod and a UUID after a hyphen"),
        pytest.param(
            "ci-bc82e343-1fbe-4674-9738-16e9007b6474_8c1",
            "ci-bc82e343-1fbe-4674-9738-16e9007b6474",
            id="a pod with a UUID",
        ),
        pytest.param("db 0", "", id="what no pod can be called"),
    ],
)
def test_commands_name_a_pod_only_if_the_holder_may_be_one(holder: str, pod: str) -> None:
    assert find_named_pod(holder) == pod


@pytest.mark.parametrize(
    ("holder", "pod"),
    [
        pytest.param("db-7d4b9c-x2x8p_8c1", "db-7d4b9c-x2x8p", id="a pod and something random"),
        pytest.param("db", "", id="no controller calls a pod so"),
        pytest.param("db-bc82e343-1fbe-4674-9738-16e9007b6474", "", id="and with a UUID it is the same"),
        pytest.param("laptop-7.local_8c1", "", id="a machine"),
    ],
)
def test_a_text_that_is_most_likely_no_pod_is_not_looked_for_as_one(holder: str, pod: str) -> None:
    assert guess_named_pod(holder) == pod


@pytest.mark.parametrize(
    ("pod", "command"),
    [
        pytest.param("ci-bc82e343-1fbe-4674-9738-16e9007b6474", "describe pod {pod}", id="a pod with a UUID"),
        pytest.param("$(id)", "get pods", id="what no pod can be called"),
    ],
)
def test_the_pod_of_a_writer_is_shown_by_its_whole_name(pod: str, command: str) -> None:
    shown = make_command_for_pod_of_writer("shop", Writer("system:serviceaccount:shop:ci", pod=pod))
    assert shown == f"kubectl -n shop {command.format(pod=pod)}"


@pytest.mark.parametrize(
    ("pod", "command"),
    [
        pytest.param("ci-bc82e343-1fbe-4674-9738-16e9007b6474", "-n ci logs {pod}", id="a pod with a UUID"),
        pytest.param("db", "-n ci logs db", id="a pod without a hyphen"),
        pytest.param("", "-n shop logs db-0", id="no pod, but one that the holder names"),
    ],
)
def test_the_log_of_the_pod_of_a_writer_is_shown_by_its_whole_name(pod: str, command: str) -> None:
    writer = Writer("system:serviceaccount:ci:ci", pod=pod)
    shown = advise_on_log_of_writer("", "shop", writer, "db-0-bc82e343-1fbe-4674-9738-16e9007b6474").command
    assert shown == f"kubectl {command.format(pod=pod)}"


def test_of_a_pod_that_is_not_known_all_are_shown() -> None:
    assert make_command_for_log_of_pod(Pod("shop", "")) == "kubectl -n shop get pods"


def test_of_a_holder_that_renews_too_rarely_and_is_a_machine_all_pods_are_shown() -> None:
    advice = advise_on_slow_renewals("laptop-7.local")
    assert advice.endswith("kubectl -n shop get pods -o jsonpath='{..args}'")


@pytest.mark.parametrize(
    ("writer", "sentence"),
    [
        (Writer("admin", groups=("system:masters", "system:authenticated")), "admin is in system:masters, which has"),
        (Writer("system:apiserver"), "An API server has"),
        (
            Writer("ci", impersonator="root", impersonator_groups=("system:masters",)),
            "root is in system:masters, which has",
        ),
    ],
    ids=["an administrator", "an API server", "an administrator who acts as another user"],
)
def test_rights_that_are_known_are_not_asked_for(writer: Writer, sentence: str) -> None:
    server, (db, *_) = shop()
    together(10, db)
    advice = advise_on_writer("Find out why.", account(follow_log(server), server.now).history, writer)
    assert advice.sentence == f"Find out why. {sentence} every right. To see the lease:"
    assert advice.command == "kubectl -n shop get lease db -o yaml --show-managed-fields"


DB = "system:serviceaccount:shop:db"
IMPERSONATE = "To see whether karl may impersonate"
CAN_I = "kubectl auth can-i impersonate"


@pytest.mark.parametrize(
    ("writer", "expected"),
    [
        (
            Writer("system:serviceaccount:ops:job", pod="job-x2x8p"),
            "To see the pod that did it: kubectl -n ops describe pod job-x2x8p",
        ),
        (Writer(DB, pod="db-debug"), "To see the pod that did it: kubectl -n shop describe pod db-debug"),
        (
            Writer(DB),
            "To see the pods of that account: kubectl -n shop get pods --field-selector spec.serviceAccountName=db",
        ),
        (
            Writer("system:serviceaccount:shop:hooks"),
            "To see what gives shop/hooks the right: lease-webhook writers shop/db",
        ),
        (
            Writer(DB, impersonator="karl", impersonator_groups=("ops team", "system:authenticated")),
            f"{IMPERSONATE} shop/db: {CAN_I} serviceaccounts/db -n shop --as=karl --as-group='ops team'",
        ),
        (
            Writer("alice", pod="db-0", impersonator="karl"),
            f"{IMPERSONATE} alice: {CAN_I} users/alice --as=karl",
        ),
        (Writer(), "To see the lease: kubectl -n shop get lease db -o yaml --show-managed-fields"),
    ],
    ids=[
        "a pod of another namespace",
        "a pod of the electors' account",
        "the electors' account without a pod",
        "another account without a pod",
        "a person who acts as the electors' account",
        "a person who acts as another one, and may name any pod",
        "an unknown writer",
    ],
)
def test_a_writer_decides_how_to_find_out_more(writer: Writer, expected: str) -> None:
    server, (db, *_) = shop()
    together(10, db)
    advice = advise_on_writer("Find out why.", account(follow_log(server), server.now).history, writer)
    assert f"{advice.sentence} {advice.command}" == f"Find out why. {expected}"


def test_the_user_of_electors_that_is_no_service_account_has_no_pods() -> None:
    server, (db, *_) = shop()
    db.user = "db-operator"
    together(10, db)
    answer = account(follow_log(server), server.now)
    advice = advise_on_writer("Find out why.", answer.history, Writer("db-operator"))
    assert advice.sentence == "Find out why. To see the lease:"


@pytest.mark.parametrize(
    ("writer", "options"),
    [
        (Writer("jane", groups=("ops team", "system:authenticated")), " --as=jane --as-group='ops team'"),
        (Writer(DB, groups=("system:serviceaccounts", "system:authenticated")), f" --as={DB}"),
        (Writer(), ""),
    ],
    ids=["a user has groups", "the API server knows those of a service account", "nobody"],
)
def test_rights_are_asked_for_with_the_groups_of_a_user(writer: Writer, options: str) -> None:
    asked = make_command_for_rights("update", "shop", "db", writer)
    assert asked == f"kubectl auth can-i update leases.coordination.k8s.io/db -n shop{options}"


def lose(holder: str, **settings: str) -> FakeServer:
    """Return a server on which a holder stopped, and another one took the expired lease."""
    server, (_, mail, cart) = shop()
    together(40, server.elector(holder, "shop/db", **settings), mail, cart)
    together(20, mail, cart)
    together(10, server.elector("db-1", "shop/db"), mail, cart)
    return server


GIVEN = "To see what gives tariq the right: lease-webhook writers shop/db"
EVENTS = "kubectl -n shop get events --field-selector involvedObject.name="


def test_a_pod_that_may_be_gone_is_looked_for_in_events_too() -> None:
    server = lose("db-0")
    sentence = f"See the pod of db-0_1, which lost the lease: kubectl -n shop describe pod db-0 || {EVENTS}db-0"
    assert advise(account(follow_log(server), server.now)) == sentence


def test_a_holder_is_not_presumed_to_be_a_pod_if_only_its_text_may_name_one() -> None:
    server = lose("agg-eu-1")
    advice = advise(account(follow_watch(server), server.now))
    assert advice.startswith(
        "If agg-eu-1_1, which lost the lease, is a pod, see it: kubectl -n shop describe pod agg-eu-1"
    )


def test_a_person_is_not_looked_for_as_a_pod() -> None:
    server = lose("tariq-devbox", user="tariq", pod="")
    sentence = "Look where tariq-devbox_1 runs: it writes as tariq, and not with the token of a pod."
    advice = advise(account(follow_log(server), server.now))
    assert advice == f"{sentence} {GIVEN}"


@pytest.mark.parametrize(
    ("settings", "view", "expected"),
    [
        ({}, follow_log, "Check whether db-0_1 still runs, and whether another replica"),
        ({}, follow_watch, "Check whether db-0_1, perhaps a pod, still runs, and whether another replica"),
        ({"user": "tariq", "pod": ""}, follow_log, "Check whether db-0_1 still runs, and whether another replica"),
    ],
    ids=["a pod by a log", "a text of a watch", "a person by a log"],
)
def test_an_expired_holder_is_looked_for_as_what_it_is_known_to_be(
    settings: dict[str, str], view: View, expected: str
) -> None:
    server, (_, mail, cart) = shop()
    together(40, server.elector("db-0", "shop/db", **settings), mail, cart)
    together(20, mail, cart)
    advice = advise(account(view(server), server.now))
    assert advice.startswith(expected)
    assert ("describe pod" in advice) is (not settings)


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["a log", "a watch"])
@pytest.mark.parametrize("is_back", [True, False], ids=["late", "silent"])
def test_a_node_is_no_pod_and_may_renew(view: View, is_back: bool) -> None:
    server, (_, mail, cart) = shop()
    node = server.elector("worker-7", "kube-node-lease/worker-7", user="system:node:worker-7", pod="")
    node.identity = "worker-7"
    together(40, node, mail, cart)
    together(60, mail, cart)
    if is_back:
        together(10, node, mail, cart)
    histories = view(server)
    advice = advise(make_account(histories, histories.leases["kube-node-lease", "worker-7"], server.now))
    assert advice.endswith("kubectl describe node worker-7")
    assert advice.startswith(
        "See why node worker-7 did not report:" if is_back else "See why the node does not report:"
    )


def test_a_node_that_may_not_renew_is_looked_at() -> None:
    server, (_, mail, cart) = shop()
    node = server.elector("worker-7", "kube-node-lease/worker-7", user="system:node:worker-7", pod="")
    node.identity = "worker-7"
    together(40, node, mail, cart)
    node.fail(403, RIGHTS)
    histories = follow_log(server)
    answer = make_account(histories, histories.leases["kube-node-lease", "worker-7"], server.now)
    assert advise(answer).startswith("The API server refused the requests of system:node:worker-7. To see the node:")
    assert advise(answer).endswith("kubectl describe node worker-7")


def test_who_kept_the_lease_of_a_dead_holder_is_what_to_look_at() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    toolbox = server.elector("toolbox", "shop/db", user="system:serviceaccount:ops:toolbox")
    for _ in range(10):
        together(2, mail, cart)
        toolbox.renew(holderIdentity="db-0_1")
    together(20, mail, cart)
    together(10, server.elector("db-1", "shop/db"), mail, cart)
    sentence = "Find out why ops/toolbox renewed it as db-0_1. To see the pod that did it:"
    assert advise(account(follow_log(server), server.now)) == f"{sentence} kubectl -n ops describe pod toolbox"


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (("v2",), "The API server refused what pod v2 wrote; compare images with the holder's:"),
        (("db-0",), "The API server refused what shop/db wrote. To see the lease:"),
        (("a", "b", "c"), "The API server refused what pods a, b and c wrote; compare"),
        (("a", "b", "c", "d", "e"), "The API server refused what pods b, c, d, e and 1 other wrote; compare"),
        (("a", "b", "c", "d", "db-0"), "The API server refused what shop/db wrote. To see the lease:"),
    ],
    ids=["another pod", "the holder's own", "three", "five", "the holder's own among five"],
)
def test_of_one_account_the_pods_that_were_refused_are_named(pods: tuple[str, ...], expected: str) -> None:
    server, (db, *_) = shop()
    together(10, db)
    server.wait(1)
    for pod in pods:
        server.elector(pod, "shop/db").fail(400, "cannot parse")
    together(10, db)
    assert advise(account(follow_log(server), server.now)).startswith(expected)


def test_refusals_explain_that_no_one_took_a_lease_for_long() -> None:
    server, (db, *_) = shop()
    together(10, db)
    db.release()
    new = server.elector("db-v2", "shop/db")
    for _ in range(15):
        server.wait(3)
        new.fail(400, "cannot parse")
    server.wait(1)
    together(10, server.elector("db-1", "shop/db"))
    answer = account(follow_log(server), server.now)
    assert {"taken-late", "write-refused"} <= {found.check for found in answer.findings}
    sentence = "The API server refused what pod db-v2 wrote; compare images with the holder's:"
    assert advise(answer) == f"{sentence} kubectl -n shop get pods,replicasets -o wide"


@pytest.mark.parametrize(
    ("settings", "view", "expected"),
    [
        ({}, follow_log, "See what db-1_1 did before it took the lease: kubectl -n shop logs db-1"),
        (
            {},
            follow_watch,
            "If db-1_1 is a pod, see when it started, then its log: kubectl -n shop describe pod db-1",
        ),
        (
            {"user": "tariq", "pod": ""},
            follow_log,
            f"See what db-1_1 did before it took the lease: it writes as tariq, not with the token of a pod. {GIVEN}",
        ),
    ],
    ids=["a pod by a log", "a text of a watch", "a person by a log"],
)
def test_who_took_a_lease_late_is_looked_for_as_what_it_is_known_to_be(
    settings: dict[str, str], view: View, expected: str
) -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    together(60, mail, cart)
    together(10, server.elector("db-1", "shop/db", **settings), mail, cart)
    answer = account(view(server), server.now)
    (late,) = (found for found in answer.findings if isinstance(found, Claim) and found.check == "taken-late")
    assert f"{late.advice} {late.fix}" == expected


def test_of_two_thefts_the_latest_one_is_to_be_explained() -> None:
    server, (db, *others) = shop()
    together(10, db, *others)
    for number in (1, 2):
        thief = server.elector(f"db-{number}", "shop/db")
        thief.take()
        together(10, thief, *others)
    assert advise(account(follow_log(server), server.now)).startswith("Find out why db-2_1 does not wait")


@pytest.mark.parametrize("name", NAMES)
def test_an_advice_names_the_pods_that_its_command_shows(name: str) -> None:
    advice = advise_account(found_in(name, "log"))
    assert set(advice.pods) == set(re.findall(r"(?:pod|logs) ([\w.-]+)", advice.command))
