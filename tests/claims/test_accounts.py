"""The account of elections whose truth is known: who led, why the leader changed, where to look."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import SECOND, FakeServer, strip_stamps, together
from tests.history.observing import View, advise, cluster_of, follow_both, follow_log, follow_metadata, follow_watch
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.words import format_age, format_clock, format_count, format_name
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.succession import MAX_TENURES
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.status import LeaseState
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.findings import Severity
from webhook.kubernetes.times import format_length, format_time


def test_a_leader_at_work() -> None:
    server, electors = shop()
    together(60, *electors)
    output = text(account(follow_log(server), server.now))
    assert output.startswith(
        "db-0_1 holds it since 11:06:40Z, renewed 0 s ago\nHeld by: db-0_1, since 11:06:40Z (1 min 0 s ago)\n"
    )
    assert "Last renewed: 11:07:40Z, 0 s ago, by shop/db from pod db-0, field manager operator" in output
    assert "Expires: 11:07:55Z (in 15 s) unless renewed" in output
    assert output.endswith("ADVICE It is held and renewed; a lease does not show whether its holder works.")


def test_a_crash_is_the_fault_of_the_client() -> None:
    server, (db, mail, cart) = shop()
    together(60, db, mail, cart)
    together(16, mail, cart)
    follower = server.elector("db-1", "shop/db")
    follower.ask()
    follower.take()
    together(20, follower, mail, cart)
    output = text(account(follow_log(server), server.now))
    assert "db-1_1 took it (shop/db from pod db-1) after db-0_1 let it expire; not renewed for up to 16 s" in output
    assert (
        "16 s before db-1_1 took the expired lease at 11:07:56Z. For most of that time the log has no answered request "
        "for the lease from its pod (it may have ended, or been paused, blocked or cut off); "
        "2 other leases were "
        "renewed on time." in output
    )
    assert "ADVICE See the pod of db-0_1, which lost the lease: kubectl -n shop describe pod db-0 || " in output


def test_of_many_leases_a_sample_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.analysis.history.history_index.MAX_COMPARED", 3)
    server = FakeServer()
    electors = [server.elector("db-0", "shop/db"), *(server.elector(name, f"shop/{name}") for name in "abcdefgh")]
    together(60, *electors)
    server.wait(20)
    together(20, *electors)
    output = text(account(follow_log(server), server.now))
    assert "3 of a sample of 3 other leases due at least twice were late at the same time" in output


def outage(leases: int = 4, *, are_taken: bool = False, reads: int = 0, nodes: int = 4) -> FakeServer:
    """Return a server that stored nothing for 20 s; then all leases but `db` are renewed, or all are taken."""
    names = ["db", "mail", "cart", "index"][:leases]
    server = FakeServer(nodes={f"{lease}-0": f"n{number % nodes}" for number, lease in enumerate(names)})
    leaders, others = ([server.elector(f"{lease}-{it}", f"shop/{lease}") for lease in names] for it in (0, 1))
    together(60, *leaders)
    for second in range(20):
        server.wait(1)
        if 5 <= second < 5 + reads:
            others[0].ask()
    electors = others if are_taken else [others[0], *leaders[1:]]
    for elector in electors if are_taken else electors[:1]:
        elector.take()
    together(20, *electors)
    return server


@pytest.mark.parametrize("are_taken", [False, True], ids=["which go on", "which all change their holders"])
def test_an_outage_is_the_fault_of_the_server(are_taken: bool) -> None:
    server = outage(are_taken=are_taken)
    output = text(account(follow_watch(server), server.now))
    assert "all 3 other leases due at least twice were late at the same time" in output
    assert "kubectl get --raw '/readyz?verbose'" in output


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"leases": 3}, "both other leases due at least twice were late at the same time, too few to tell"),
        ({"leases": 2}, "the other lease due at least twice was late at the same time, too few to tell"),
        (
            {"nodes": 1},
            "all 3 other leases due at least twice were late at the same time, and all holders were on",
        ),
        ({"reads": 5}, "at the same time, but the API server answered at least 5 reads of this lease meanwhile."),
    ],
    ids=["two other leases", "one other lease", "holders on one node", "reads that were answered"],
)
def test_an_outage_that_something_else_explains_too_is_not_known(changes: dict[str, Any], expected: str) -> None:
    server = outage(**changes)
    output = text(account(follow_log(server), server.now))
    assert expected in output
    assert "Why is not known: " in output


@pytest.mark.parametrize(
    ("code", "words", "next_step"),
    [
        (
            504,
            "The API server, or what it asks, was slow or unavailable: at least 1 request answered with 504.",
            "/readyz",
        ),
        (403, "Its writes were refused: 1 write answered with 403: no rights.", "auth can-i"),
        (
            200,
            "The API server, or what it asks, was slow or unavailable: it took up to 5 s to answer a write.",
            "/readyz",
        ),
    ],
)
def test_what_the_server_answered_counts_first(code: int, words: str, next_step: str) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(6)
    if code == 200:
        server.log_request("shop/db", "update", db.user, db.pod, server.leases["shop/db"], took=5)
    else:
        db.fail(code, "no rights")
    server.wait(6)
    db.renew()
    db.lead(10)
    answer = account(follow_log(server), server.now)
    output = text(answer)
    assert words in output
    assert "db-0_1 did not renew for 12 s, from 11:07:20Z on. " + words in output
    assert "db-0_1 did not renew for 12 s" in output
    assert any(next_step in found.fix for found in answer.findings)


def test_renewals_that_are_late_but_in_time_are_no_incident() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(6)
    db.lead(10)
    assert "renewal-late" not in text(account(follow_log(server), server.now))


def test_without_other_leases_the_cause_is_not_known() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(18)
    db.renew()
    output = text(account(follow_log(server), server.now))
    assert "Why is not known: no other lease in the input shows whether" in output
    assert "the lease expired, and no one took it." in output


def test_a_steal_is_an_error() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("db-1", "shop/db").lead(20)
    output = text(account(follow_log(server), server.now))
    assert "db-1_1 took it (shop/db from pod db-1) from db-0_1, which still held it" in output
    assert (
        "lease-stolen: at 11:07:00Z db-1_1 took the lease while db-0_1 still held it, 15 s before it expired: two "
        "may have led at once" in output
    )
    assert "ADVICE Find out why db-1_1 does not wait until the lease expires" in output


@pytest.mark.parametrize(
    ("back", "then", "is_named"),
    [
        (3600, ("db-1",), True),
        (5, ("db-1",), False),
        (1, ("db-1",), False),
        (3600, ("db-0", "db-1"), False),
        (3600, ("mallory",), False),
    ],
    ids=["far", "not past the expiry", "as a late request does", "before a renewal", "by the taker itself"],
)
def test_who_takes_a_lease_that_looks_expired_is_not_who_set_its_time_back(
    back: int, then: tuple[str, ...], is_named: bool
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    mallory = server.elector("mallory", "shop/db", user="mallory", pod="", ahead=-back)
    mallory.renew(holderIdentity=db.identity)
    server.wait(1)
    mallory.ahead = 0
    electors = {"db-0": db, "db-1": server.elector("db-1", "shop/db"), "mallory": mallory}
    for elector in then[:-1]:
        electors[elector].renew()
        server.wait(1)
    electors[then[-1]].lead(20)
    output = text(account(follow_log(server), server.now))
    assert (
        "mallory had set its renewTime to 10:06:59Z at 11:07:00Z, so the lease looked expired" in output
    ) is is_named
    assert ("14 s before it expired by its holder's last renewal: two may have led" in output) is is_named
    assert ("ADVICE Find out why mallory set its renewTime back." in output) is is_named
    assert ("does not wait until the lease expires" in output) is (then[-1] == "db-1" and not is_named)


def test_who_takes_a_lease_that_its_holder_let_expire_steals_nothing_from_who_set_its_time_back() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(10)
    server.elector("mallory", "shop/db", user="mallory", pod="", ahead=-3600).renew(holderIdentity=db.identity)
    server.wait(8)
    server.elector("db-1", "shop/db").lead(20)
    answer = account(follow_log(server), server.now)
    (taken,) = (found for found in answer.findings if found.check == "lease-stolen")
    assert taken.severity is Severity.WARNING
    assert taken.message == (
        "at 11:07:18Z db-1_1 took the lease, which db-0_1 had not renewed for 18 s. mallory had set its renewTime to "
        "10:07:09Z at 11:07:10Z, so the lease looked expired to the new holder, if that compares renewTime with its "
        "own clock"
    )
    assert advise(answer).startswith("Find out why mallory set its renewTime back.")


def test_a_holder_that_one_pod_renames_is_no_error() -> None:
    server, (db, *_) = shop()
    server.uids["db-0"] = "d6f1"
    db.lead(20)
    db.identity = "eu1.db-0_1"
    db.lead(20)
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "handed-over")
    assert finding.severity.value == "info"
    doubt = "unless two processes have it, or its container restarted, one process led throughout"
    assert f"{doubt} and its identity changed" in finding.message
    assert "two may have led" not in text(account(follow_log(server), server.now))


def test_a_release_by_another_program_with_the_same_credentials_may_be_another_one_s() -> None:
    server = FakeServer()
    leader, person = (server.elector("host-1", "shop/db", user="ops-tool", pod="") for _ in range(2))
    person.manager = "kubectl-edit"
    leader.lead(20)
    person.release()
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "holder-removed")
    assert "ops-tool removed host-1_1 as the holder while the lease was live" in finding.message
    assert "if the holder did not do that itself, two may have led at once" in finding.message


def test_a_holder_that_stands_for_no_process_releases_nothing() -> None:
    server, (db, *_) = shop()
    mike = server.elector("maintenance", "shop/db", user="mike", pod="")
    db.lead(20)
    db.release()
    mike.take()
    mike.release()
    db.lead(4)
    output = text(account(follow_log(server), server.now))
    assert "db-0_1 took it (shop/db from pod db-0) after mike wrote maintenance_1 out of it" in output
    assert "maintenance_1 released it" not in output


def test_who_sets_renew_time_back_does_not_renew() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    pipeline = server.elector("ci", "shop/db", user="ci-pipeline", ahead=-86400)
    pipeline.identity = db.identity
    for _ in range(4):
        pipeline.renew()
        db.lead(10)
    assert not {one.check for one in account(follow_log(server), server.now).findings} & {"identity-shared"}


def test_two_pods_under_one_identity_are_an_error() -> None:
    server, (db, *_) = shop()
    twin = server.elector("db-1", "shop/db")
    twin.identity = db.identity
    db.take()
    for _ in db.ticks(20):
        db.renew()
        server.wait(0.1)
        twin.renew()
    output = text(account(follow_log(server), server.now))
    in_turns = "one identity, db-0_1, is used by several processes that renew in turn"
    assert f"{in_turns}, at least shop/db from pod db-0 (9 renewals) and shop/db from pod db-1 (9 renewals)" in output
    assert "shop/db from pod db-1 renewed it as db-0_1, " in output


def test_two_applications_on_one_lease() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(20)
    server.elector("queue-0", "shop/db", user="system:serviceaccount:shop:queue").lead(20)
    assert "lease-shared: at least 2 service accounts have held this lease: shop/db, shop/queue" in text(
        account(follow_log(server), server.now)
    )
    server.elector("kcm", "shop/db", user="system:kube-controller-manager").lead(2)
    assert "lease-shared" not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("asks", "severity", "words"),
    [
        ((), Severity.WARNING, "one after the other"),
        (("queue-1",), Severity.INFO, "one after the other"),
        (("queue-1", "db-1"), Severity.WARNING, "have held this lease: shop/db, shop/queue"),
    ],
    ids=["a log without reads", "the one before is not heard", "a replica of the one before waits"],
)
def test_a_lease_that_passes_on_once_may_be_that_of_a_new_version(
    asks: tuple[str, ...], severity: Severity, words: str
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    server.wait(1)
    server.elector("queue-0", "shop/db", user="system:serviceaccount:shop:queue").lead(20)
    for pod in asks:
        server.elector(pod, "shop/db", user=f"system:serviceaccount:shop:{pod.partition('-')[0]}").ask()
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-shared")
    assert (finding.severity, words in finding.message) == (severity, True)
    assert ("one after the other" in finding.message) == ("db-1" not in asks)


def test_two_users_that_take_a_lease_in_turns_share_it() -> None:
    server, (db, *_) = shop()
    queue = server.elector("queue-0", "shop/db", user="system:serviceaccount:shop:queue")
    for elector in (db, queue, db):
        elector.lead(20)
        elector.release()
        server.wait(1)
    queue.ask()
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-shared")
    assert (finding.severity, "one after the other" in finding.message) == (Severity.WARNING, False)


@pytest.mark.parametrize(("seconds", "may_lead"), [(4, True), (25, False)], ids=["at once", "once it had expired"])
def test_two_may_lead_after_a_deletion_only_if_the_lease_would_not_have_expired(seconds: float, may_lead: bool) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    server.wait(seconds)
    server.elector("db-1", "shop/db").lead(4)
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-deleted")
    assert ("two may have led at once" in finding.message, finding.severity is Severity.ERROR) == (may_lead, may_lead)


@pytest.mark.parametrize(("seconds", "words"), [(20, "wrote it regularly"), (0, "had written it last")])
def test_who_wrote_a_lease_once_did_not_do_so_regularly(seconds: float, words: str) -> None:
    server, (db, *_) = shop()
    db.take()
    db.lead(seconds)
    server.delete("shop/db")
    (finding,) = (one for one in account(follow_metadata(server), server.now).findings if one.check == "lease-deleted")
    assert finding.message.endswith(f"while db-0 {words}")


def test_a_refusal_without_a_message_is_no_proof_of_a_missing_right() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("db-1", "shop/db").fail(403)
    answer = account(follow_log(server), server.now)
    (finding,) = (found for found in answer.findings if found.check == "write-refused")
    assert finding.message == "1 write by shop/db from pod db-1 refused with 403, the last one at 11:07:00Z"
    can_i = "kubectl auth can-i update leases.coordination.k8s.io/db -n shop --as=system:serviceaccount:shop:db"
    assert finding.fix == can_i
    assert advise(answer) == (
        f"The API server refused what shop/db wrote. To see whether shop/db may update the lease now: {can_i}"
    )


FORBIDDEN = 'leases.coordination.k8s.io "db" is forbidden: '
FINALIZERS = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
)


@pytest.mark.parametrize(
    ("message", "decision", "expected"),
    [
        (
            f"{FORBIDDEN}cannot set an ownerRef on a resource you can't delete: , <nil>",
            "",
            (
                "set an ownerReference, for which it needs the right to delete the lease: grant that right, or leave "
                "the ownerReference out. To see whether shop/db may delete the lease now: kubectl auth can-i delete "
                "leases.coordination.k8s.io/db -n "
            ),
        ),
        (
            f"{FORBIDDEN}{FINALIZERS}",
            "",
            (
                "the right to update the owner's finalizers subresource: grant that right, or leave blockOwnerDeletion "
                "out. To see its rights: kubectl auth can-i --list -n shop --as=system:serviceaccount:shop:db"
            ),
        ),
        (
            f"{FORBIDDEN}no",
            "allow",
            (
                "The right to write the lease was not lacking: admission control in the API server refused what "
                "shop/db wrote. To see the lease: kubectl -n shop get lease db -o yaml"
            ),
        ),
        (f"{FORBIDDEN}no", "forbid", "To see whether shop/db may update the lease now: kubectl auth can-i update"),
    ],
    ids=["an owner", "an owner that waits", "a write that was allowed", "a write that was not"],
)
def test_what_admission_refused_needs_no_right_to_write(message: str, decision: str, expected: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("db-1", "shop/db").fail(403, message)
    server.log[-1]["annotations"] = {"authorization.k8s.io/decision": decision}
    answer = account(follow_log(server), server.now)
    assert expected in advise(answer)


@pytest.mark.parametrize(
    ("seconds", "retry", "is_long"),
    [(20, 2, False), (33, 2, True), (40, 15, False), (61, 15, True)],
    ids=["not for long", "for long", "not for long for who is slow", "for long even for who is slow"],
)
def test_who_does_not_take_a_free_lease_for_long_may_be_refused(seconds: int, retry: int, *, is_long: bool) -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db", retry=retry), server.elector("mail-0", "shop/mail")
    db.lead(90)
    db.release()
    mail.lead(seconds)
    advice = advise(account(follow_watch(server), server.now))
    assert ("candidates may be absent, refused or waiting, for example" in advice) is is_long
    assert ("can take the lease at once" in advice) is not is_long
    server.wait(600)
    later = advise(account(follow_watch(server), server.now))
    assert later == advice, "after the end of a watch nothing is known"


def test_a_release_and_who_follows() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(5)
    db.release()
    server.wait(3)
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "no one holds it: it was released 3 s ago"
    assert "Can be taken: now" in text(answer)
    assert "11:07:05Z: db-0_1 released it" in text(answer)
    assert "A replica that runs, and may write it, can take the lease at once: kubectl -n shop get pods" in advise(
        answer
    )
    server.elector("db-1", "shop/db").lead(4)
    output = text(account(follow_log(server), server.now))
    assert "db-1_1 took it (shop/db from pod db-1) after db-0_1 released it; the lease was free for 3 s" in output
    assert "1 change of holder" not in output
    assert output.endswith("ADVICE It is held and renewed; a lease does not show whether its holder works.")
    assert output.index("db-0_1 released it\n") < output.index("db-1_1 took it")


def test_an_expired_lease_whose_renew_time_is_ahead_may_not_be_taken_by_all() -> None:
    server, (db, mail, cart) = shop()
    db.ahead = 240
    together(60, db, mail, cart)
    together(60, mail, cart)
    output = text(account(follow_watch(server), server.now))
    waits = "a client that compares renewTime with its own clock may wait until 11:11:54Z"
    assert f"Can be taken: now, since 11:07:55Z, 15 s after the last renewal; {waits}\n" in output
    assert "longest gap between two by the same holder: up to 3 s\n" in output


def test_a_dump_of_a_dead_leader() -> None:
    server, (db, mail, cart) = shop()
    together(60, db, mail, cart)
    together(60, mail, cart)
    cluster = cluster_of(server.dump())
    answer = account(cluster, server.now)
    output = text(answer)
    assert output.startswith("db-0_1 has not renewed it for 1 min 0 s\nHeld by: db-0_1, since ")
    assert "as it wrote itself" in output
    assert "Can be taken: now, since 11:07:55Z, 15 s after the last renewal" in output
    why = "It stored no renewal (it may have ended, or been paused, cut off or refused)"
    assert f"Why: {why}; 2 other leases went on being" in output
    assert "kubectl -n shop describe pod db-0" in advise(answer)


@pytest.mark.parametrize(("more", "is_known"), [(["index"], True), ([], False)], ids=["four leases", "three leases"])
def test_a_dump_in_which_all_stopped(more: list[str], is_known: bool) -> None:
    server, electors = shop()
    together(60, *electors, *(server.elector(f"{lease}-0", f"shop/{lease}") for lease in more))
    server.wait(60)
    answer = account(cluster_of(server.dump()), server.now)
    why = (
        "Why: The API server was slow, unavailable or not reached, the writes of all were refused (as by a webhook "
        "or policy), or the holder's process stopped by itself, or with the others as in a rollout: "
        "3 other leases stopped at the same time."
    )
    assert (why in text(answer)) == is_known
    assert ("Why:" in text(answer)) == is_known
    assert advise(answer).startswith("Look at the API server, its etcd") == is_known


def test_a_dump_of_one_lease_knows_no_cause() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(60)
    answer = account(cluster_of(server.dump()), server.now)
    assert "Why" not in text(answer)


def test_a_dump_without_managed_fields() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    answer = account(cluster_of(server.dump(managed_fields=False)), server.now)
    assert "Evidence: the holder's own clock: the input has no time of a renewal that the API server set" in text(
        answer
    )
    assert make_account_json(answer)["evidence"] == "holder"


def test_a_clock_that_is_off_is_reported() -> None:
    server, (db, *_) = shop()
    db.ahead = -30
    db.lead(20)
    assert "Clock: its renewTime is 30" in text(account(follow_watch(server), server.now))


@pytest.mark.parametrize(
    ("spec", "state", "words"),
    [
        (
            {"leaseTransitions": 2**31 - 1},
            LeaseState.FROZEN,
            "db-0_1 keeps it until it is repaired: leaseTransitions is 2147483647",
        ),
        ({"leaseDurationSeconds": 2**31 - 1}, LeaseState.FROZEN, "db-0_1 keeps it until 2094-"),
        (
            {"leaseDurationSeconds": None, "renewTime": None},
            LeaseState.UNKNOWN,
            "db-0_1 holds it; it has no duration and no renewTime",
        ),
        (
            {"holderIdentity": None, "renewTime": None, "acquireTime": None, "leaseTransitions": None},
            LeaseState.NEVER_HELD,
            "it was never held",
        ),
    ],
)
def test_other_states(spec: dict[str, object], state: LeaseState, words: str) -> None:
    server, (db, *_) = shop()
    db.take(**spec)
    answer = account(cluster_of(server.dump()), server.now)
    assert answer.state is state
    assert make_headline(answer).startswith(words)
    assert advise(answer)
    assert "Can be taken" in text(answer) or state is LeaseState.UNKNOWN


def test_the_request_of_the_last_renewal_is_none_after_it() -> None:
    server, (db, mail, cart) = shop()
    # A client sets renewTime before it sends the write.
    db.ahead = -0.05
    together(60, db, mail, cart)
    together(20, mail, cart)
    output = text(account(follow_log(server), server.now))
    assert (
        "For most of the time since its last renewal the log has no answered request for the lease from the pod of "
        "db-0_1 (it may have ended, or been paused, blocked or cut off); " in output
    )


@pytest.mark.parametrize(("lease", "words"), [("shop/db-jobs", "db-jobs"), ("backup/db", "backup/db")])
def test_a_process_that_renews_another_lease_runs(lease: str, words: str) -> None:
    server, (db, mail, cart) = shop()
    other = server.elector("db-0", lease, user="system:serviceaccount:shop:db")
    together(60, db, mail, cart, other)
    together(20, mail, cart, other)
    output = text(account(follow_log(server), server.now))
    assert (
        "The pod of db-0_1 ran, and for most of the time since its last renewal the log has no answered request from "
        "it for this lease: "
        f"it renewed {words} meanwhile." in output
    )


def test_a_lease_that_was_deleted_and_may_not_be_created_again() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    server.wait(2)
    message = 'leases.coordination.k8s.io "db" is forbidden: unable to create new content in namespace shop because it'
    server.elector("db-1", "shop/db").fail(403, f"{message} is being terminated")
    assert advise(account(follow_log(server), server.now)).startswith(
        "The lease could not be created, because its namespace was being deleted. A namespace stays until"
    )


@pytest.mark.parametrize("is_new", [True, False], ids=["that never existed", "that was deleted"])
def test_a_lease_may_not_be_created(is_new: bool) -> None:
    server, (db, *_) = shop()
    if not is_new:
        db.lead(20)
        server.delete("shop/db")
    for _ in range(3):
        server.wait(2)
        db.fail_to_create()
    answer = account(follow_log(server), server.now)
    (finding,) = (one for one in answer.findings if one.check == "write-refused")
    assert finding.message.startswith("3 writes by shop/db from pod db-0 refused with 403 for lack of permission")
    assert advise(answer).startswith("shop/db lacked the right to create the lease;")


@pytest.mark.parametrize("others", [1, MAX_LISTED], ids=["two", "more than are remembered"])
def test_a_creation_without_a_name_is_of_no_lease_if_several_are_missing(others: int) -> None:
    server, (db, *_) = shop()
    for number in range(others):
        server.elector("db-0", f"shop/db-{number}", user="system:serviceaccount:shop:db").fail_to_create()
    db.fail_to_create()
    answer = account(follow_log(server), server.now)
    assert not [one for one in answer.findings if one.check == "write-refused"]


_WAITED, _HELD = "but it had finalizers: it was gone", "while db-0_1 held it"


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (
            follow_log,
            f"admin deleted the lease at 11:07:00Z, {_WAITED} at 11:07:04Z, when janitor removed the last one, {_HELD}",
        ),
        (follow_watch, "the lease was deleted between 11:07:00Z and 11:07:06Z while db-0_1 held it"),
        (
            follow_both,
            f"admin deleted the lease at 11:07:00Z, {_WAITED} at 11:07:04Z, when janitor removed the last one, {_HELD}",
        ),
    ],
    ids=["in a log", "in a watch", "in both"],
)
def test_who_removes_the_last_finalizer_has_not_deleted_the_lease(view: View, words: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete_with_finalizer("shop/db")
    server.wait(2)
    db.lead(10)
    findings = [one for one in account(view(server), server.now).findings if one.check == "lease-deleted"]
    assert [one.message.partition(";")[0] for one in findings] == [words]


def test_a_lease_with_finalizers_that_is_renewed_is_gone_after_that() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    now, metadata = server.now, server.leases["shop/db"]["metadata"]
    metadata |= {"deletionTimestamp": format_time(now), "finalizers": ["example.com/guard"]}
    server.wait(2)
    db.lead(10)
    server.delete("shop/db")
    db.lead(4)
    (finding,) = (one for one in account(follow_watch(server), server.now).findings if one.check == "lease-deleted")
    assert finding.message.partition(";")[0] == (
        f"the lease was deleted at 11:07:00Z, {_WAITED} at 11:07:12Z or later {_HELD}"
    )


def test_a_lease_that_was_created_unseen_has_not_the_finalizers_of_the_one_before() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete_with_finalizer("shop/db")
    del server.events[-1:]  # its deletion
    seen = len(server.events)
    db.lead(20)
    server.events[seen:] = [(server.now, "ADDED", server.leases["shop/db"])]  # the watch begins again
    db.lead(10)
    server.delete("shop/db")
    (finding,) = (one for one in account(follow_watch(server), server.now).findings if one.check == "lease-deleted")
    assert finding.message.partition(";")[0] == f"the lease was deleted at 11:07:34Z or later {_HELD}"


def test_who_asks_again_for_a_deletion_removes_no_finalizer() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete_with_finalizer("shop/db")
    server.log.pop()  # the removal of the finalizer
    server.log_request("shop/db", "delete", "mallory", "", {"kind": "Status", "apiVersion": "v1"})
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "lease-deleted")
    assert finding.message.partition(";")[0] == f"mallory deleted the lease at 11:07:04Z {_HELD}"


@pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
def test_a_lease_without_a_duration_neither_expires_nor_is_lost(view: View) -> None:
    server, (db, *_) = shop()
    pool = [db, server.elector("db-1", "shop/db"), server.elector("db-2", "shop/db")]
    for _ in range(6):
        for elector in pool:
            elector.take(leaseDurationSeconds=None)
            server.wait(1)
    answer = account(view(server), server.now)
    assert answer.state is LeaseState.UNKNOWN
    assert {one.check for one in answer.findings} & {
        "leader-lost",
        "expired",
        "heartbeat-silent",
        "lease-stolen",
    } == set()
    output = text(answer)
    assert "db-2_1 is named, renewed 1 s ago; the lease has no duration, so it does not say until when" in output
    assert "db-2_1 was written into it after db-1_1" in output


def test_a_lease_that_was_deleted() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "the lease was deleted 0 s ago by admin"
    assert "11:07:00Z: admin deleted the lease while db-0_1 held it" in text(answer)
    assert advise(answer).startswith(
        "The lease was deleted, and does not exist. Most clients create it the next time they ask: kubectl"
    )
    assert make_account_json(answer)["holder"] is None
    server.wait(4)
    db.lead(4)
    assert (
        "db-0_1 created it again (shop/db from pod db-0) after it was deleted; the lease had no holder for 4 s"
        in text(account(follow_log(server), server.now))
    )


def test_a_log_that_lacks_every_write_says_so() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.log.clear()
    server.elector("db-1", "shop/db").ask()
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "the log has no write of it"
    assert advise(answer).startswith("To see the lease:")


def test_a_log_without_objects() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    answer = account(follow_metadata(server), server.now)
    assert make_headline(answer) == "db-0 wrote it last, 0 s ago; the log does not show what was written"
    assert (answer.state, make_account_json(answer)["holder"], make_account_json(answer)["evidence"]) == (
        LeaseState.UNKNOWN,
        "db-0",
        "none",
    )
    assert advise(answer).startswith("The input shows who wrote the lease, and not what.")
    server.elector("db-1", "shop/db").lead(4)
    assert "db-1 wrote it from then on (shop/db from pod db-1)" in text(account(follow_metadata(server), server.now))


def test_the_last_write_of_the_usual_writer_is_not_called_that_of_the_lease() -> None:
    server, (db, *_) = shop()
    together(20, db)
    server.wait(1)
    server.elector("tool", "shop/db", user="system:serviceaccount:ops:tool").renew()
    output = text(account(follow_metadata(server), server.now))
    assert output.startswith(
        "ops/tool from pod tool wrote it last, 0 s ago; the log does not show what was written\nWritten by: db-0"
    )
    assert "Its last write: 11:07:00Z, 1 s ago, by shop/db from pod db-0" in output
    assert "Its writes: typically every 2 s; longest gap between two by the same writer: 2 s" in output


def test_a_holder_that_already_held_it_and_others_after() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(20)
    server.wait(16)
    db.lead(20)
    output = text(account(follow_watch(server), server.now))
    assert "db-0_1 took it, as it wrote itself" in output


def test_a_lease_that_nobody_had_held() -> None:
    server = FakeServer()
    server.write("shop/db", {}, "kubectl-create", "admin", "")
    db = server.elector("db-0", "shop/db")
    db._write({"acquireTime": db._time(), "leaseTransitions": 1})
    assert "db-0_1 took it (shop/db from pod db-0); no one held it" in text(account(follow_log(server), server.now))


def test_the_account_as_json() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(20)
    document = make_account_json(account(follow_log(server), server.now))
    assert {
        key: document[key]
        for key in ("namespace", "name", "state", "holder", "held_since", "last_renewal", "takeable_at")
    } == {
        "namespace": "shop",
        "name": "db",
        "state": "live",
        "holder": "db-1_1",
        "held_since": "2026-11-18T11:07:16.000000Z",
        "last_renewal": "2026-11-18T11:07:36.000000Z",
        "takeable_at": "2026-11-18T11:07:51.000000Z",
    }
    assert document["last_renewal_by"] == {
        "user": "system:serviceaccount:shop:db",
        "pod": "db-1",
        "manager": "operator",
    }
    assert document["leaderless_seconds"] == 16
    assert document["handovers"] == {"created": 1, "expired": 1}
    assert document["tenures"][1]["leaderless_seconds"] == 16
    assert [one["check"] for one in document["findings"]] == ["leader-lost", "timing-tight"]
    unheld = make_account_json(account(cluster_of(FAR_DUMP), server.now))
    assert (unheld["last_renewal_by"], unheld["held_since"]) == (None, None)


FAR_DUMP = (
    b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"shop","name":"db"},"spec":{}}'
)


def test_how_times_lengths_and_counts_are_written() -> None:
    now = 1_795_000_000 * SECOND
    assert format_clock(now - 60 * SECOND, now) == "11:05:40Z"
    assert format_clock(now - 86_400 * SECOND, now) == "2026-11-17T11:06:40Z"
    assert (format_length(1_500_000), format_length(-3 * SECOND), format_length(75 * SECOND)) == (
        "1.5 s",
        "-3 s",
        "1 min 15 s",
    )
    assert (format_length(1_960_000), format_length(2_049_999), format_length(59_960_000)) == (
        "2 s",
        "2 s",
        "1 min 0 s",
    )
    assert (format_age(now, now), format_age(now + 5 * SECOND, now)) == ("0 s ago", "in 5 s")
    assert (format_count(1, "lease"), format_count(3, "lease")) == ("1 lease", "3 leases")
    assert (format_name("a-1_x"), format_name("a b"), format_name("a\u202eb")) == ("a-1_x", '"a b"', '"a\\u202eb"')


def test_most_other_leases_were_late() -> None:
    server, electors = shop()
    electors.append(server.elector("index-0", "shop/index"))
    together(40, *electors)
    for _ in electors[0].ticks(14):
        electors[-1].renew()
    together(20, *electors)
    output = text(account(follow_log(server), server.now))
    assert (
        "2 of the 3 other leases due at least twice were late at the same time "
        "(shop/cart and shop/mail), and shop/index was not" in output
    )


def test_a_takeover_within_the_tolerance_of_clocks_has_no_expiry_before_it() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(14)
    server.elector("db-1", "shop/db").lead(10)
    output = text(account(follow_log(server), server.now))
    assert "db-1_1 took it from db-0_1: whether it had expired is not known; not renewed for up to 14 s" in output
    assert "let it expire" not in output
    assert (
        "leader-lost: db-0_1 last renewed at 11:07:00Z, up to 14 s before db-1_1 took the lease at 11:07:14Z" in output
    )
    assert "the lease expired, 15 s after" not in output


def test_a_log_without_objects_of_a_coordinated_election() -> None:
    """The API server writes whom it chose: it is no leader, and when the one that it chose began is not known."""
    server = FakeServer()
    chosen, other = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    server.write("shop/db", {"holderIdentity": "", "leaseTransitions": 0}, "kube-apiserver", API_SERVER, "")
    server.wait(2)
    chosen.lead(20)
    asked = {**server.leases["shop/db"]["spec"], "preferredHolder": "db-1"}
    for _ in range(9):
        server.write("shop/db", asked, "kube-apiserver", API_SERVER, "")
        server.wait(2)
    other.lead(20)
    output = text(account(follow_metadata(server), server.now))
    assert "db-0 wrote it from then on (shop/db from pod db-0)\n" in output
    assert "db-1 wrote it from then on (shop/db from pod db-1); neither it nor db-0 wrote it for 18 s" in output
    assert "2 changes of writer" not in output
    assert "led" not in output


def test_a_holder_who_took_the_lease_while_a_watch_saw_nothing() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    seen = len(server.events)
    other = server.elector("db-1", "shop/db")
    db.release()
    other.lead(20)
    server.events[seen:] = [(server.now, "ADDED", server.leases["shop/db"])]
    other.lead(20)
    output = text(account(follow_watch(server), server.now))
    unseen = "db-1_1 came to hold it after db-0_1, at a time that was not recorded"
    assert f"11:07:20Z: {unseen}; not renewed for up to 21 s" in output
    assert "Held by: db-1_1, since 11:07:20Z (20 s ago; it was not recorded when)" in output
    assert "longest gap between two by the same holder: 2 s, as far as was recorded" in output


def test_a_late_renewal_of_a_tenure_that_is_no_longer_known_is_left_out() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(12)
    db.renew()
    for _ in range(MAX_TENURES + 1):
        db.release()
        db.take()
    assert "renewal-late" not in {one.check for one in account(follow_log(server), server.now).findings}


def test_a_writer_beside_an_earlier_tenure_of_the_holder_may_go_on() -> None:
    server, (db, *_) = shop()
    person = server.elector("person", "shop/db", user="alice", pod="")
    person.identity = db.identity
    db.lead(20)
    server.wait(1)
    person.renew()
    db.lead(4)
    db.release()
    db.lead(10)
    (claim,) = (
        one
        for one in make_account_json(account(follow_log(server), server.now))["claims"]
        if one["claim"] == "second-writer"
    )
    assert claim["identity"] == db.identity
    assert claim.get("ongoing") is None


def test_a_holder_whose_account_renewed_it_later_has_not_stopped() -> None:
    server, (db, *others) = shop()
    own, stranger = (server.elector("x", "shop/db", user=user, pod="") for user in (db.user, "alice"))
    own.identity = stranger.identity = db.identity
    together(60, db, *others)
    for writer in (own, stranger):
        together(4, *others)
        writer.renew()
    together(6, *others)
    assert "renewal-late" not in {one.check for one in account(follow_log(server), server.now).findings}


def test_by_the_holder_s_own_clock_no_one_has_stopped() -> None:
    server, electors = shop()
    together(60, *electors)
    together(14, *electors[1:])
    server.events = [(at, kind, strip_stamps(one)) for at, kind, one in server.events]
    assert "renewal-late" not in {one.check for one in account(follow_watch(server), server.now).findings}


@pytest.mark.parametrize(
    ("process", "is_known"),
    [("shop/db", True), ("shop/other", False)],
    ids=["it took it", "another one did"],
)
def test_who_renews_a_lease_has_held_it_if_it_took_it(process: str, is_known: bool) -> None:
    tenure = Tenure(
        HolderProcesses("db-0", own=Writer(process), taken_by=Writer("shop/db"), renewals=1), 0, Handover.CREATED, 0
    )
    assert tenure.is_known_to_have_held is is_known
    assert not tenure.processes.may_share(None)
