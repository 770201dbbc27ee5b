"""Findings about refusals, deletions and writers, in elections that no recording has."""

import shlex

import pytest

from tests.explanation.test_accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.test_elections import cluster_of, of_log, of_watch
from tests.history.test_refusal import POLICY, RIGHTS, WEBHOOK
from webhook.explanation.account import account_of
from webhook.explanation.causes import pod_of_holder, rights
from webhook.findings import word
from webhook.inputs.items import Writer


def messages(one: FakeServer) -> dict[str, str]:
    return {found.check: found.message for found in account(of_log(one), one.now).findings}


@pytest.mark.parametrize(
    ("message", "said", "command"),
    [
        (RIGHTS, "shop/db needs a Role and RoleBinding that allow update on the lease", "kubectl auth can-i update"),
        (WEBHOOK, "See why the webhook refuses the writes of shop/db", "lease-webhook doctor"),
        (POLICY, "See why the policy refuses the writes of shop/db", "kubectl get validatingadmissionpolicies"),
    ],
    ids=["rights", "webhook", "policy"],
)
def test_a_leader_whose_writes_were_refused_is_followed(message: str, said: str, command: str) -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(2)
    db.fail(403, message)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    one = account(of_log(server), server.now)
    (lost,) = (found for found in one.findings if found.severity.value == "warning")
    assert f"Its writes were refused: 1 write answered with 403, the last one: {message}." in lost.message
    assert said in str(one.advice)
    assert command in one.advice.command


def test_a_leader_whose_token_expired_is_followed() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(2)
    db.fail_unauthenticated()
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    one = account(of_log(server), server.now)
    (lost,) = (found for found in one.findings if found.severity.value == "warning")
    assert "Its writes were refused: 1 write answered with 401 (Unauthorized), so the log cannot say whose" in (
        lost.message
    )
    assert "The API server did not accept the credentials" in str(one.advice)


def test_a_write_without_credentials_is_not_the_holder_s_if_that_is_heard() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(2)
    db.fail_unauthenticated()
    db.ask()
    server.wait(16)
    server.elector("db-1", "shop/db").lead(10)
    found = messages(server)
    assert "refused with 401 for lack of credentials" in found["write-refused"]
    assert "Its writes were refused" not in found["leader-lost"]


@pytest.mark.parametrize("level", ["RequestResponse", "Metadata"])
def test_leases_that_are_deleted_with_all_of_their_namespace(level: str) -> None:
    server, (db, *_) = shop()
    server.elector("bill-0", "billing/bill").lead(10)
    db.lead(40)
    server.clear("shop")
    cluster = cluster_of(server.audit_log(metadata_only=level == "Metadata"))
    (found,) = (one for one in account(cluster, server.now).findings if one.check == "lease-deleted")
    assert found.message.startswith("namespace-controller deleted the lease at")
    assert not cluster.leases["billing", "bill"].is_deleted


def test_a_deletion_of_chosen_leases_says_nothing_of_the_others() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.clear("shop", selector="?labelSelector=app%3Dother")
    assert "lease-deleted" not in messages(server)


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (2, "it had been paused, cut off or restarted"),
        (17, "but only every 17 s: its own rate limit, or overload, holds them back."),
        (0, "it had been paused, cut off, restarted, or held back by its own rate limit"),
    ],
)
def test_a_former_holder_that_is_heard_again(interval: int, said: str) -> None:
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
    assert said in messages(server)["leader-lost"]


def test_refusals_are_listed_by_writer() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    for name, user in (("db-1", "system:serviceaccount:shop:db"), ("job", "system:serviceaccount:shop:job")):
        other = server.elector(name, "shop/db", user=user)
        for _ in range(2):
            server.wait(0.001)
            other.fail(403, RIGHTS)
    server.elector("db-1", "shop/db").fail(422, "no")
    found = [one.message for one in account(of_log(server), server.now).findings if one.check == "write-refused"]
    lack = f"for lack of permission, the last one at 11:07:00Z: {RIGHTS}"
    assert found == [
        f"2 writes by shop/db from pod db-1 refused with 403 {lack}",
        f"2 writes by shop/job from pod job refused with 403 {lack}",
        "1 write by shop/db from pod db-1 refused with 422, the last one at 11:07:00Z: no",
    ]


def test_refusals_while_the_holder_does_not_renew_are_said_once() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(14)
    db.fail(403, RIGHTS)
    server.wait(4)
    db.ask()
    one = account(of_log(server), server.now)
    assert "Why: Its writes were refused: 1 write answered with 403" in text(one)
    assert [found.check for found in one.findings if found.severity.value == "warning"] == ["expired"]
    assert one.advice.command.startswith("kubectl auth can-i update")


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
    one = account(of_log(server), server.now)
    (found,) = (found for found in one.findings if found.check == "lease-deleted")
    assert (
        found.message == "jane deleted the lease at 11:07:00Z while db-0_1 held it; db-0_1 created it again 2 s later"
    )
    assert found.severity.value == "warning"


def test_a_watch_does_not_know_who_deleted_a_lease() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    one = account(of_watch(server), server.now)
    (found,) = (found for found in one.findings if found.check == "lease-deleted")
    assert found.message.startswith("the lease was deleted at 11:07:00Z or later while db-0_1 held it")
    assert found.fix == "lease-webhook why shop/db --input AUDIT-LOG"


def test_a_lease_is_deleted_before_it_is_created_again() -> None:
    """A watch has no time of a deletion: other leases may have been renewed later than the stamp of the creation."""
    server, (db, *_) = shop()
    db.lead(20)
    server.delete("shop/db")
    db.lead(4)
    one = account(of_watch(server), server.now)
    deleted = one.history.tenures[0]
    assert deleted.until is not None
    deleted.until += 500_000
    said = text(one)
    assert said.index("the lease was deleted while db-0_1 held it") < said.index("db-0_1 created it again")


def test_a_lease_that_is_not_held_when_it_is_deleted() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    server.delete("shop/db")
    assert "released it" in text(account(of_log(server), server.now))


def test_an_apiserver_that_writes_beside_an_application_shares_nothing() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    server.elector("db-1", "shop/db", manager="kube-apiserver").lead(10)
    assert "lease-shared" not in text(account(of_watch(server), server.now))


def test_an_audit_log_in_which_all_clients_fell_silent() -> None:
    server, electors = shop()
    for one in electors:
        one.take()
    for _ in electors[0].ticks(40):
        for one in electors:
            one.renew()
    server.wait(20)
    for one in electors:
        one.renew()
    said = text(account(of_log(server), server.now))
    assert "Clients did not reach the API server: both other leases" in said
    assert "the log shows no request from the holder until the end of that time" in said
    assert "kubectl cluster-info" in said


@pytest.mark.parametrize("ends", ["expires", "is released", "is taken away"])
def test_a_coordinated_election(ends: str) -> None:
    server = FakeServer()
    first, second = (server.elector(name, "shop/db", user="system:apiserver") for name in ("a", "b"))
    first.take()
    first.user = "system:serviceaccount:shop:db"
    first.lead(20)
    if ends == "is released":
        first.release()
    server.wait(2 if ends == "is taken away" else 20)
    second.take()
    said = text(account(of_log(server), server.now))
    assert "the API server chose a_1\n" in said
    after = {
        "expires": "after a_1 let it expire; no one led for up to 20 s",
        "is released": "after a_1 released it; no one led for 20 s",
        "is taken away": "in place of a_1",
    }
    assert f"the API server chose b_1 {after[ends]}" in said


def test_a_lease_without_a_duration_has_no_silences() -> None:
    server, (db, *_) = shop()
    db.take()
    for seconds in (2, 2, 2, 2, 60):
        server.wait(seconds)
        db.renew(leaseDurationSeconds=None)
    one = account(of_log(server), server.now)
    assert "did not renew" not in text(one)


def test_an_expired_lease_of_which_only_the_present_is_known_by_name() -> None:
    server, (db, *_) = shop()
    db.take(holderIdentity="node/1 $(reboot)")
    server.wait(60)
    one = account(cluster_of(server.dump()), server.now)
    assert one.advice.command == "kubectl -n shop get pods"


def test_a_stored_object_that_breaks_a_rule_comes_first() -> None:
    server, (db, *_) = shop()
    db.take(leaseTransitions=-1)
    one = account(cluster_of(server.dump()), server.now)
    assert one.findings[0].severity.value == "error"
    assert one.advice.sentence.endswith(".")
    assert one.advice.command == one.findings[0].fix


@pytest.mark.parametrize("name", ["--server=http://x_1", "a;reboot_1", "$(reboot)_1", "A_1", "\x1b[2J_1", "_1", "-a_1"])
def test_a_holder_that_names_no_pod_is_in_no_command(name: str) -> None:
    assert pod_of_holder("shop", name) == "kubectl -n shop get pods"


@pytest.mark.parametrize(
    ("field", "value"), [("leaseTransitions", 2**31 - 1), ("leaseDurationSeconds", 2**31 - 1)], ids=str
)
def test_the_repair_of_a_frozen_lease_quotes_its_names(field: str, value: int) -> None:
    server = FakeServer()
    server.elector("db-0", "a;b/$(reboot)").take(**{field: value})
    cluster = cluster_of(server.dump())
    one = account_of(cluster, cluster.leases["a;b", "$(reboot)"], server.now)
    assert shlex.split(one.advice.command)[:6] == ["kubectl", "-n", "a;b", "patch", "lease", "$(reboot)"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a b\x1b", "'a b\\x1b'"), ("db-0.a", "db-0.a"), ("--server=x", "NAME"), ("", "''")]
)
def test_a_name_is_one_word_of_a_command(name: str, expected: str) -> None:
    assert word(name) == expected


def test_names_are_quoted_for_a_shell() -> None:
    assert "--as='a;b'" in rights("update", "shop", "db", Writer("a;b"))
    assert "--as" not in rights("update", "shop", "db", Writer())


def test_a_client_that_renews_less_often_than_the_lease_lasts() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", retry=20).lead(400)
    server.wait(100)
    assert "it renews every 20 s, and the lease lasts 15 s" in text(account(of_watch(server), server.now))


def test_a_holder_that_stops_renewing_a_lease_that_nobody_can_take() -> None:
    server, (db, mail, _) = shop()
    together(40, db, mail)
    db.renew(leaseTransitions=2**31 - 1)
    together(60, mail)
    (late,) = (found for found in account(of_watch(server), server.now).findings if found.check == "renewal-late")
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
    return text(account(of_log(server), server.now))


def test_who_acted_as_another_one_is_named() -> None:
    acted = {"username": "system:serviceaccount:shop:db"}
    said = stolen_by(user={"username": "admin"}, impersonatedUser=acted)
    assert "shop/db (impersonated by admin) wrote mallory into it from db-0_1" in said
    assert "shop/db (impersonated by admin) wrote mallory into the lease while db-0_1 still held it" in said
    assert "(impersonated" not in stolen_by()


def test_a_refused_impersonation_is_named() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    db.fail(403, "no")
    server.log[-1] |= {"user": {"username": "admin"}, "impersonatedUser": {"username": "system:serviceaccount:shop:db"}}
    one = account(of_log(server), server.now)
    assert "1 write by shop/db (impersonated by admin) was refused with 403" in text(one)


def test_rights_are_asked_for_with_the_groups_of_a_user() -> None:
    said = stolen_by(user={"username": "jane", "groups": ["ops team", "system:authenticated"]})
    assert "--as=jane --as-group='ops team'" in said
    assert "system:authenticated" not in said
    # The API server knows those of a service account.
    groups = ["system:serviceaccounts", "system:authenticated"]
    assert "--as-group" not in stolen_by(user={"username": "system:serviceaccount:shop:db", "groups": groups})
