"""An audit policy that leaves out updates: such a log shows neither that a lease was renewed nor that it was not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import SECOND, START, FakeServer, together
from tests.history.observing import View, follow_both, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.cli.main import main
from webhook.kubernetes.times import format_micro_time, format_time

Rule = Callable[[Document], bool]
DOUBT = "has not renewed it for 1 min 0 s, as far as the log shows"


def of_all(event: Document) -> bool:
    return bool(event["verb"] == "update")


def of_its_account(event: Document) -> bool:
    return of_all(event) and bool(event["user"]["username"].endswith(":db"))


def lead(rule: Rule | None = None) -> FakeServer:
    """Two leases that are renewed for a minute, in a log of which a rule leaves something out."""
    server = FakeServer()
    together(60, server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail"))
    server.log = [event for event in server.log if rule is None or not rule(event)]
    return server


def explain(server: FakeServer, view: View = follow_log) -> Account:
    return account(view(server), server.now)


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        pytest.param(of_all, "no update of a lease by shop/db", id="updates of all"),
        pytest.param(of_its_account, "no update of a lease by shop/db", id="updates of its account"),
    ],
)
def test_a_log_without_updates_shows_no_expiry(rule: Rule, shown: str) -> None:
    found = explain(lead(rule))
    assert text(found).startswith(f"db-0_1 {DOUBT}")
    assert not [one for one in find_claims(found) if one.check in {"expired", "no-candidate"}]
    assert "no other process" not in text(found)
    assert found.cause is None
    assert ("Not shown", shown) in [(one.label, one.text.rpartition("it has ")[2]) for one in list_facts(found)]
    advice = advise_with_urgency(found)
    assert advice.sentence == f"The log has {shown}, so it may lack all renewals. To see the lease:"
    assert advice.command == "kubectl -n shop get lease db -o yaml"


def test_audit_reports_no_expiry_that_a_log_cannot_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = lead(of_all)
    (tmp_path / "audit.log").write_bytes(server.audit_log())
    main(["audit", "--input", str(tmp_path / "audit.log"), "--now", format_time(server.now)])
    assert "renews it" not in capsys.readouterr().out


def test_who_wrote_last_is_unknown_to_a_log_that_shows_a_lease_by_its_deletion_alone() -> None:
    """Whose account renews it is not known, and no account's updates are in the log."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(60)
    server.delete_with_finalizer("shop/db", seconds=30)
    server.log = [event for event in server.log if event["verb"] == "delete"]
    found = explain(server)
    assert "ADVICE The log has no update of a lease, so it may lack all renewals." in text(found)


def test_a_watch_beside_it_shows_the_renewals() -> None:
    assert text(explain(lead(of_all), follow_both)).startswith("db-0_1 holds it since 11:06:40Z, renewed 0 s ago")


def _watch_another_namespace(server: FakeServer) -> None:
    server.events = [event for event in server.events if event[2]["metadata"]["namespace"] == "other"]


def _end_watch(server: FakeServer) -> None:
    server.events = [event for event in server.events if event[0] <= START + 20 * SECOND]


def _end_log(server: FakeServer) -> None:
    _watch_another_namespace(server)
    server.log = [event for event in server.log if event["stageTimestamp"] <= format_micro_time(START + 40 * SECOND)]


@pytest.mark.parametrize(
    ("deed", "rule", "shown"),
    [
        pytest.param(
            _watch_another_namespace,
            of_all,
            "no update of a lease by shop/db",
            id="it is of another namespace, and the log without updates",
        ),
        pytest.param(
            _end_watch,
            of_all,
            "no request for some writes that a watch shows",
            id="it ended before the lease expired, and the log is without updates",
        ),
        pytest.param(
            _end_log, None, "no request after 11:07:20Z", id="it is of another namespace, and the log ended before"
        ),
    ],
)
def test_a_watch_that_does_not_show_the_lease_then_shows_no_expiry(
    deed: Callable[[FakeServer], None], rule: Rule | None, shown: str
) -> None:
    server = FakeServer()
    db, other = server.elector("db-0", "shop/db"), server.elector("x-0", "other/x")
    reader = server.elector("monitor-0", "shop/db", user="system:serviceaccount:monitoring:exporter")
    db.take()
    other.take()
    for _ in db.ticks(90):
        db.renew()
        other.renew()
        reader.ask()
    server.log = [event for event in server.log if rule is None or not rule(event)]
    deed(server)
    found = explain(server, follow_both)
    assert f"ADVICE The log has {shown}, so it may lack all renewals." in text(found)
    assert not [one for one in find_claims(found) if one.check in {"expired", "no-candidate"}]
    assert ", as far as the log shows" in text(found)


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "refused"])
def test_an_update_of_its_account_in_the_log_shows_that_the_policy_has_them(is_stored: bool) -> None:
    """One of another lease does, too: who was created and then ended is said not to have renewed."""
    server = lead(of_its_account)
    queue = server.elector("queue-0", "shop/queue", user="system:serviceaccount:shop:db")
    queue.take()
    server.wait(2)
    queue.renew() if is_stored else queue.fail(403, "forbidden")
    found = explain(server)
    assert [one for one in find_claims(found) if one.check == "expired"]
    assert "as far as the log shows" not in text(found)


def test_the_heartbeat_of_a_node_is_not_called_silent_by_a_log_without_updates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    lease = "kube-node-lease/worker-1"
    kubelet = server.elector("worker-1", lease, user="system:node:worker-1", pod="", duration=40, retry=10)
    kubelet.identity = "worker-1"
    kubelet.lead(120)
    for event in server.log:
        if event["verb"] == "create":
            # As a kubelet creates it.
            event["responseObject"]["spec"] = {
                key: one
                for key, one in event["responseObject"]["spec"].items()
                if key not in {"acquireTime", "leaseTransitions"}
            }
    server.log = [event for event in server.log if event["verb"] == "create"]
    server.elector("mail-0", "shop/mail").take()
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    main(["why", lease, "--input", str(path), "--now", format_time(server.now)])
    said = " ".join(capsys.readouterr().out.split())
    assert "heartbeat of worker-1 silent for 2 min 0 s, as far as the log shows" in said
    assert "so it may lack all renewals. To see the lease: kubectl -n kube-node-lease get lease worker-1" in said
    main(["why", lease, "--input", str(path), "--now", format_time(server.now), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["findings"] == []
