"""Findings about refusals, deletions and writers, in elections that no recording has."""

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import (
    LEASE,
    advise,
    cluster_of,
    follow_log,
    follow_metadata,
    follow_watch,
    merge_inputs,
    observe_all,
)
from tests.history.test_refusal import APPLY_CONFLICT, POLICY, RIGHTS, UNAPPLIED, WEBHOOK
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.commands import make_command_for_pod_of_holder, make_command_for_rights
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.advise import advise as find_advice
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.claims.words import format_bound, format_count
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import FenceReport, Place, Writer
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.times import format_micro_time, parse
from webhook.text.commands import quote_name

RIGHTS_SHOWN = RIGHTS.partition(" in API group")[0]


def messages(server: FakeServer) -> dict[str, str]:
    return messages_of(account(follow_log(server), server.now))


def messages_of(account: Account) -> dict[str, str]:
    return {found.check: found.message for found in account.findings}


@pytest.mark.parametrize(
    ("message", "shown", "expected", "command"),
    [
        (
            RIGHTS,
            f": {RIGHTS_SHOWN}",
            "shop/db has written the lease since",
            "kubectl -n shop get roles,rolebindings -o yaml --show-managed-fields",
        ),
        (
            WEBHOOK,
            " by webhook leases.lease-webhook.svc: spec.holderIdentity: Forbidden: no",
            "See why webhook leases.lease-webhook.svc refuses the writes of pod db-0",
            "lease-webhook doctor",
        ),
        (
            POLICY,
            " by policy depth: no",
            "See why the policy refuses the writes of pod db-0",
            "kubectl get validatingadmissionpolicies",
        ),
    ],
    ids=["rights", "webhook", "policy"],
)
def test_a_leader_whose_writes_were_refused_is_followed(message: str, shown: str, expected: str, command: str) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(2)
    db.fail(403, message)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    (lost,) = (found for found in answer.findings if found.severity.value == "warning")
    assert f"The writes of db-0_1 were refused: 1 write answered with 403{shown}." in lost.message
    assert expected in advise(answer)
    assert command in find_advice(answer).command


def test_writes_to_a_subresource_are_none_of_the_lease() -> None:
    server, (db, mail, *_) = shop()
    together(40, db, mail)
    for _ in mail.ticks(20):
        mail.renew()
        db.fail(403, RIGHTS)
        server.log[-1]["objectRef"]["subresource"] = "status"
    server.elector("db-1", "shop/db").lead(10)
    texts = messages(server)
    assert "For most of that time the log has no answered request for the lease from its pod" in texts["leader-lost"]
    assert "write-refused" not in texts


@pytest.mark.parametrize(
    ("verb", "renewals", "words", "advice"),
    [
        (
            "update",
            0,
            "The release of db-0_1 was refused: 1 write answered with 422",
            "refuses a release, which leaves no holder,",
        ),
        (
            "update",
            2,
            "The writes of db-0_1 were refused: 3 writes answered with 422",
            "refuses the writes of pod db-0",
        ),
        ("patch", 0, "The writes of db-0_1 were refused: 1 write answered with 422", "refuses the writes of pod db-0"),
    ],
    ids=["a release alone", "a release after renewals", "a patch, which may have been anything"],
)
def test_a_refused_release_kept_no_holder_from_renewing(verb: str, renewals: int, words: str, advice: str) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    for _ in range(renewals):
        server.wait(2)
        db.fail(422, POLICY)
    server.wait(1)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
    db.fail(422, POLICY, verb=verb)
    server.log[-1]["requestObject"] = server.leases["shop/db"] | {"spec": spec}
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    (lost,) = (found for found in answer.findings if found.check == "leader-lost")
    assert words in lost.message
    assert lost.message.endswith("It asked to give the lease up, which then had to expire.") == (
        verb == "update" and not renewals
    )
    assert advice in advise(answer)


@pytest.mark.parametrize(
    ("verbs", "what"),
    [(["update"], "1 write"), (["get", "get"], "2 reads"), (["get", "update"], "2 requests")],
    ids=["it writes", "it reads first", "it does both"],
)
def test_a_leader_whose_token_expired_is_followed(verbs: list[str], what: str) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(1)
    for verb in verbs:
        server.wait(0.5)
        db.fail_unauthenticated(verb)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    (lost,) = (found for found in answer.findings if found.severity.value == "warning")
    assert (
        f"The requests of db-0_1 may have been refused: {what} answered with 401 (Unauthorized), "
        "from its address and program" in lost.message
    )
    assert lost.message.endswith("It may have stopped as well.")
    (claim,) = (each for each in make_account_json(answer)["claims"] if each["claim"] == "leader-lost")
    assert claim["causes"] == ["refused-credentials", "stopped"]
    assert "The API server accepted no credentials" in advise(answer)


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        (8, "It applies, without force, fields that another field manager owns."),
        (1, "It applies, without force, fields that another field manager owns, and may have stopped as well."),
    ],
)
def test_a_leader_that_applies_fields_of_another_manager_is_followed(tries: int, expected: str) -> None:
    server, (db, *others) = shop()
    together(40, db, *others)
    for _ in range(tries):
        together(2, *others)
        db.fail(409, APPLY_CONFLICT, verb="patch")
    together(18 - 2 * tries, *others)
    together(10, server.elector("db-1", "shop/db"), *others)
    answer = account(follow_log(server), server.now)
    (lost,) = (found for found in answer.findings if found.severity is Severity.WARNING)
    answered = (
        f"The writes of db-0_1 were refused: {format_count(tries, 'write')} answered with 409"
        f"{', the last one' if tries > 1 else ''}: {APPLY_CONFLICT}. "
    )
    assert lost.message.endswith(answered + expected)
    (claim,) = (each for each in make_account_json(answer)["claims"] if each["claim"] == "leader-lost")
    assert (claim["causes"][0] if "causes" in claim else claim["cause"]) == "refused-fields"
    assert advise(answer) == (
        "Do not let pod db-0 apply with force while db-1_1 may lead: two leaders would result. Once no one leads, "
        "delete the lease; any replica will create it again. To see who owns its fields: kubectl -n shop get lease db "
        "-o yaml --show-managed-fields"
    )
    assert "conflicted" not in text(answer)


def test_a_writer_that_applies_fields_of_another_manager_is_refused() -> None:
    server, (db, *others) = shop()
    together(40, db, *others)
    server.elector("db-1", "shop/db").fail(409, APPLY_CONFLICT, verb="patch")
    assert messages(server)["write-refused"].startswith(
        "1 write by shop/db from pod db-1 refused with 409 because another field manager owns the fields, the last one "
        "at "
    )


_FORCE_IS_SAFE = (
    "Once no one leads, let pod db-1 apply with force, or delete the lease; any replica will create it again."
)
_FORCE_IS_NOT = "Do not let pod db-1 apply with force while db-0_1 may lead: two leaders would result."


@pytest.mark.parametrize(
    ("user", "silent_for", "advice"),
    [
        ("system:serviceaccount:shop:db", 0, _FORCE_IS_NOT),
        ("system:serviceaccount:shop:db", 20, _FORCE_IS_SAFE.replace("pod db-1", "shop/db")),
        ("system:serviceaccount:argocd:argocd", 0, "Let argocd/argocd leave out the spec, which the electors write."),
        ("system:serviceaccount:argocd:argocd", 20, "Let argocd/argocd leave out the spec, which the electors write."),
    ],
    ids=["a standby of a live holder", "a standby of a dead one", "a stranger", "a stranger to an expired lease"],
)
def test_no_advice_takes_a_lease_by_force_from_a_live_holder(user: str, silent_for: int, advice: str) -> None:
    server, (db, *_) = shop()
    db.lead(30)
    for _ in range(3):
        server.elector("db-1", "shop/db", user=user).fail(409, APPLY_CONFLICT, verb="patch")
        db.lead(4)
    server.wait(silent_for)
    if silent_for:
        server.elector("db-1", "shop/db", user=user).fail(409, APPLY_CONFLICT, verb="patch")
    answer = account(follow_log(server), server.now)
    (finding,) = (each for each in answer.findings if each.check == "write-refused")
    assert isinstance(finding, Claim)
    assert finding.advice.startswith(advice)
    assert ("force" in finding.advice) == ("force" in advice)


def test_a_holder_whose_fields_another_manager_owns_is_not_called_a_second_leader() -> None:
    server, (db, *_) = shop()
    db.lead(30)
    db.fail(409, APPLY_CONFLICT, verb="patch")
    db.lead(4)
    answer = account(follow_log(server), server.now)
    (finding,) = (each for each in answer.findings if each.check == "write-refused")
    assert isinstance(finding, Claim)
    assert finding.advice == "Another field manager owns what shop/db, the holder, applies. To see who owns its fields:"


def test_what_is_applied_to_a_lease_that_the_log_does_not_show_is_not_called_a_stranger_s() -> None:
    server, (db, *_) = shop()
    db.lead(4)
    log = server.log
    db.fail(409, APPLY_CONFLICT, verb="patch")
    del log[:-1]
    answer = account(follow_log(server), server.now)
    (finding,) = (each for each in answer.findings if each.check == "write-refused")
    assert isinstance(finding, Claim)
    assert finding.advice == "Another field manager owns what shop/db applies. To see who owns its fields:"


@pytest.mark.parametrize("leads", [True, False], ids=["others lead", "all are late"])
def test_a_webhook_that_fails_is_no_outage_of_the_api_server(leads: bool) -> None:
    server, (db, *others) = shop()
    together(40, db, *others)
    message = 'Internal error occurred: failed calling webhook "guard.vendor.example": connection refused'
    for _ in range(8):
        server.wait(2)
        db.fail(500, message)
        for answer in others if leads else ():
            answer.renew()
    server.elector("db-1", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    (lost,) = (found for found in answer.findings if found.check == "leader-lost")
    assert (
        "The API server could not store the writes of db-0_1: at least 7 requests answered with 500, the last one"
        in lost.message
    )
    assert "slow or unavailable" not in lost.message
    assert (
        "Webhook guard.vendor.example failed for writes of the lease until 11:07:36Z, and they have succeeded since. "
        "See why it failed: " in advise(answer)
    )


def test_a_webhook_that_failed_until_the_end_fails() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(10):
        server.wait(2)
        db.fail(500, 'Internal error occurred: failed calling webhook "guard.vendor.example": connection refused')
    assert (
        "See why webhook guard.vendor.example, which the API server calls for writes of the lease, fails: "
        in advise(account(follow_log(server), server.now))
    )


@pytest.mark.parametrize("is_shared", [True, False], ids=["one address", "two addresses"])
def test_refused_reads_from_a_shared_address_may_be_the_holders(*, is_shared: bool) -> None:
    server, (db, *others) = shop()
    follower = server.elector("db-1", "shop/db")
    together(40, db, *others)
    address = server.log[0]["sourceIPs"] if is_shared else ["10.0.0.9"]
    follower.ask()
    server.log[-1]["sourceIPs"] = address
    for _ in range(8):
        server.wait(2)
        for elector in others:
            elector.renew()
        follower.fail_unauthenticated("get")
        server.log[-1]["sourceIPs"] = address
    follower.lead(10)
    (lost,) = (found for found in account(follow_log(server), server.now).findings if found.check == "leader-lost")
    assert "For most of that time the log has no answered request for the lease from its pod" in lost.message
    assert ("without accepted credentials, answered with 401, may be its own" in lost.message) is is_shared


def test_a_log_without_holes_has_every_conflict_of_the_holder() -> None:
    server, (db, *others) = shop()
    labeler = server.elector("labeler", "shop/db", user="system:serviceaccount:shop:labeler")
    together(40, db, *others)
    server.wait(1)
    db.fail(409)
    for _ in range(9):
        server.wait(2)
        for elector in others:
            elector.renew()
        server.write("shop/db", server.leases["shop/db"]["spec"], "labeler", labeler.user, labeler.pod)
    server.elector("db-1", "shop/db").lead(10)
    (lost,) = (found for found in account(follow_log(server), server.now).findings if found.check == "leader-lost")
    assert "may have conflicted" not in lost.message


def test_a_lease_that_is_renewed_since_then_shows_that_the_api_server_was_there() -> None:
    server, (db, *others) = shop()
    db.take()
    server.wait(1)
    together(18, *others)
    server.elector("db-1", "shop/db").lead(10)
    (lost,) = (found for found in account(follow_log(server), server.now).findings if found.check == "leader-lost")
    assert "2 other leases were renewed on time" in lost.message


def test_refusals_of_a_pod_of_another_namespace_are_not_the_holder_s() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(2)
    server.elector("db-0", "shop/db", user="system:serviceaccount:evil:evil").fail(403, RIGHTS)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    texts = messages(server)
    assert "1 write by evil/evil from pod db-0 refused with 403" in texts["write-refused"]
    assert "The writes of db-0_1 were refused" not in texts["leader-lost"]


def describe_taking_after_writes(
    *, by: str = "db-0", answered: int = 504, took: float = 0.004, after: int = 1, takes: float = 0
) -> str:
    """Return what is said of a lease that is taken after 18 s and two writes with such answers."""
    server, electors = shop()
    db, *others = [*electors, server.elector("index-0", "shop/index")]
    together(40, db, *others)
    for second in range(18):
        server.wait(1)
        if after <= second < after + 2:
            user, pod = (db.user, db.pod) if by == db.pod else (by, "")
            server.log_request("shop/db", "patch", user, pod, server.leases["shop/db"], answered, took)
        for elector in others if second % 2 else ():
            elector.renew()
    server.elector("db-1", "shop/db").take()
    server.log[-1]["requestReceivedTimestamp"] = format_micro_time(server.now - int(takes * SECOND))
    return messages(server)["leader-lost"]


@pytest.mark.parametrize("writer", ["shop/labeler", ""], ids=["another one wrote", "no one else did"])
def test_a_conflict_needs_another_write_to_be_the_cause(writer: str) -> None:
    server, (db, *others) = shop()
    together(40, db, *others)
    for second in range(18):
        server.wait(1)
        if writer and second == 2:
            server.write("shop/db", server.leases["shop/db"]["spec"], "labeler", writer, "")
        if 4 <= second <= 14:
            db.fail(409)
        for elector in others if second % 2 else ():
            elector.renew()
    server.elector("db-1", "shop/db").lead(10)
    assert ("11 of its updates conflicted with" in messages(server)["leader-lost"]) == bool(writer)


def lose_by_failures(fail: Callable[[Elector, int], None]) -> tuple[Account, ReportFinding]:
    """Return the account of a lease, and its loss, after `fail` has failed each second while others are renewed."""
    server, (db, *others) = shop()
    electors = [db, *others, server.elector("index-0", "shop/index")]
    together(40, *electors)
    for second in range(18):
        server.wait(1)
        if 2 <= second <= 12:
            fail(db, second)
        for elector in electors[1:] if second % 2 else ():
            elector.renew()
    server.elector("db-1", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    (lost,) = (finding for finding in answer.findings if finding.check == "leader-lost")
    return answer, lost


@pytest.mark.parametrize(
    ("verb", "words", "advice"),
    [
        ("update", "perhaps a webhook that it calls, or the one API server in use", "lease-webhook doctor"),
        (
            "get",
            "No admission webhook sees reads: look at the API server in use, and what it asks, such as etcd",
            "/readyz",
        ),
    ],
)
def test_no_webhook_makes_reads_fail(verb: str, words: str, advice: str) -> None:
    def fail(holder: Elector, _: int) -> None:
        holder.fail(504)
        holder.fail(500, verb=verb)

    answer, lost = lose_by_failures(fail)
    assert "answered with 500 and 504" in lost.message
    assert words in lost.message
    assert advice in advise(answer)


def test_writes_that_failed_and_were_limited_are_not_an_outage() -> None:
    answer, lost = lose_by_failures(lambda holder, second: holder.fail(429 if second == 5 else 504))
    assert "The API server could not store the writes of db-0_1: at least 10 requests answered with 504" in lost.message
    assert "and at least 1 request answered with 429" in lost.message
    assert advise(answer) == (
        "Look at the API server that answered it, and at what that asks for a write, such as etcd and webhooks: "
        "kubectl get --raw '/readyz?verbose'; lease-webhook doctor"
    )


@pytest.mark.parametrize(
    ("user", "unnamed", "advice"),
    [
        ("system:serviceaccount:shop:db", False, "describe pod db-0"),
        ("machine", False, "it writes as machine, and not with the token of a pod"),
        ("machine", True, "Check whether the credentials of machine, such as a certificate, have expired"),
    ],
)
def test_a_holder_that_is_no_pod_is_not_looked_for_as_one(user: str, unnamed: bool, advice: str) -> None:
    server, (db, *others) = shop()
    db.user, db.pod = user, "db-0" if user.startswith("system:") else ""
    together(40, db, *others)
    for second in range(20):
        server.wait(1)
        if unnamed and second % 2:
            db.fail_unauthenticated()
        for elector in others if second % 2 else ():
            elector.renew()
    server.elector("db-1", "shop/db").lead(10)
    for event in server.log:
        event.pop("sourceIPs", None)
    assert advice in advise(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("user", "command"),
    [
        ("system:serviceaccount:ops:failover", "kubectl -n ops describe pod failover-6f9d7-x2x8p"),
        ("failover", "kubectl -n shop describe pod failover-6f9d7-x2x8p"),
    ],
)
def test_a_holder_that_another_pod_renewed_is_looked_for_there(user: str, command: str) -> None:
    server, (db, *others) = shop()
    db.identity, db.user, db.pod = "drill-2026-11", user, "failover-6f9d7-x2x8p"
    together(40, db, *others)
    together(20, *others)
    server.elector("db-1", "shop/db").lead(10)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith(f"See the pod that renewed as drill-2026-11: {command} || ")


def test_a_holder_with_a_dot_is_not_looked_for_as_a_pod() -> None:
    server, (_, *others) = shop()
    together(40, server.elector("laptop-7.local", "shop/db"), *others)
    together(20, *others)
    server.elector("db-1", "shop/db").lead(10)
    advice = advise(account(follow_watch(server), server.now))
    assert (
        advice == "Check whether laptop-7.local_1, which lost the lease, is one of the pods: kubectl -n shop get pods"
    )


def test_a_write_without_credentials_is_not_the_holder_s_if_that_is_heard() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(2)
    db.fail_unauthenticated()
    db.ask()
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    texts = messages(server)
    assert "refused with 401, as no credentials were accepted" in texts["write-refused"]
    assert "The writes of db-0_1 were refused" not in texts["leader-lost"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"after": 8},
            "The API server could not store the writes of db-0_1: at least 2 requests answered with 504; 3 other ",
        ),
        (
            {"after": 8, "answered": 409},
            (
                "(network, proxy), or written from an old copy, for example: 2 of its updates conflicted (409), "
                "although nothing else was written"
            ),
        ),
        (
            {"after": 8, "answered": 200, "took": 2},
            "The API server, or what it asks, was slow or unavailable: it took up to 2 s",
        ),
        (
            {},
            "a write from its pod was answered with 504",
        ),
        (
            {"answered": 409},
            "a write from its pod was answered with 409",
        ),
        (
            {"answered": 200, "took": 1.5},
            "a write from its pod was answered with 200",
        ),
        ({"after": 8, "by": "mallory"}, "blocked or cut off); 3 other leases were renewed on time."),
        ({"after": 8, "by": "mallory", "answered": 429}, "renewed on time."),
        ({"after": 8, "by": "mallory", "answered": 200, "took": 2}, "renewed on time."),
        ({"by": "mallory", "takes": 1.5}, "renewed on time."),
    ],
    ids=[
        "failures until the client gives up",
        "conflicts until the client gives up",
        "slow answers until the client gives up",
        "failures at the beginning only",
        "conflicts at the beginning only",
        "slow answers at the beginning only",
        "failures of another writer",
        "another writer that is throttled",
        "slow answers to another writer",
        "a slow takeover",
    ],
)
def test_only_answers_to_the_holder_until_it_gives_up_explain_its_silence(
    changes: dict[str, Any], expected: str
) -> None:
    assert expected in describe_taking_after_writes(**changes)


@pytest.mark.parametrize("level", ["RequestResponse", "Metadata"])
def test_leases_that_are_deleted_with_all_of_their_namespace(level: str) -> None:
    server, (db, *_) = shop()
    server.elector("bill-0", "billing/bill").lead(10)
    db.lead(40)
    server.clear("shop")
    histories = cluster_of(server.audit_log(metadata_only=level == "Metadata"))
    (finding,) = (one for one in account(histories, server.now).findings if one.check == "lease-deleted")
    assert finding.message.startswith("namespace-controller deleted the lease at")
    assert not histories.leases["billing", "bill"].is_deleted


def test_a_deletion_of_chosen_leases_says_nothing_of_the_others() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.clear("shop", selector="?labelSelector=app%3Dother")
    assert "lease-deleted" not in messages(server)


def find_deletion(histories: ClusterHistory, now: int) -> Claim:
    return deletion_in(account(histories, now))


def deletion_in(account: Account) -> Claim:
    """The finding about a lease that was deleted."""
    (finding,) = (found for found in account.findings if found.check == "lease-deleted")
    assert isinstance(finding, Claim)
    return finding


def play_deletion_by(query: str, *, chosen: Sequence[str], level: str) -> tuple[FakeServer, ClusterHistory]:
    """A lease that another one creates again after mallory deleted it with a query."""
    server, (db, *_) = shop()
    server.elector("bill-0", "shop/bill").take()
    db.lead(40)
    server.wait(0.5)
    server.clear("shop", "mallory", query, chosen)
    if level == "Metadata":
        server.log[-1]["level"] = level
        del server.log[-1]["responseObject"]
    server.wait(0.5)
    server.leases.pop("shop/db", None)
    server.elector("db-1", "shop/db").lead(20)
    return server, cluster_of(server.audit_log())


@pytest.mark.parametrize(
    ("query", "level"),
    [
        ("?labelSelector=app%3Ddb", "RequestResponse"),
        ("?limit=1", "RequestResponse"),
        ("?fieldSelector=metadata.name%3Ddb", "Metadata"),
    ],
)
def test_who_deleted_a_lease_by_a_selector(query: str, level: str) -> None:
    server, histories = play_deletion_by(query, chosen=["shop/db"], level=level)
    finding = find_deletion(histories, server.now)
    assert finding.message.startswith("mallory deleted the lease at 11:07:20Z while db-0_1 held it; db-1_1 created it")


def test_an_answer_without_a_lease_did_not_delete_it() -> None:
    server, histories = play_deletion_by("?limit=1", chosen=["shop/bill"], level="RequestResponse")
    finding = find_deletion(histories, server.now)
    assert finding.message.startswith(
        "the lease was deleted between 11:07:20Z and 11:07:21Z while db-0_1 held it; db-1_1 created"
    )
    assert "The log does not show its deletion." in finding.advice


def test_a_log_that_does_not_show_what_a_selector_chose() -> None:
    server, histories = play_deletion_by("?labelSelector=app%3Ddb", chosen=["shop/db"], level="Metadata")
    finding = find_deletion(histories, server.now)
    assert (
        "held it (maybe by mallory, who deleted leases at 11:07:20Z: the log does not show which);" in finding.message
    )
    assert finding.advice.startswith("See which leases mallory deleted.")


NOT_FOUND: Final = 'leases.coordination.k8s.io "db" not found'
COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
OWN: Final = "system:serviceaccount:shop:db"


def play_deletion(user: str, pod: str, *, has_pods: bool = True, seconds: float = 0.5) -> Account:
    """The account of a lease that was deleted, and that another process then created again."""
    server, (db, *_) = shop()
    db = db if has_pods else server.elector("db-0", "shop/db", pod="")
    db.lead(40)
    server.wait(0.5)
    server.delete("shop/db", user, pod)
    server.wait(seconds)
    server.elector("db-1", "shop/db", **({} if has_pods else {"pod": ""})).lead(20)
    return account(follow_log(server), server.now)


def test_a_holder_that_deletes_its_lease_releases_it() -> None:
    answer = play_deletion(OWN, "db-0")
    assert "lease-deleted" not in messages_of(answer)
    assert "db-0_1 deleted the lease, as some electors do when they stop" in text(answer)


def test_another_pod_of_the_account_is_not_the_holder() -> None:
    finding = deletion_in(play_deletion(OWN, "db-1"))
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("shop/db from pod db-1 deleted the lease at 11:07:20Z while db-0_1 held it;")


@pytest.mark.parametrize("is_hook", [True, False], ids=["deleted before", "deleted after that"])
def test_a_pod_that_deleted_the_lease_as_it_ended_is_not_looked_for(*, is_hook: bool) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    if is_hook:
        server.delete_pod("db-1")
        server.wait(1)
    server.delete("shop/db", OWN, "db-1")
    server.wait(1)
    if not is_hook:
        server.delete_pod("db-1")
    db.lead(20)
    finding = deletion_in(account(follow_log(server), server.now))
    assert ("that pod had been deleted at 11:07:20Z by" in finding.message) is is_hook
    assert ("so a preStop hook of it may have done this" in finding.message) is is_hook
    assert "shop/db should delete leases. The pod that did it has been deleted. To see whether others" in finding.advice
    assert finding.fix == "kubectl -n shop get pods --field-selector spec.serviceAccountName=db -o yaml"


def test_the_pod_of_another_name_that_was_deleted_did_not_delete_the_lease() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.delete_pod("db-2")
    server.delete("shop/db", OWN, "db-1")
    server.wait(1)
    db.lead(20)
    finding = deletion_in(account(follow_log(server), server.now))
    assert "preStop" not in finding.message
    assert "kubectl -n shop describe pod db-1" in finding.fix


def test_a_user_without_a_pod_may_be_the_holder() -> None:
    finding = deletion_in(play_deletion(OWN, "", has_pods=False))
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith(": if the holder did not delete it itself, as some do, two may have led at once")
    assert finding.advice.startswith("Whether its holder deleted it is not known. To see the pods of that account")


def test_of_a_person_who_holds_and_deletes_a_lease_the_right_is_shown() -> None:
    server, _ = shop()
    server.elector("laptop", "shop/db", user="alice", pod="").lead(40)
    server.wait(0.5)
    server.delete("shop/db", "alice")
    finding = deletion_in(account(follow_log(server), server.now))
    assert finding.advice.startswith("Decide whether alice should delete leases. To see")


def test_the_garbage_collector_deletes_what_has_no_owner() -> None:
    finding = deletion_in(play_deletion(COLLECTOR, ""))
    assert finding.severity is Severity.WARNING
    assert (
        "deleted the lease, as no owner that it named exists, at 11:07:20Z while db-0_1 held it; db-1_1"
        in finding.message
    )
    assert finding.message.endswith(": two may have led at once, unless the owner was the pod of db-0_1")


def test_a_lease_without_an_owner_that_had_time_to_expire() -> None:
    finding = deletion_in(play_deletion(COLLECTOR, "", seconds=20))
    assert finding.severity is Severity.WARNING
    assert "two may have led" not in finding.message


def test_a_holder_that_may_have_deleted_its_lease() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(0.5)
    server.delete("shop/db", OWN, "db-0")
    assert "db-0 may have deleted the lease, as some electors do" in text(account(follow_metadata(server), server.now))


def play_hidden_deletion(*, by: str = "alice") -> tuple[FakeServer, Elector]:
    """A lease that someone deleted, unless it was a dry run: a log at level Metadata does not show it."""
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(0.5)
    server.delete("shop/db", by)
    server.wait(0.5)
    return server, db


def test_a_log_without_bodies_does_not_show_that_a_lease_was_deleted() -> None:
    server, _ = play_hidden_deletion()
    answer = account(follow_metadata(server), server.now)
    assert make_headline(answer) == "the lease may have been deleted 0.5 s ago by alice"
    assert (
        "alice deleted the lease at 11:07:20Z (unless that was a dry run, which the log does not show) while"
        in (messages_of(answer)["lease-deleted"])
    )
    assert "alice may have deleted the lease, which db-0 wrote last" in text(answer)
    assert find_advice(answer).command == "kubectl -n shop get lease db"
    assert "does-not-exist" not in {claim.check for claim in find_claims(answer)}


@pytest.mark.parametrize("verb", ["get", "update"])
def test_a_lease_that_is_not_found_was_deleted(verb: str) -> None:
    server, db = play_hidden_deletion()
    db.fail(404, NOT_FOUND, verb=verb)
    answer = account(follow_metadata(server), server.now)
    assert make_headline(answer) == "the lease was deleted 0.5 s ago by alice"


def test_a_lease_that_no_one_ever_held_was_deleted_if_it_is_not_found() -> None:
    server, _ = shop()
    server.write("shop/db", {"leaseDurationSeconds": 15}, "kubectl", "alice", "")
    server.wait(2)
    server.delete("shop/db", "alice")
    server.log[-1]["level"] = "Metadata"
    del server.log[-1]["responseObject"]
    assert make_headline(account(follow_log(server), server.now)) == "the lease may have been deleted"
    server.elector("db-0", "shop/db").fail(404, NOT_FOUND, verb="get")
    assert make_headline(account(follow_log(server), server.now)).startswith("the lease was deleted")


def test_a_lease_that_is_created_again_was_deleted() -> None:
    server, _ = play_hidden_deletion()
    server.elector("db-1", "shop/db").lead(10)
    message = messages_of(account(follow_metadata(server), server.now))["lease-deleted"]
    assert message.startswith("alice deleted the lease at 11:07:20Z while db-0")


def test_a_watch_shows_that_a_lease_was_deleted() -> None:
    server, _ = play_hidden_deletion()
    histories = ClusterHistory()
    observe_all(histories, read("watch", [server.watch()]), read("log", [server.audit_log(metadata_only=True)]))
    assert make_headline(account(histories, server.now)) == "the lease was deleted 0.5 s ago by alice"


def test_a_controller_that_deletes_a_lease_makes_no_dry_run() -> None:
    server, _ = play_hidden_deletion(by="system:serviceaccount:kube-system:generic-garbage-collector")
    assert make_headline(account(follow_metadata(server), server.now)).startswith("the lease was deleted 0.5 s ago by")


def test_a_lease_that_is_read_afterwards_was_not_deleted() -> None:
    server, _ = play_hidden_deletion()
    server.wait(3)
    server.elector("db-1", "shop/db").ask()
    assert "deleted" not in make_headline(account(follow_metadata(server), server.now))


def test_a_lease_that_is_read_after_it_was_created_again_may_have_been_deleted() -> None:
    server, _ = play_hidden_deletion()
    server.wait(3)
    other = server.elector("db-1", "shop/db")
    other.take()
    server.wait(3)
    other.ask()
    other.renew()
    assert "lease-deleted" in messages_of(account(follow_metadata(server), server.now))


def play_unseen_deletion(*, is_deleted: bool = True) -> tuple[FakeServer, Elector]:
    """A lease that is gone, or seems to be: the log lacks its deletion."""
    server, (db, mail, *_) = shop()
    together(40, db, mail)
    if is_deleted:
        del server.leases["shop/db"]
    server.wait(2)
    return server, db


@pytest.mark.parametrize(("verb", "number"), [("update", 1), ("patch", 1), ("delete", 1), ("get", 2)])
@pytest.mark.parametrize("follow", [follow_log, follow_metadata])
def test_a_lease_that_is_not_found_does_not_exist(
    verb: str, number: int, follow: Callable[[FakeServer], ClusterHistory]
) -> None:
    server, db = play_unseen_deletion()
    for _ in range(number):
        db.fail(404, NOT_FOUND, verb=verb)
        server.wait(2)
    answer = account(follow(server), server.now)
    assert make_headline(answer) == f"the lease was deleted: {number} request{'s'[: number - 1]} answered with 404"
    assert messages_of(answer)["lease-deleted"].startswith("the lease was deleted at 11:07:20Z or later while db-0")


@pytest.mark.parametrize(
    ("verb", "message", "number"),
    [
        ("get", NOT_FOUND, 1),
        ("update", "the server could not find the requested resource", 3),
        ("create", 'namespaces "shop" not found', 3),
    ],
    ids=["a read that may be answered from a cache", "an unknown version of the API", "a namespace"],
)
def test_an_answer_that_does_not_say_that_the_lease_is_gone(verb: str, message: str, number: int) -> None:
    server, db = play_unseen_deletion(is_deleted=False)
    for _ in range(number):
        db.fail(404, message, verb=verb)
    assert make_headline(account(follow_log(server), server.now)).startswith("db-0_1 holds it since")


def test_a_lease_that_is_updated_after_it_was_not_found_was_there() -> None:
    server, db = play_unseen_deletion(is_deleted=False)
    db.fail(404, NOT_FOUND)
    db.lead(10)
    assert "lease-deleted" not in messages(server)


def test_a_lease_that_was_never_seen_does_not_exist() -> None:
    server, (_, mail, *_) = shop()
    mail.lead(4)
    server.elector("db-0", "shop/db").fail(404, NOT_FOUND)
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "it does not exist: 1 request answered with 404, the last one 0 s ago"


def test_who_held_a_lease_in_a_hole_of_a_log_is_not_known_if_it_is_gone_after_that() -> None:
    server, db = play_unseen_deletion()
    server.wait(600)
    server.elector("mail-0", "shop/mail").renew()
    db.fail(404, NOT_FOUND)
    answer = account(follow_log(server), server.now)
    assert "lease-deleted" not in messages_of(answer)


def test_a_name_that_was_never_seen_is_no_lease() -> None:
    _, histories = play_deletion_by("?fieldSelector=metadata.name%3Dnone", chosen=(), level="Metadata")
    assert ("shop", "none") not in histories.leases


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (2, "on; unless it had ended or restarted, it may have acted as leader until it noticed."),
        (
            17,
            "Z on, but only every 17 s, as if its own rate limit, overload or restarts held it back.",
        ),
        (
            0,
            (
                "A request for the lease by its pod was received at 11:07:36Z, and may have been sent long before; "
                "unless it had ended"
            ),
        ),
    ],
)
def test_a_former_holder_that_is_heard_again(interval: int, expected: str) -> None:
    server, (db, mail, *_) = shop()
    together(40, db, mail)
    other = server.elector("db-1", "shop/db")
    for _ in mail.ticks(17):
        mail.renew()
    other.take()
    for second in range(0, 52, 2):
        server.wait(1)
        if interval and second % (interval // 2 * 2) == 0:
            server.wait(interval % 2)
            db.ask()
        elif second == 0:
            db.ask()
        server.wait(1)
        mail.renew()
        other.renew()
    assert expected in messages(server)["leader-lost"]


def test_refusals_are_listed_by_writer() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for name, user in (("db-1", "system:serviceaccount:shop:db"), ("job", "system:serviceaccount:shop:job")):
        other = server.elector(name, "shop/db", user=user)
        for _ in range(2):
            server.wait(0.001)
            other.fail(403, RIGHTS)
    server.elector("db-1", "shop/db").fail(422, "no")
    findings = [one.message for one in account(follow_log(server), server.now).findings if one.check == "write-refused"]
    lack = f"for lack of permission, the last one at 11:07:00Z: {RIGHTS_SHOWN}"
    assert findings == [
        f"2 writes by shop/db from pod db-1 refused with 403 {lack}",
        f"2 writes by shop/job from pod job refused with 403 {lack}",
        "1 write by shop/db from pod db-1 refused with 422, the last one at 11:07:00Z: no",
    ]


@pytest.mark.parametrize(("verb", "check"), [("update", "write-refused"), ("get", "read-refused")])
def test_the_writer_refused_last_comes_last(verb: str, check: str) -> None:
    server, (db, *_) = shop()
    writers = {pod: server.elector(pod, "shop/db", user=f"system:serviceaccount:shop:{pod}") for pod in ("a", "b")}
    for pod in "abbba":
        db.lead(2)
        for _ in range(3):
            server.wait(0.001)
            writers[pod].fail(403, RIGHTS, verb=verb)
    findings = [one.message for one in account(follow_log(server), server.now).findings if one.check == check]
    assert [one.partition(" refused")[0] for one in findings] == [
        f"9 {'writes' if verb == 'update' else 'reads'} by shop/b from pod b",
        f"6 {'writes' if verb == 'update' else 'reads'} by shop/a from pod a",
    ]


def test_the_latest_of_many_refused_writers_are_named() -> None:
    server, (db, *_) = shop()
    writers = [server.elector(f"w{number}", "shop/db") for number in range(12)]
    db.lead(10)
    for writer in (*writers, writers[0]):
        writer.fail(422, "no")
        db.lead(2)
    findings = [one.message for one in account(follow_log(server), server.now).findings if one.check == "write-refused"]
    assert [one.partition(" refused")[0].rpartition(" ")[2] for one in findings] == [
        *(f"w{number}" for number in range(3, 12)),
        "w0",
    ]


def refused_often(*, every: float, code: int, message: str, is_named: bool = True) -> str:
    """The text of `why` after db-0 lost the lease while its writes and those of another pod were refused."""
    server, (db, *others) = shop()
    together(20, db, *others)
    waiting = server.elector("db-1", "shop/db")
    for _ in range(8):
        for _ in range(int(2 / every)):
            server.wait(every)
            for elector in (db, waiting):
                elector.fail(code, message) if is_named else elector.fail_unauthenticated()
        for elector in others:
            elector.renew()
    together(2, *others)
    together(10, server.elector("db-2", "shop/db"), *others)
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(("every", "least"), [(0.5, ""), (0.125, "at least ")], ids=["all are remembered", "not all"])
@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({"code": 403, "message": "no"}, "{}[0-9]+ writes by shop/db from pod db-1 were refused with 403 within "),
        ({"code": 403, "message": "no"}, "The writes of db-0_1 were refused: {}[0-9]+ writes answered with 403"),
        (
            {"code": 401, "message": "", "is_named": False},
            "The requests of db-0_1 may have been refused: {}[0-9]+ writes answered with 401",
        ),
        ({"code": 409, "message": ""}, "(?i:{})[0-9]+ of its updates conflicted"),
    ],
    ids=["an event", "refusals of the holder", "its address", "its conflicts"],
)
def test_a_number_of_answers_is_a_bound_if_some_are_remembered_no_longer(
    every: float, least: str, answer: dict[str, Any], line: str
) -> None:
    output = refused_often(every=every, **answer)
    assert re.search(line.format(f"(?<!at least ){least}"), output)


@pytest.mark.parametrize(
    ("times", "verb", "expected"),
    [
        (99, "update", "99 writes by shop/mail from pod mail-1"),
        (99, "get", "99 reads by shop/mail from pod mail-1"),
        (120, "update", "at least 108 writes by shop/mail from pod mail-1"),
        (120, "get", "120 reads by shop/mail from pod mail-1"),
    ],
)
def test_how_often_a_writer_was_refused_is_a_bound_if_some_are_neither_remembered_nor_counted(
    times: int, verb: str, expected: str
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    other = server.elector("mail-1", "shop/db", user="system:serviceaccount:shop:mail")
    for _ in range(times):
        server.wait(0.01)
        other.fail(422, "no", verb=verb)
    sentence = messages(server)["write-refused" if verb == "update" else "read-refused"]
    assert sentence.startswith(f"{expected} refused with 422")


def fenced_writes(*pods: str) -> list[str]:
    """Return the beginnings of the findings about writes by several pods that a fence refused."""
    server, (db, *_) = shop()
    db.lead(20)
    histories = follow_log(server)
    for pod in pods:
        server.wait(0.1)
        report = FenceReport(
            place=Place("audit.log", 1),
            at=server.now,
            fence="fence-db",
            namespace="shop",
            name="db",
            writer=Writer("system:serviceaccount:shop:db", pod=pod),
            target="ConfigMap shop/state",
            message="",
            is_refused=True,
        )
        histories.leases[LEASE].requests.fenced.append(report)
    findings = [one.message for one in account(histories, server.now).findings if one.check == "write-fenced"]
    return [one.partition(" that did")[0] for one in findings]


def test_the_writer_fenced_last_comes_last() -> None:
    assert fenced_writes("db-1", "db-2", "db-1") == [
        "fence fence-db refused 1 write by shop/db from pod db-2",
        "fence fence-db refused 2 writes by shop/db from pod db-1",
    ]


def test_how_often_a_writer_was_fenced_is_a_bound_if_some_are_remembered_no_longer() -> None:
    assert fenced_writes(*["db-1"] * 99) == ["fence fence-db refused 99 writes by shop/db from pod db-1"]
    assert fenced_writes(*["db-1"] * 101) == ["fence fence-db refused at least 100 writes by shop/db from pod db-1"]


def refuse_patches(*, while_held: bool, by_holder: bool = False) -> Account:
    """Return the account of a lease for which a JSON patch is sent in vain, three times."""
    server, (db, mail, _) = shop()
    together(10, db, mail)
    together(0 if while_held else 30, mail)
    other = db if by_holder else server.elector("db-1", "shop/db")
    for _ in range(3):
        other.fail(422, UNAPPLIED, verb="patch")
        together(2, *([db, mail] if while_held else [mail]))
    return account(follow_log(server), server.now)


def test_a_json_patch_that_loses_a_race_is_not_refused() -> None:
    answer = refuse_patches(while_held=True)
    assert "write-refused" not in {one.check for one in answer.findings}
    assert "422" not in text(answer)


def test_a_json_patch_that_does_not_fit_a_free_lease_is_refused() -> None:
    answer = refuse_patches(while_held=False)
    assert "3 writes by shop/db from pod db-1 refused with 422" in text(answer)


def test_a_json_patch_of_the_holder_does_not_lose_a_race() -> None:
    assert "3 writes by shop/db from pod db-0 were refused with 422" in text(
        refuse_patches(while_held=True, by_holder=True)
    )


@pytest.mark.parametrize("user", ["system:serviceaccount:shop:db", "system:serviceaccount:shop:job"])
def test_a_thief_of_another_account_is_named(user: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(2)
    server.elector("db-1", "shop/db", user=user).lead(6)
    answer = account(follow_log(server), server.now)
    (finding,) = (each for each in answer.findings if each.check == "lease-stolen")
    if user.endswith("job"):
        assert "db-1_1 took the lease (shop/job from pod db-1) while db-0_1 still held it" in finding.message
        assert advise(answer).startswith(
            "Find out why shop/job took the lease from shop/db. To see the pod that did it:"
        )
    else:
        assert "db-1_1 took the lease while db-0_1 still held it" in finding.message
        assert advise(answer).startswith("Find out why db-1_1 does not wait until the lease expires")


def test_a_holder_may_write_its_successor_in() -> None:
    server, (db, *_) = shop()
    server.uids.update({"db-0": "uid-0", "db-1": "uid-1"})
    db.lead(20)
    server.wait(1)
    db.take(holderIdentity="db-1_1")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(10)
    answer = account(follow_log(server), server.now)
    (finding,) = (each for each in answer.findings if each.check == "handed-over")
    assert finding.severity is Severity.INFO
    assert finding.message.endswith(
        "db-0_1 handed the lease over to db-1_1: shop/db from pod db-0 wrote it in, without a release"
    )
    assert not any(each.check == "lease-stolen" for each in answer.findings)
    assert "db-0_1 handed it over to db-1_1, without a release" in text(answer)


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param({"pod": "db-0", "user": "system:serviceaccount:evil:db"}, id="a pod of that name elsewhere"),
        pytest.param({"pod": "db", "user": "system:serviceaccount:shop:db"}, id="a pod whose name begins the holder's"),
    ],
)
def test_a_pod_that_only_looks_like_the_holders_hands_nothing_over(stranger: dict[str, str]) -> None:
    server = FakeServer()
    server.uids.update({"db-0": "uid-0", "db": "uid-1", "db-1": "uid-2"})
    server.elector("db-0", "shop/db", **stranger).lead(20)
    server.wait(1)
    server.elector("db-0", "shop/db", **stranger).take(holderIdentity="db-1_1")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(10)
    findings = {one.check for one in account(follow_log(server), server.now).findings}
    assert "handed-over" not in findings
    assert "lease-stolen" in findings


def test_a_watch_shows_that_another_program_created_the_lease_again() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    server.elector("admin", "shop/db", user="admin", manager="kubectl-replace").take(holderIdentity="db-1_1")
    server.elector("db-1", "shop/db").lead(10)
    findings = " ".join(one.message for one in account(follow_watch(server), server.now).findings)
    assert "field manager kubectl-replace created it again with the holder db-1_1" in findings


def test_a_renewal_that_changes_the_holder_may_be_a_renaming() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(2)
    db.renew(holderIdentity="eu1.db-0_1")
    (finding,) = (one for one in account(follow_watch(server), server.now).findings if one.check == "lease-stolen")
    assert "or one process led throughout and its identity changed" in finding.message


@pytest.mark.parametrize("is_taken", [True, False], ids=["and another one took it", "and no one took it"])
@pytest.mark.parametrize("is_renewed", [True, False], ids=["it was renewed", "it was left to expire"])
def test_who_lets_the_lease_expire_under_the_other_name_has_not_led_throughout(
    *, is_renewed: bool, is_taken: bool
) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(2)
    db.renew(holderIdentity="eu1.db-0_1")
    if is_renewed:
        db.identity = "eu1.db-0_1"
        db.lead(6)
    server.wait(20)
    if is_taken:
        server.elector("db-1", "shop/db").lead(6)
    finding = next(one for one in account(follow_watch(server), server.now).findings if one.check == "lease-stolen")
    assert ("or one process led throughout" in finding.message) is is_renewed


def test_of_a_lease_without_a_duration_nothing_says_that_it_was_left_to_expire() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(2)
    db.renew(holderIdentity="eu1.db-0_1", leaseDurationSeconds=None)
    server.wait(20)
    finding = next(one for one in account(follow_watch(server), server.now).findings if one.check == "lease-stolen")
    assert "or one process led throughout" in finding.message


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("db-0/epoch-1", "db-0/epoch-2", True),
        ("db-0_1", "db-0_2", True),
        ("db-0/epoch-1", "db-1/epoch-2", False),
        ("db/epoch-1", "db/epoch-2", False),
    ],
    ids=["a term", "a random part", "of two pods", "of no pod"],
)
def test_in_a_watch_names_that_begin_alike_may_be_of_one_process(first: str, second: str, *, is_one: bool) -> None:
    server, (db, *_) = shop()
    db.take(holderIdentity=first)
    server.wait(2)
    db.renew(holderIdentity=first)
    server.wait(2)
    db.take(holderIdentity=second)
    (finding,) = (one for one in account(follow_watch(server), server.now).findings if one.check == "lease-stolen")
    assert ("or one process led throughout, whose names begin alike" in finding.message) is is_one
    assert finding.severity is (Severity.WARNING if is_one else Severity.ERROR)


def test_a_text_that_no_process_renewed_as_is_removed_and_does_not_release() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(2)
    server.elector("alice", "shop/db", user="alice", manager="kubectl").take(holderIdentity="maintenance")
    server.wait(5)
    db.renew(holderIdentity="")
    assert "11:07:07Z: maintenance was removed from it" in text(account(follow_watch(server), server.now))


@pytest.mark.parametrize("is_own", [True, False], ids=["its own", "those of another pod"])
def test_refused_reads_keep_a_refusal_going_on(is_own: bool) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    db.fail(403, RIGHTS)
    server.wait(20)
    reader = db if is_own else server.elector("db-1", "shop/db")
    reader.fail(403, RIGHTS.replace("update", "get"), verb="get")
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "write-refused")
    assert isinstance(finding, Claim)
    assert ("; and 1 read after that, the last one at 11:07:20Z" in finding.message) == is_own
    assert finding.is_over is not is_own


def test_refusals_while_the_holder_does_not_renew_are_reported_once() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(14)
    db.fail(403, RIGHTS)
    server.wait(4)
    db.ask()
    answer = account(follow_log(server), server.now)
    assert "Why: Its writes were refused: 1 write answered with 403" in text(answer)
    assert [found.check for found in answer.findings if found.severity.value == "warning"] == ["expired"]
    assert find_advice(answer).command.startswith("kubectl auth can-i update")


TAKEOVER = 'admission webhook "leases.lease-webhook.svc" denied the request: spec.holderIdentity: Forbidden: held'


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (TAKEOVER, "The webhook kept the lease for db-0_1."),
        (
            TAKEOVER.replace("holderIdentity", "renewTime"),
            "See why webhook leases.lease-webhook.svc refuses the writes",
        ),
        (
            TAKEOVER.replace("lease-webhook", "labels"),
            "See why webhook leases.labels.svc refuses the writes of shop/db",
        ),
    ],
    ids=["a takeover", "another write", "another webhook"],
)
def test_a_webhook_keeps_a_lease_only_if_it_refuses_a_takeover(message: str, expected: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("db-1", "shop/db").fail(403, message)
    assert advise(account(follow_log(server), server.now)).startswith(expected)


def test_a_writer_that_only_labels_a_lease_is_not_listed_as_its_holder() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    labeller = server.elector("label-0", "shop/db", user="system:serviceaccount:ops:label")
    labeller.retry = 1
    for _ in labeller.ticks(20):
        server.write("shop/db", server.leases["shop/db"]["spec"], "label", labeller.user, labeller.pod)
    server.elector("db-0", "shop/db").lead(20)
    shared = account(follow_metadata(server), server.now)
    assert "at least 2 service accounts have written this lease: ops/label, shop/db" in text(shared)


def test_a_webhook_that_refuses_a_writer_without_a_pod() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("", "shop/db", user="jane", manager="kubectl").fail(403, WEBHOOK)
    assert "1 write by jane refused with 403 by webhook leases.lease-webhook.svc" in messages(server)["write-refused"]


def test_a_lease_that_its_holder_created_again_had_one_leader() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db", "jane")
    server.wait(2)
    db.lead(10)
    answer = account(follow_log(server), server.now)
    (finding,) = (found for found in answer.findings if found.check == "lease-deleted")
    assert (
        finding.message == "jane deleted the lease at 11:07:00Z while db-0_1 held it; db-0_1 created it again 2 s later"
    )
    assert finding.severity.value == "warning"


def test_a_watch_does_not_know_who_deleted_a_lease() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    answer = account(follow_watch(server), server.now)
    (finding,) = (found for found in answer.findings if found.check == "lease-deleted")
    assert finding.message.startswith("the lease was deleted at 11:07:00Z or later while db-0_1 held it")
    assert finding.fix == "lease-webhook why shop/db --input AUDIT-LOG"


def test_a_lease_is_deleted_before_it_is_created_again() -> None:
    """A watch has no time of a deletion: other leases may have been renewed later than the stamp of the creation."""
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    db.lead(4)
    answer = account(follow_watch(server), server.now)
    deleted = answer.history.tenures[0]
    assert deleted.until is not None
    deleted.until += 500_000
    output = text(answer)
    assert output.index("the lease was deleted while db-0_1 held it") < output.index(
        "created again with the holder db-0_1"
    )


@pytest.mark.parametrize(
    ("lease", "severity"),
    [
        pytest.param("kube-system/apiserver-x2x8p", Severity.INFO, id="of an API server: no one leads by it"),
        pytest.param("kube-system/apiserverless", Severity.ERROR, id="of a leader"),
    ],
)
def test_a_heartbeat_that_another_process_creates_again_had_no_leader(lease: str, severity: Severity) -> None:
    server = FakeServer()
    server.elector("before", lease).lead(20)
    server.delete(lease)
    server.wait(0.1)
    server.elector("after", lease).lead(4)
    histories = follow_log(server)
    (key,) = histories.names()
    findings = make_account(histories, histories.get_history(key), server.now).findings
    (finding,) = (one for one in findings if one.check == "lease-deleted")
    assert finding.severity is severity
    assert ("two may have led at once" in finding.message) is (severity is Severity.ERROR)


def test_a_lease_that_is_not_held_when_it_is_deleted() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    server.delete("shop/db")
    assert "released it" in text(account(follow_log(server), server.now))


def test_an_apiserver_that_writes_beside_an_application_shares_nothing() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    server.elector("db-1", "shop/db", manager="kube-apiserver").lead(10)
    assert "lease-shared" not in text(account(follow_watch(server), server.now))


def test_an_audit_log_in_which_all_clients_fell_silent() -> None:
    server, electors = shop()
    electors.append(server.elector("index-0", "shop/index"))
    for elector in electors:
        elector.take()
    for _ in electors[0].ticks(40):
        for elector in electors:
            elector.renew()
    server.wait(20)
    for elector in electors:
        elector.renew()
    output = text(account(follow_log(server), server.now))
    assert (
        "Clients did not reach the API server, the API server was down or hung, the log lacks the clients' requests, "
        "the writes of all were refused (as by a webhook or policy), or the holder's process stopped by itself, or "
        "with the others as in a rollout: all 3 other leases"
    ) in output
    assert "for most of that time the log has no answered request for the lease from the holder" in output
    assert "kubectl get nodes" in output


@pytest.mark.parametrize("history_of", [follow_log, follow_watch])
def test_a_crash_just_before_a_restart_of_the_api_server_is_not_blamed_on_it(
    history_of: Callable[[FakeServer], ClusterHistory],
) -> None:
    server, electors = shop()
    electors.append(server.elector("index-0", "shop/index"))
    together(40, *electors)
    server.wait(20)
    together(10, server.elector("db-1", "shop/db"), *electors[1:])
    answer = account(history_of(server), server.now)
    (lost,) = (found for found in answer.findings if found.check == "leader-lost")
    assert "or the holder's process stopped by itself" in lost.message
    doubt = "" if history_of is follow_log else ", perhaps a pod,"
    assert f"db-0_1{doubt} may have stopped by itself: kubectl get --raw" in advise(answer)
    assert "kubectl -n shop describe pod db-0" in advise(answer)


def test_an_api_server_creates_its_own_identity_lease() -> None:
    server = FakeServer()
    server.elector("apiserver-x", "shop/db", user="system:apiserver").lead(20)
    output = text(account(follow_log(server), server.now))
    assert "apiserver-x_1 created it (system:apiserver from pod apiserver-x)" in output
    assert "chose" not in output


@pytest.mark.parametrize("ends", ["expires", "is released", "is taken away"])
def test_a_coordinated_election(ends: str) -> None:
    server = FakeServer()
    first, second = (server.elector(name, "shop/db", user="system:apiserver") for name in ("a", "b"))
    first.take(strategy="OldestEmulationVersion")
    first.user = "system:serviceaccount:shop:db"
    first.lead(20)
    if ends == "is released":
        first.release()
    server.wait(2 if ends == "is taken away" else 20)
    second.take(strategy="OldestEmulationVersion")
    output = text(account(follow_log(server), server.now))
    assert "the API server chose a_1\n" in output
    after = {
        "expires": "after a_1 let it expire; not renewed for up to 20 s",
        "is released": "after a_1 released it; the lease was free for 20 s",
        "is taken away": "in place of a_1",
    }
    assert f"the API server chose b_1 {after[ends]}" in output


def test_a_lease_without_a_duration_has_no_silences() -> None:
    server, (db, *_) = shop()
    db.take()
    for seconds in (2, 2, 2, 2, 60):
        server.wait(seconds)
        db.renew(leaseDurationSeconds=None)
    answer = account(follow_log(server), server.now)
    assert "did not renew" not in text(answer)


def test_an_expired_lease_of_which_only_the_present_is_known_by_name() -> None:
    server, (db, *_) = shop()
    db.take(holderIdentity="node/1 $(reboot)")
    server.wait(60)
    answer = account(cluster_of(server.dump()), server.now)
    assert find_advice(answer).command == "kubectl -n shop get pods"


def test_a_stored_object_that_breaks_a_rule_comes_first() -> None:
    server, (db, *_) = shop()
    db.take(leaseTransitions=-1)
    answer = account(cluster_of(server.dump()), server.now)
    assert answer.findings[0].severity.value == "error"
    assert find_advice(answer).sentence == f"Fix it: {answer.findings[0].fix}."
    assert find_advice(answer).command == ""


@pytest.mark.parametrize(
    "name", ["--server=http://x_1", "a;reboot_1", "$(reboot)_1", "A_1", "\x1b[2J_1", "_1", "-a_1", "mallory"]
)
def test_a_holder_that_names_no_pod_is_in_no_command(name: str) -> None:
    assert make_command_for_pod_of_holder("shop", name) == "kubectl -n shop get pods"


@pytest.mark.parametrize(
    ("field", "value"), [("leaseTransitions", 2**31 - 1), ("leaseDurationSeconds", 2**31 - 1)], ids=str
)
def test_the_repair_of_a_frozen_lease_quotes_its_names(field: str, value: int) -> None:
    server = FakeServer()
    server.elector("db-0", "a;b/$(reboot)").take(**{field: value})
    histories = cluster_of(server.dump())
    answer = make_account(histories, histories.leases["a;b", "$(reboot)"], server.now)
    assert shlex.split(find_advice(answer).command)[:6] == ["kubectl", "-n", "a;b", "patch", "lease", "$(reboot)"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a b\x1b", "'a b\\x1b'"), ("db-0.a", "db-0.a"), ("--server=x", "NAME"), ("", "''")]
)
def test_a_name_is_one_word_of_a_command(name: str, expected: str) -> None:
    assert quote_name(name) == expected


def test_names_are_quoted_for_a_shell() -> None:
    assert "--as='a;b'" in make_command_for_rights("update", "shop", "db", Writer("a;b"))
    assert "--as" not in make_command_for_rights("update", "shop", "db", Writer())


def test_a_client_that_renews_less_often_than_the_lease_lasts() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", retry=20).lead(400)
    server.wait(100)
    assert "it is renewed every 20 s, typically, and lasts 15 s" in text(account(follow_watch(server), server.now))


def test_a_holder_that_stops_renewing_a_lease_that_nobody_can_take() -> None:
    server, (db, mail, _) = shop()
    together(40, db, mail)
    db.renew(leaseTransitions=2**31 - 1)
    together(60, mail)
    (late,) = (found for found in account(follow_watch(server), server.now).findings if found.check == "renewal-late")
    assert "has not renewed since 11:07:20Z" in late.message
    assert "although the lease was renewed every 2 s before. " in late.message


def stolen_by(**changes: object) -> str:
    """Return the findings for a lease whose holder is overwritten, 1 s after a renewal, in an audit log."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(1)
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": "mallory"}
    server.write("shop/db", spec, "kubectl-patch", "system:serviceaccount:shop:db", "")
    server.log[-1] |= changes
    return text(account(follow_log(server), server.now))


def test_who_acted_as_another_one_is_named() -> None:
    acted = {"username": "system:serviceaccount:shop:db"}
    output = stolen_by(user={"username": "admin"}, impersonatedUser=acted)
    assert "shop/db (impersonated by admin) wrote mallory into it in place of db-0_1" in output
    assert "shop/db (impersonated by admin) wrote mallory into the lease while db-0_1 still held it" in output
    assert "(impersonated" not in stolen_by()


def test_a_refused_impersonation_is_named() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    db.fail(403, "no")
    server.log[-1] |= {"user": {"username": "admin"}, "impersonatedUser": {"username": "system:serviceaccount:shop:db"}}
    answer = account(follow_log(server), server.now)
    assert "1 write by shop/db (impersonated by admin) was refused with 403" in text(answer)


def test_a_write_that_was_accepted_shows_that_its_writer_may() -> None:
    output = stolen_by(user={"username": "jane", "groups": ["ops team", "system:authenticated"]})
    assert "To see what gives jane the right: lease-webhook writers shop/db" in output
    assert "can-i" not in output


def advise_after_steal(*, thief_renews: bool, is_lost_later: bool, is_lost_now: bool = False) -> str:
    """Return what to do about a lease that was stolen, and that another holder lost after that."""
    server = FakeServer()
    db, thief, other = (server.elector(name, "shop/db") for name in ("db-0", "thief-0", "db-1"))
    db.lead(20)
    thief.take()
    if thief_renews:
        thief.lead(20)
    if is_lost_later:
        server.wait(20)
        other.lead(20)
    if is_lost_now:
        server.wait(20)
    answer = account(follow_log(server), server.now)
    assert "lease-stolen" in {found.check for found in answer.findings}
    return advise(answer)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ({"thief_renews": True, "is_lost_later": False}, "Find out why thief-0_1 does not wait"),
        ({"thief_renews": False, "is_lost_later": True}, "Find out why thief-0_1 does not wait"),
        ({"thief_renews": True, "is_lost_later": True}, "See the pod of thief-0_1, which"),
        ({"thief_renews": True, "is_lost_later": False, "is_lost_now": True}, "Check whether thief-0_1 still runs"),
        ({"thief_renews": False, "is_lost_later": True, "is_lost_now": True}, "Check whether db-1_1 still runs"),
        ({"thief_renews": False, "is_lost_later": False, "is_lost_now": True}, "Find out why thief-0_1 does not wait"),
    ],
    ids=[
        "a steal",
        "the lease expired because of the steal",
        "another loss later",
        "the lease has expired since",
        "the lease of a later holder has expired",
        "the lease has expired because of the steal",
    ],
)
def test_what_to_do_is_about_what_happened_last(history: dict[str, bool], expected: str) -> None:
    assert expected in advise_after_steal(**history)


def advise_after_stranger(*, follow: Any = follow_log, pod: str = "thief-0", **changes: Any) -> tuple[Account, str]:
    """Return what is said of a lease that a stranger took, renewed and let expire, until its pods had it again."""
    server = FakeServer()
    db, other = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    settings: dict[str, Any] = {"user": "system:serviceaccount:ci:runner", "manager": "argocd-controller"}
    thief = server.elector("db-2", "shop/db", **(settings | {"pod": pod} | changes))
    db.lead(20)
    thief.lead(20)
    server.wait(20)
    other.lead(20)
    answer = account(follow(server), server.now)
    assert {"lease-stolen", "leader-lost", "lease-shared"} <= {found.check for found in answer.findings}
    return answer, advise(answer)


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_that_a_stranger_lost_what_it_had_stolen_is_no_other_incident(follow: Any) -> None:
    answer, advice = advise_after_stranger(follow=follow)
    expected = "Find out why ci/runner took the lease from shop/db" if follow is follow_log else "--input AUDIT-LOG"
    assert expected in advice
    (shared,) = (one for one in answer.findings if one.check == "lease-shared")
    assert isinstance(shared, Claim)
    assert shared.advice.startswith("Find out first how one of them took it from another that held it.")


def test_a_watch_shows_field_managers_and_no_programs() -> None:
    output = text(advise_after_stranger(follow=follow_watch)[0])
    assert "; its field manager, which its writer chose, was argocd-controller" in output
    assert "this lease was held under at least 2 field managers, which clients choose: argocd-controller, " in output


def test_a_holder_whose_token_names_no_pod_unlike_others_is_no_pod_to_be_looked_at() -> None:
    answer, _ = advise_after_stranger(pod="")
    (lost,) = (one for one in answer.findings if one.check == "leader-lost")
    assert isinstance(lost, Claim)
    assert lost.advice == (
        "Look where db-2_1 runs: it writes as ci/runner, and not with the token of a pod. "
        "To see what gives ci/runner the right:"
    )
    assert lost.fix == "lease-webhook writers shop/db"


def test_what_goes_on_comes_before_what_is_over() -> None:
    server, (db, mail, _) = shop()
    together(40, db, mail)
    thief = server.elector("thief-0", "shop/db", duration=60)
    thief.lead(20)
    mail.lead(30)
    assert "See the pod of thief-0_1: " in advise(account(follow_log(server), server.now))


def test_who_held_a_deleted_lease_leads_as_long_as_most_clients_do() -> None:
    server = FakeServer()
    db, other = (server.elector(name, "shop/db") for name in ("db-0", "db-1"))
    db.lead(20)
    server.delete("shop/db", "jane")
    server.wait(1)
    other.take()
    assert "most clients lead for up to 12 s after their last renewal" in messages(server)["lease-deleted"]


ACCOUNT = "system:serviceaccount:shop:db"
IMPERSONATED: dict[str, Any] = {"user": {"username": "admin"}, "impersonatedUser": {"username": ACCOUNT}}


def stolen_at_metadata(own_pod: str = "db-0", *, lists: bool = False, after: float = 0, **changes: Any) -> str:
    """Return what is said at level Metadata of a lease whose holder was overwritten `after` seconds ago."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.pod = own_pod
    db.lead(20)
    stored = server.dump()
    server.wait(1)
    server.write("shop/db", server.leases["shop/db"]["spec"] | {"holderIdentity": "x"}, "kubectl-patch", ACCOUNT, "")
    server.log[-1] |= {"verb": "patch", **changes}
    histories = ClusterHistory()
    for item in merge_inputs(
        *([read("list", [stored])] if lists else []), read("log", [server.audit_log(metadata_only=True)])
    ):
        histories.add(item)
    return text(account(histories, server.now + round(after * SECOND)))


@pytest.mark.parametrize("lists", [False, True], ids=["a log", "a log and a list"])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "1 write by shop/db, not with a token of pod db-0, was accepted; the log does not show what was stored"),
        (
            IMPERSONATED,
            "1 write by shop/db (impersonated by admin), not with a token of pod db-0, was accepted",
        ),
        ({"user": {"username": "jane"}}, "1 write by jane was accepted; the log does not show what was stored"),
    ],
    ids=["its account without a pod", "an impersonated account", "a person"],
)
def test_a_log_without_objects_shows_who_else_wrote(lists: bool, changes: dict[str, Any], expected: str) -> None:
    assert expected in stolen_at_metadata(lists=lists, **changes)


def test_who_wrote_last_is_not_the_one_that_wrote_regularly() -> None:
    assert stolen_at_metadata(user={"username": "jane"}).startswith(
        "jane wrote it last, 0 s ago; the log does not show what was written"
    )


def test_who_impersonates_an_account_without_pods_is_not_the_holder() -> None:
    assert "1 write by shop/db (impersonated by admin) was accepted" in stolen_at_metadata(own_pod="", **IMPERSONATED)
    assert "accepted" not in stolen_at_metadata(own_pod="")


def test_who_impersonates_a_pod_is_not_the_holder() -> None:
    named = {"username": ACCOUNT, "extra": {"authentication.kubernetes.io/pod-name": ["db-0"]}}
    changes: dict[str, Any] = {"user": {"username": "admin"}, "impersonatedUser": named}
    sentence = "1 write by shop/db (impersonated by admin) from pod db-0 was accepted"
    assert sentence in stolen_at_metadata(lists=True, **changes)


@pytest.mark.parametrize("is_impersonated", [False, True])
def test_a_successor_in_a_log_without_objects_is_reported_once(is_impersonated: bool) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(20)
    server.elector("db-1", "shop/db").lead(60)
    for event in server.log if is_impersonated else ():
        event |= {"user": {"username": "proxy"}, "impersonatedUser": event["user"]}
    output = text(account(follow_metadata(server), server.now))
    assert "accepted" not in output
    assert "db-1 wrote it from then on" in output


def test_of_many_accepted_writes_the_latest_are_counted() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    for _ in range(150):
        server.wait(0.02)
        server.write("shop/db", server.leases["shop/db"]["spec"], "label", "labeler", "")
    assert "the latest 100 writes by labeler were accepted within 2 s" in text(
        account(follow_metadata(server), server.now)
    )


def write_in_turn(users: int) -> FakeServer:
    """Return a server on which many users write a held lease, one after another, three times each."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    for number in range(3 * users):
        server.wait(0.02)
        server.write("shop/db", server.leases["shop/db"]["spec"], "label", f"labeler-{number % users}", "")
    return server


def test_who_writes_in_turn_with_others_is_listed_once() -> None:
    server = write_in_turn(2)
    output = text(account(follow_metadata(server), server.now))
    assert [output.count(f"3 writes by labeler-{number} were accepted") for number in range(2)] == [1, 1]
    assert "not shown" not in output
    latest = [line.text for line in list_latest(account(follow_metadata(server), server.now))]
    assert [one.split(" were accepted")[0] for one in latest] == [
        f"3 writes by labeler-{number}" for number in range(2)
    ]


def test_events_that_are_left_out_are_counted() -> None:
    server = write_in_turn(20)
    assert "5 earlier events left out" in text(account(follow_metadata(server), server.now))


def test_a_single_write_is_not_reported_as_lasting() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.take()
    server.log[-1] |= IMPERSONATED
    db.lead(60)
    output = text(account(follow_metadata(server), server.now))
    assert "from then on" in output
    assert output.count("from then on") == 1


def test_a_write_that_a_log_hides_beside_a_list_may_have_changed_the_holder() -> None:
    said = stolen_at_metadata(lists=True, after=20, user={"username": "jane"})
    assert said.startswith("db-0_1 held it at 11:07:01Z, and the log may lack what was written to it since")


@pytest.mark.parametrize(("user", "is_listed"), [("labeler", True), ("system:apiserver", False)])
def test_what_the_api_server_writes_is_not_a_write_beside_the_holder(user: str, is_listed: bool) -> None:
    output = stolen_at_metadata(lists=True, user={"username": user})
    assert (f"by {user} was accepted" in output) == is_listed


def describe_taking(seconds: float, behind: float) -> str:
    """Return what is said of a lease that is renewed through one API server, and taken through another."""
    server, late = FakeServer(), FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(60, db, mail)
    mail.lead(seconds)
    server.wait(0.5)
    split = len(server.log)
    server.elector("db-1", "shop/db").take()
    mail.renew()
    late.log = server.log[split : split + 1]
    shift = int(behind * SECOND)
    for event in late.log:
        for key in ("requestReceivedTimestamp", "stageTimestamp"):
            event[key] = format_micro_time(parse(event[key]) - shift)
    server.log = [*server.log[:split], server.log[-1]]
    histories = ClusterHistory()
    for item in merge_inputs(read("one", [server.audit_log()]), read("two", [late.audit_log()])):
        histories.add(item)
    return text(account(histories, server.now))


def test_a_takeover_that_the_clocks_of_api_servers_explain_is_no_steal() -> None:
    output = describe_taking(16, 8)
    assert "db-1_1 took it from db-0_1: whether it had expired is not known" in output
    assert "lease-stolen" not in output
    assert "no one led" not in output


def test_a_takeover_that_they_do_not_explain_is_one() -> None:
    assert "lease-stolen" in describe_taking(1, 0)
    assert "lease-stolen" in describe_taking(5, 4.5)


def describe_list(seconds: float, **changes: object) -> str:
    """Return what is said of a list in which the holder alone was written, so long after the last renewal."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(seconds)
    server.write("shop/db", server.leases["shop/db"]["spec"] | changes, "kubectl-patch", "admin", "")
    return text(account(cluster_of(server.dump()), server.now))


def test_a_list_shows_that_the_holder_was_written_after_the_last_renewal() -> None:
    output = describe_list(1, holderIdentity="mallory")
    assert output.startswith(
        "mallory holds it, as far as the lease says\nHeld by: mallory, since when is not known: its metadata, which "
    )
    assert "A writer other than the holder may have written it after its last renewal. To see who:" in output
    for changes in ({}, {"leaseTransitions": 7}, {"strategy": "OldestEmulationVersion", "holderIdentity": "db-1"}):
        assert "as far as the lease says" not in describe_list(1, **changes)


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        (1_500_000, "1.5 s"),
        (1_500_001, "1.6 s"),
        (59_999_999, "1 min 0 s"),
        (80_000_001, "1 min 21 s"),
        (3_601_000_000, "1 h 1 min"),
        (86_401_000_000, "1 d 1 h"),
    ],
)
def test_a_bound_is_never_rounded_down(micros: int, expected: str) -> None:
    assert format_bound(micros) == f"up to {expected}"


def test_a_log_that_omits_managed_fields_has_times_of_the_api_server_all_the_same() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    for event in server.log:
        del event["responseObject"]["metadata"]["managedFields"]
    output = text(account(follow_log(server), server.now))
    assert "Last renewed: 11:07:00Z, 0 s ago, by shop/db from pod db-0\n" in output
    assert "Evidence" not in output


@pytest.mark.parametrize(
    ("refused", "renewed", "severity"),
    [(1, 10, "info"), (2, 10, "warning"), (1, 0, "warning")],
    ids=["once, and it wrote later", "twice", "and it wrote no more"],
)
def test_a_refusal_that_passes_is_no_warning(refused: int, renewed: int, severity: str) -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for _ in range(refused):
        server.wait(0.2)
        db.fail(403, f'leases.coordination.k8s.io "db" is forbidden: User "{db.user}" cannot update resource "leases"')
    db.lead(renewed)
    findings = [one for one in account(follow_log(server), server.now).findings if one.check == "write-refused"]
    assert [one.severity for one in findings] == [severity]
    assert ("later writes of the same user were stored" in findings[0].message) is (severity == "info")


def test_who_wrote_the_lease_after_the_last_refusal_is_named() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for _ in range(8):
        server.wait(2)
        db.fail(422, "metadata.annotations: Too long")
    server.wait(1)
    server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-annotate", "nina", "")
    server.wait(1)
    db.lead(20)
    output = text(account(follow_log(server), server.now))
    assert "nina wrote the lease at 11:07:17Z, after the last refusal." in output


FORBIDDEN = 'leases.coordination.k8s.io "db" is forbidden: User "{}" cannot update resource "leases"'


def test_refusals_that_came_again_have_not_ended() -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    for _ in range(2):
        for _ in range(8):
            together(2, mail, cart)
            db.fail(
                403, f'leases.coordination.k8s.io "db" is forbidden: User "{db.user}" cannot update resource "leases"'
            )
        together(2, db, mail, cart)
    (first, second) = (one for one in account(follow_log(server), server.now).findings if one.check == "renewal-late")
    assert isinstance(first, Claim)
    assert isinstance(second, Claim)
    assert first.advice.startswith("Refusals came again after that.")
    assert second.advice.startswith("The refusals have ended.")


def test_of_a_pod_that_was_deleted_there_is_no_log_to_read() -> None:
    server, (db, mail, cart) = shop()
    server.uids["db-0"] = "u-1"
    together(60, db, mail, cart)
    server.delete_pod("db-0", uid="u-1")
    together(40, mail, cart)
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "expired")
    assert finding.fix == ""


@pytest.mark.parametrize(
    ("pod", "verb", "advice"),
    [
        ("db-0", "get", "Refusals came again after that."),
        ("db-1", "get", "Its refusals have ended, but a process at 10."),
        ("db-1", "update", "Its refusals have ended, but a process at 10."),
        ("", "", "The refusals have ended. The API server accepted no credentials"),
    ],
    ids=["from its address", "reads from another address", "writes from another address", "none"],
)
def test_a_process_whose_credentials_are_still_not_accepted_is_said(pod: str, verb: str, advice: str) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    for _ in range(6):
        together(2, mail, cart)
        db.fail_unauthenticated()
    together(2, db, mail, cart)
    if pod:
        together(4, db, mail, cart)
        server.elector(pod, "shop/db").fail_unauthenticated(verb)
    server.wait(1)
    (late,) = (one for one in account(follow_log(server), server.now).findings if one.check == "renewal-late")
    assert isinstance(late, Claim)
    assert late.advice.startswith(advice)
    assert ("without accepted credentials was refused until 11:07:18Z." in late.advice) == (pod == "db-1")


@pytest.mark.parametrize(
    ("pod", "user", "code", "verb", "advice"),
    [
        (
            "db-1",
            "system:serviceaccount:shop:db",
            403,
            "update",
            "Its refusals have ended, but shop/db from pod db-1 was",
        ),
        ("db-1", "system:serviceaccount:shop:db", 403, "get", "Its refusals have ended, but shop/db from pod db-1 was"),
        ("db-1", "system:serviceaccount:shop:db", 500, "update", "The refusals have ended."),
        ("x", "system:serviceaccount:shop:mallory", 401, "get", "The refusals have ended."),
        ("", "", 403, "update", "Its refusals have ended, but an unknown writer was refused until"),
    ],
    ids=["a write", "a read", "a failure", "a read that was refused otherwise", "a log without a name and an address"],
)
def test_another_process_that_is_still_refused_is_said(pod: str, user: str, code: int, verb: str, advice: str) -> None:
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    for _ in range(8):
        together(2, mail, cart)
        db.fail(403, FORBIDDEN.format(db.user))
    together(2, db, mail, cart)
    server.wait(1)
    server.elector(pod, "shop/db", user=user).fail(code, FORBIDDEN.format(user), verb=verb)
    if not pod:
        del server.log[-1]["sourceIPs"]
    server.wait(1)
    (late,) = (one for one in account(follow_log(server), server.now).findings if one.check == "renewal-late")
    assert isinstance(late, Claim)
    assert late.advice.startswith(advice)
