"""What `why` says of incidents that were recorded on a real API server, held against what really happened."""

import gzip
import re
from itertools import groupby

import pytest

from tests.incidents import AUDIT_LOG, SOURCES, WATCH, Incident, incident, incidents, instant
from tests.inputs.reading import read
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.diagnosis import Blame
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.advise import advise as find_advice
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.status import LeaseState
from webhook.analysis.inputs.items import FenceReport
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND

# By incident: the findings at warning and above with their causes, from a watch and from the audit log.
SAID: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "clock-behind": ({"lease-stolen": "clock"}, {"lease-stolen": "clock"}),
    "coordinated": ({"leader-lost": "client"}, {"leader-lost": "client"}),
    "etcd-stalled": ({"renewal-late": "api-server"}, {"renewal-late": "api-server"}),
    "fenced": ({"leader-lost": "client"}, {"leader-lost": "client", "write-fenced": "fenced"}),
    "leader-cut-off": ({"leader-lost": "client"}, {"leader-lost": "client"}),
    "leader-killed": ({"leader-lost": "client"}, {"leader-lost": "client"}),
    "leader-paused": ({"leader-lost": "client"}, {"leader-lost": "client"}),
    "leader-released": ({}, {}),
    "lease-deleted": ({"lease-deleted": "deleted"}, {"lease-deleted": "deleted"}),
    "lease-stolen": (
        {"lease-stolen": "stolen", "lease-shared": "shared-lease"},
        {"lease-stolen": "stolen", "lease-shared": "shared-lease"},
    ),
    # Only the log shows whether anything reached the API server.
    "load-balancer-cut": ({"renewal-late": "api-server"}, {"renewal-late": "network"}),
    "one-identity": ({"identity-shared": "shared-identity"}, {"identity-shared": "shared-identity"}),
    # A watch shows no answers: that the fault is with the client includes its rights.
    "rights-removed": ({"renewal-late": "client"}, {"renewal-late": "refused"}),
    # Nothing was stored, so a watch shows nothing.
    "steal-denied": ({}, {"write-refused": "denied"}),
    "steal-warned": (
        {"lease-stolen": "stolen", "lease-shared": "shared-lease"},
        {"lease-stolen": "stolen", "lease-shared": "shared-lease"},
    ),
    "two-applications": ({"lease-shared": "shared-lease"}, {"lease-shared": "shared-lease"}),
}
EACH = pytest.mark.parametrize("incident", [pytest.param(incident, id=incident.name) for incident in incidents()])
EITHER = pytest.mark.parametrize("source", SOURCES, ids=["watch", "audit log"])
SLOWEST_REPORT = 3 * SECOND
"""An elector reports at its next try that it leads; it retries every two seconds."""


def test_every_recorded_incident_has_an_expectation() -> None:
    assert {one.name for one in incidents()} == set(SAID)


@EACH
@EITHER
def test_the_findings_are_those_of_the_incident_and_nothing_else(incident: Incident, source: str) -> None:
    findings = make_account_json(incident.account(source))["findings"]
    worrying = {found["check"]: found["cause"] for found in findings if found["severity"] != "info"}
    assert worrying == SAID[incident.name][SOURCES.index(source)]


@EACH
@EITHER
def test_every_finding_ends_with_a_command(incident: Incident, source: str) -> None:
    account = incident.account(source)
    worrying = [found for found in account.findings if found.severity is not Severity.INFO]
    for finding in worrying:
        assert finding.fix.startswith(("kubectl ", "lease-webhook "))
    assert bool(find_advice(account).command) is bool(worrying)
    assert find_advice(account).sentence.endswith(":" if worrying else ".")


@EACH
@EITHER
def test_who_held_the_lease_is_who_led(incident: Incident, source: str) -> None:
    account = incident.account(source)
    held = [holder for holder, _ in groupby(tenure.holder for tenure in account.history.tenures)]
    led = [holder for holder, _ in groupby(_new_leaders(incident))]
    assert held == led
    assert account.state is LeaseState.LIVE
    assert account.holder == led[-1]


def _new_leaders(incident: Incident) -> list[str]:
    """Return who began to lead, in order; a paused one that goes on does not begin."""
    stretches = incident.truth["led"]
    paused = {led["holder"] for led in stretches if led["ended"] == "paused"}
    seen: list[str] = []
    for led in stretches:
        if led["holder"] in seen and led["holder"] in paused:
            continue
        seen.append(led["holder"])
    return seen


@EACH
@EITHER
def test_the_time_without_a_leader_is_at_most_the_reported_bound(incident: Incident, source: str) -> None:
    account = incident.account(source)
    handed = [tenure for tenure in account.history.tenures if tenure.began in {Handover.EXPIRED, Handover.RELEASED}]
    gaps = [gap["seconds"] for gap in incident.truth["leaderless"] if gap["seconds"] > 0.2]
    late = account.history.renewals.silences
    bounds = [tenure.leaderless or 0 for tenure in handed] + [silence.length for silence in late]
    bounds = [length for length in bounds if length > SECOND // 5]
    assert len(bounds) == len(gaps)
    for bound, seconds in zip(bounds, gaps, strict=True):
        # What is said begins at the last renewal; an elector that lives gives up ten seconds later.
        assert bound > seconds * SECOND - SLOWEST_REPORT
        assert bound - seconds * SECOND < 10 * SECOND + SLOWEST_REPORT


@EACH
@EITHER
def test_only_findings_that_can_last_are_reported_as_ongoing(incident: Incident, source: str) -> None:
    explained = [found for found in incident.account(source).findings if isinstance(found, Claim)]
    over = {found.check for found in explained if found.is_over}
    assert over <= {"leader-lost", "renewal-late", "lease-stolen", "lease-deleted"}
    assert {found.check for found in explained if found.is_over is False} <= {
        "identity-shared",
        "write-refused",
        "write-fenced",
    }


def test_two_pods_under_one_identity_are_in_the_headline() -> None:
    answer = incident("one-identity").account(AUDIT_LOG)
    assert make_headline(answer) == "2 pods renew it as exporter: exporter-54d6c9-b5tmw and exporter-54d6c9-h7r3c"
    assert [found.is_over for found in answer.findings if isinstance(found, Claim)] == [False]


@EACH
def test_two_leaders_at_once_are_always_reported(incident: Incident) -> None:
    account = incident.account(AUDIT_LOG)
    is_said = any(
        found.severity is Severity.ERROR or "it may have acted as leader until it noticed" in found.message
        for found in account.findings
    )
    assert is_said or not incident.truth["two_led"]


@pytest.mark.parametrize(
    ("name", "source", "blame", "command"),
    [
        ("leader-killed", WATCH, Blame.CLIENT, "kubectl -n payments get pods; kubectl -n payments describe pod"),
        ("leader-killed", AUDIT_LOG, Blame.CLIENT, "kubectl -n payments get pods; kubectl -n payments describe pod"),
        ("leader-cut-off", WATCH, Blame.CLIENT, "kubectl -n prices get pods; kubectl -n prices describe pod"),
        ("rights-removed", WATCH, Blame.CLIENT, "kubectl -n refunds get pods; kubectl -n refunds describe pod"),
        ("rights-removed", AUDIT_LOG, Blame.REFUSED, "kubectl auth can-i get leases.coordination.k8s.io/refunds"),
        ("etcd-stalled", AUDIT_LOG, Blame.SERVER, "kubectl get --raw '/readyz?verbose'"),
        ("load-balancer-cut", WATCH, Blame.SERVER, "kubectl get --raw '/readyz?verbose'"),
    ],
)
def test_the_cause_is_known_while_no_one_leads(name: str, source: str, blame: Blame, command: str) -> None:
    incident_played = incident(name)
    account = incident_played.account(source, _last_moment_without_a_leader(incident_played))
    assert account.state is LeaseState.EXPIRED
    assert account.cause is not None
    assert account.cause.blame is blame
    assert find_advice(account).command.startswith(command)


def _last_moment_without_a_leader(incident: Incident) -> int:
    """Shortly before another one took the lease, or before what had been broken was put right."""
    ends = [led["from"] for led in incident.truth["led"][1:]] + [done["at"] for done in incident.truth["done"][1:]]
    return min(instant(end) for end in ends) - SECOND // 10


def test_a_log_says_how_it_knows() -> None:
    killed, paused, cut = (
        incident(name).account(AUDIT_LOG).findings[0].message
        for name in ("leader-killed", "leader-paused", "load-balancer-cut")
    )
    assert "For most of that time the log has no answered request for the lease from its pod" in killed
    assert "again" not in killed
    assert "on; unless it had ended or restarted, it may have acted as leader" in paused
    assert "Clients did not reach the API server" in cut


def test_the_writers_are_named() -> None:
    deleted = incident("lease-deleted").account(AUDIT_LOG).findings[0].message
    assert deleted.startswith("admin deleted the lease at ")
    denied = incident("steal-denied").account(AUDIT_LOG).findings[0].message
    assert "by vouchers/migration from pod migration-28771-t6lkd refused with 403 by webhook leases" in denied
    clock = incident("clock-behind").account(WATCH).findings[0].message
    assert re.search(r"The old holder's clock is (39|40)(\.\d)? s behind the API server's", clock)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "fenced",
            [
                "operator-6d5f8b-x2x8p_4b1c created it",
                "the lease expired, 15 s after the last renewal by operator-6d5f8b-x2x8p_4b1c",
                r"operator-6d5f8b-q9hkz_4b1c took it \(\S+ from pod \S+\) after operator-6d5f8b-x2x8p_4b1c let it",
                "pod operator-6d5f8b-x2x8p, the previous holder, asks for the lease",
                r"fence shipping refused \d+ writes by shipping/operator from pod operator-6d5f8b-x2x8p",
            ],
        ),
        (
            "rights-removed",
            [
                "refunds-7d4b9c-x2x8p_1f0e created it",
                "the holder did not renew it for 2",
                "RoleBinding refunds/lease-writer was deleted by admin",
                r"\d+ writes by refunds/refunds from pod refunds-7d4b9c-x2x8p were refused with 403 within",
                "the lease expired, and no one took it",
                "RoleBinding refunds/lease-writer was created by admin",
                "the holder renewed it again",
            ],
        ),
        (
            "lease-deleted",
            [
                "coupons-7d4b9c-x2x8p_1f0e created it",
                "admin deleted the lease while coupons-7d4b9c-x2x8p_1f0e held it",
                r"coupons-7d4b9c-q9hkz_2f0e created it again \(\S+ from pod \S+\) after it was deleted",
                "a write by pod coupons-7d4b9c-x2x8p, the previous holder, was refused",
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_happened_is_listed_in_order(name: str, lines: list[str]) -> None:
    events = list(list_events(incident(name).account(AUDIT_LOG)))
    assert len(events) == len(lines)
    for line, text in zip(events, lines, strict=True):
        assert re.match(text, line.text)


def test_pods_of_another_account_wait_for_a_lease_if_that_has_held_it() -> None:
    lines = [(line.label, line.text) for line in list_facts(incident("two-applications").account(AUDIT_LOG))]
    waits = "checkout-7b8d9f-v8n4t of backoffice/checkout (reads the lease again and again)"
    assert ("Waiting", waits) in lines
    assert "Waiting" not in {line.label for line in list_facts(incident("leader-killed").account(AUDIT_LOG))}


def test_a_fence_of_a_lease_that_is_not_in_the_log_is_passed_over() -> None:
    incident_played = incident("fenced")
    (refused, *_) = (item for item in read("log", [_log_of(incident_played)]) if isinstance(item, FenceReport))
    histories = ClusterHistory()
    histories.add(refused)
    assert histories.leases == {}


def _log_of(incident: Incident) -> bytes:
    return gzip.decompress(incident.file(AUDIT_LOG).read_bytes())
