"""Each check on one healthy object with one defect: that finding is made, and nothing else."""

from collections.abc import Sequence

import pytest

from tests.factories import NOW, Document, Tweak, drop, make_candidate, make_entry, make_lease, put, to_bytes
from tests.inputs.reading import read
from webhook.analysis.audit.leases import Inventory, Subject
from webhook.analysis.claims.arguments import convert_finding
from webhook.analysis.inputs.items import Observation
from webhook.findings import ReportFinding, Severity

SECOND = 1_000_000
LEASE_ENTRY = ("acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime")
HOUR = "2025-11-20T13:00:00Z"


def audited(*documents: Document, now: int = NOW + 4 * SECOND, interval: float | None = None) -> list[ReportFinding]:
    """Return what an audit finds in objects as they are stored."""
    inventory = Inventory(now)
    findings: list[ReportFinding] = []
    for document in documents:
        for item in read("in", [to_bytes(document)]):
            assert isinstance(item, Observation)
            assert item.object is not None
            subject = Subject(item.object, item.namespace, item.name, now, interval=interval, source=str(item.place))
            findings += inventory.add(subject)
    return [*findings, *inventory.finish()]


def marked(findings: Sequence[ReportFinding]) -> list[tuple[str, str]]:
    return [(one.check, one.severity.value) for one in findings if one.severity is not Severity.INFO]


def checks(findings: Sequence[ReportFinding]) -> dict[str, str]:
    return {one.check: one.severity.value for one in findings}


SLOW = put("spec.leaseDurationSeconds", 137)
"""Timings about which there is nothing to say."""


def node_lease(*tweaks: Tweak) -> Document:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "u"}
    return make_lease(
        put("metadata.namespace", "kube-node-lease"),
        put("metadata.name", "worker-1"),
        put("metadata.ownerReferences", [owner]),
        put(
            "spec",
            {"holderIdentity": "worker-1", "leaseDurationSeconds": 40, "renewTime": "2025-11-20T12:00:00.000000Z"},
        ),
        *tweaks,
    )


def test_healthy_objects_have_nothing_worth_a_warning() -> None:
    assert marked(audited(make_lease(), make_candidate(), node_lease())) == []
    assert audited(make_lease(SLOW)) == []
    assert audited(node_lease()) == []


def entry_of(manager: str, *fields: str, time: str = "2025-11-20T12:00:00Z") -> Document:
    return {**make_entry(*fields), "manager": manager, "time": time}


@pytest.mark.parametrize(
    ("tweaks", "expected"),
    [
        pytest.param(
            (put("spec.leaseDurationSeconds", 0),), {"lease-duration": "error", "expired": "warning"}, id="duration 0"
        ),
        pytest.param((put("spec.leaseTransitions", -1),), {"lease-transitions": "error"}, id="negative transitions"),
        pytest.param((put("metadata.name", "UPPER"),), {"object-name": "error"}, id="an illegal name"),
        pytest.param((put("spec.leaseDurationSeconds", 2**31 - 1),), {"duration-too-long": "error"}, id="68 years"),
        pytest.param(
            (put("spec.leaseDurationSeconds", 100_000),), {"duration-too-long": "warning"}, id="more than a day"
        ),
        pytest.param((put("spec.leaseTransitions", 2**31 - 1),), {"transitions-jump": "error"}, id="the last count"),
        pytest.param(
            (put("spec.leaseTransitions", 2**31 - 9),), {"transitions-jump": "error"}, id="near the last count"
        ),
        pytest.param(
            (put("spec.renewTime", "2035-11-20T12:00:00.000000Z"),),
            {"renew-time-in-future": "error"},
            id="ten years ahead",
        ),
        pytest.param(
            (put("spec.renewTime", "2025-11-20T21:00:00.000000Z"),),
            {"holder-clock": "warning"},
            id="nine hours ahead",
        ),
        pytest.param(
            (put("spec.renewTime", "2025-11-20T21:00:00.000000Z"), put("metadata.managedFields", [])),
            {"renew-time-in-future": "warning", "lease-without-stamps": "warning"},
            id="nine hours ahead, without stamps",
        ),
        pytest.param(
            (put("spec.renewTime", "10000-01-01T00:59:59.999999Z"),), {"time-unreadable": "error"}, id="year 10000"
        ),
        pytest.param(
            (put("spec.holderIdentity", "a\u202eb"),), {"holder-identity-shape": "warning"}, id="a bidi character"
        ),
        pytest.param(
            (put("spec.renewTime", "2025-11-20T12:00:05.000000Z"),), {"holder-clock": "info"}, id="a clock 4 s ahead"
        ),
        pytest.param(
            (put("spec.renewTime", "2025-11-20T11:55:00.000000Z"),),
            {"holder-clock": "warning"},
            id="a clock 5 min behind",
        ),
        pytest.param(
            (put("metadata.managedFields[0].time", HOUR),),
            {"renewal-stamp-tampered": "error"},
            id="a stamp of the future",
        ),
        pytest.param(
            (put("metadata.managedFields[0].fieldsV1.f:spec.f:renewTime", {".": {}, "f:x": {}}),),
            {"renewal-stamp-tampered": "error"},
            id="something below a scalar",
        ),
        pytest.param(
            (put("metadata.managedFields[0].fieldsV1.f:spec.f:", {"f:x": {}}),),
            {"renewal-stamp-tampered": "error"},
            id="something below a field without a name",
        ),
        pytest.param(
            (
                put("metadata.managedFields[0].fieldsV1.f:metadata", {"f:labels": {}}),
                drop("metadata.managedFields[0].fieldsV1.f:spec"),
            ),
            {"lease-without-stamps": "warning"},
            id="no owner of renewTime",
        ),
        pytest.param(
            (put("metadata.managedFields[1]", entry_of("other", "strategy")),),
            {"lease-shared": "warning"},
            id="two programs",
        ),
        pytest.param(
            (put("metadata.managedFields[1]", entry_of("other", "strategy", time="2025-11-19T12:00:00Z")),),
            {"lease-shared": "info"},
            id="another program yesterday",
        ),
        pytest.param(
            (put("metadata.managedFields[1]", entry_of("kubectl-patch", "strategy")),), {}, id="a person with kubectl"
        ),
        pytest.param(
            (put("metadata.managedFields[1]", {**entry_of("other", "strategy"), "operation": "Apply"}),),
            {},
            id="an apply",
        ),
    ],
)
def test_one_defect_is_one_finding(tweaks: tuple[Tweak, ...], expected: dict[str, str]) -> None:
    # A second entry needs a place to stand.
    grown = [put("metadata.managedFields", [make_entry(*LEASE_ENTRY), {}])] if _adds_entry(tweaks) else []
    assert checks(audited(make_lease(SLOW, *grown, *tweaks), node_lease())) == expected


def _adds_entry(tweaks: tuple[Tweak, ...]) -> bool:
    try:
        make_lease(*tweaks)
    except IndexError:
        return True
    return False


def test_managed_fields_that_nest_too_deeply_are_forged() -> None:
    deep: Document = {}
    for _ in range(40):
        deep = {"f:a": deep}
    lease = make_lease(SLOW, put("metadata.managedFields[0].fieldsV1.f:metadata", deep))
    assert checks(audited(lease)) == {"renewal-stamp-tampered": "error"}


HEARTBEAT = (drop("spec.acquireTime"), drop("spec.leaseTransitions"))
"""The changes that turn the lease of an election into a heartbeat."""


@pytest.mark.parametrize(
    ("document", "after", "expected"),
    [
        pytest.param(make_lease(), 60, {"expired": "warning"}, id="no one leads"),
        pytest.param(make_lease(), 90_000, {"abandoned": "warning"}, id="for a day"),
        pytest.param(node_lease(), 60, {"expired": "warning"}, id="a node that does not report"),
        pytest.param(make_lease(*HEARTBEAT), 60, {"heartbeat-silent": "info"}, id="a heartbeat that is silent"),
        pytest.param(make_lease(*HEARTBEAT), 90_000, {"heartbeat-silent": "info"}, id="a heartbeat, silent for a day"),
        pytest.param(make_lease(*HEARTBEAT), 4, {}, id="a heartbeat that is heard"),
        pytest.param(
            make_lease(
                put("metadata.namespace", "kube-system"),
                put("metadata.name", "apiserver-x"),
                put("metadata.labels", {"apiserver.kubernetes.io/identity": "kube-apiserver"}),
            ),
            60,
            {"expired": "info"},
            id="an API server that is gone",
        ),
        pytest.param(make_lease(put("spec.holderIdentity", "")), 60, {}, id="released"),
        pytest.param(make_lease(put("spec", {}), drop("metadata.managedFields")), 60, {}, id="never held"),
        pytest.param(make_lease(drop("spec.renewTime")), 60, {}, id="held without a renewal"),
        pytest.param(
            make_candidate(put("spec.emulationVersion", "v1")),
            4,
            {"candidate-emulation-version": "error"},
            id="a bad version",
        ),
    ],
)
def test_what_time_does(document: Document, after: int, expected: dict[str, str]) -> None:
    assert checks(audited(document, now=NOW + after * SECOND)) == expected


@pytest.mark.parametrize(
    ("duration", "interval", "expected"),
    [
        pytest.param(15, None, {"timing-tight": "info"}, id="client-go's defaults"),
        pytest.param(15, 2.0, {"timing-tight": "info"}, id="client-go's defaults, seen"),
        pytest.param(137, 26.0, {}, id="OpenShift's"),
        pytest.param(12, None, {"timing-tight": "info"}, id="shorter than any default"),
        pytest.param(5, None, {"timing-tight": "warning"}, id="far too short"),
        pytest.param(15, 10.0, {"timing-tight": "warning"}, id="one missed renewal ends it"),
        pytest.param(137, 0.5, {}, id="many writes"),
        pytest.param(1, None, {}, id="one second"),
    ],
)
def test_what_is_said_of_a_duration_and_an_interval(
    duration: int, interval: float | None, expected: dict[str, str]
) -> None:
    lease = make_lease(put("spec.leaseDurationSeconds", duration))
    assert checks(audited(lease, now=NOW, interval=interval)) == expected


def test_a_lease_of_the_coordinated_election_is_left_to_it() -> None:
    lease = make_lease(put("spec.strategy", "OldestEmulationVersion"), put("spec.leaseDurationSeconds", 5))
    assert audited(lease, now=NOW) == []


@pytest.mark.parametrize(
    ("seconds", "is_stamped", "said"),
    [(46, True, "does not go on"), (44, True, "may stall"), (46, False, "may stall")],
    ids=["half a minute after it expired", "sooner", "by the holder's clock"],
)
def test_an_election_that_no_one_was_named_in_for_long_does_not_go_on(
    seconds: int, is_stamped: bool, said: str
) -> None:
    asked = [put("spec.strategy", "OldestEmulationVersion"), put("spec.preferredHolder", "checkout-1")]
    lease = make_lease(*asked, *([] if is_stamped else [drop("metadata.managedFields")]))
    (found,) = (one for one in audited(lease, now=NOW + seconds * SECOND) if one.check == "election-stalled")
    assert found.message.endswith(f"Until preferredHolder is cleared, the election {said}")


def test_the_clock_of_a_holder_alone_does_not_show_that_a_lease_expired_where_writers_are_stamped() -> None:
    constant = {"manager": "lease-webhook-stamp", "operation": "Update", "time": "2000-01-01T00:00:00Z"}
    lease = make_lease(SLOW, put("metadata.managedFields", [constant]))
    assert "expired" not in checks(audited(lease, now=NOW + 3600 * SECOND))


def test_without_stamps_a_holder_is_silent_unless_its_clock_is_behind() -> None:
    document = make_lease(SLOW, drop("metadata.managedFields"))
    (finding,) = (one for one in audited(document, now=NOW + 3600 * SECOND) if one.check == "expired")
    assert "unless its clock is behind, no longer renews it" in finding.message
    assert convert_finding(finding).arguments["how"] == "writer-clock"
    (finding,) = (one for one in audited(make_lease(SLOW), now=NOW + 3600 * SECOND) if one.check == "expired")
    assert "unless its clock" not in finding.message
    assert "how" not in convert_finding(finding).arguments


@pytest.mark.parametrize(
    ("holder", "pod"),
    [
        ("checkout-7d4b9c-x2x8p_8c1", "checkout-7d4b9c-x2x8p --previous || kubectl -n shop logs deploy/checkout"),
        ("checkout-0_8c1", "checkout-0 --previous"),
        ("laptop-7.local_8c1", "POD --previous"),
        ("ops", "POD --previous"),
    ],
    ids=["a pod of a Deployment", "another pod", "a machine", "a person"],
)
def test_only_a_likely_pod_has_logs_to_look_at(holder: str, pod: str) -> None:
    document = make_lease(SLOW, put("spec.holderIdentity", holder))
    (finding,) = (one for one in audited(document, now=NOW + 3600 * SECOND) if one.check == "expired")
    assert finding.fix.endswith(f"kubectl -n shop logs {pod}")


def test_missing_stamps_are_no_finding_if_no_lease_has_managed_fields() -> None:
    assert audited(make_lease(SLOW, drop("metadata.managedFields"))) == []
    findings = audited(make_lease(SLOW, drop("metadata.managedFields")), node_lease())
    assert checks(findings) == {"lease-without-stamps": "warning"}


def test_a_lease_that_was_created_empty_is_named_before_it_is_held() -> None:
    empty = make_lease(drop("spec"), drop("metadata.managedFields"))
    (finding,) = [one for one in audited(empty, node_lease()) if one.check == "lease-without-stamps"]
    assert "kubectl -n shop apply --server-side" in finding.fix
    labeled = make_lease(drop("spec"), put("metadata.managedFields", [make_entry()]))
    assert "lease-without-stamps" not in checks(audited(labeled, node_lease()))


def test_a_candidate_without_the_name_of_a_lease() -> None:
    assert checks(audited(make_candidate(put("spec.leaseName", "")), make_lease(SLOW))) == {
        "candidate-lease-name": "error"
    }


def orphans(inventory: Inventory, document: Document) -> dict[str, str]:
    for item in read("in", [to_bytes(document)]):
        assert isinstance(item, Observation)
        assert item.object is not None
        list(inventory.add(Subject(item.object, item.namespace, item.name, inventory.now)))
    return checks(list(inventory.finish()))


HELD = make_lease(SLOW)
POD = "checkout-6d5f9c-x2x8p"
UUID = "bc82e343-1fbe-4674-9738-16e9007b6474"


@pytest.mark.parametrize(
    ("pods", "nodes", "document", "after", "expected"),
    [
        pytest.param({POD}, set(), HELD, 4, {}, id="its pod is there"),
        pytest.param({"x"}, set(), HELD, 4, {"holder-gone": "info"}, id="its pod is gone, and the lease still runs"),
        pytest.param({"x"}, set(), HELD, 600, {"holder-gone": "warning"}, id="its pod is gone"),
        pytest.param({"x"}, {POD}, HELD, 4, {}, id="it runs on the host's network"),
        pytest.param({"x"}, set(), make_lease(put("spec.holderIdentity", "plain")), 4, {}, id="no pod is named"),
        pytest.param(
            {"x"},
            set(),
            make_lease(SLOW, put("spec.holderIdentity", POD)),
            600,
            {"holder-gone": "warning"},
            id="a pod of a Deployment, by its name alone",
        ),
        pytest.param(
            {"x"},
            set(),
            make_lease(SLOW, put("spec.holderIdentity", f"{POD}-{UUID}")),
            600,
            {"holder-gone": "warning"},
            id="a pod of a Deployment, by its name and a UUID after a hyphen",
        ),
        pytest.param(
            {POD},
            set(),
            make_lease(SLOW, put("spec.holderIdentity", f"{POD}-{UUID}")),
            600,
            {},
            id="its pod is there, without the UUID",
        ),
        pytest.param(
            {f"{POD}-{UUID}"},
            set(),
            make_lease(SLOW, put("spec.holderIdentity", f"{POD}-{UUID}")),
            600,
            {},
            id="its pod is there, with a UUID",
        ),
        pytest.param(
            {"x"},
            set(),
            make_lease(put("metadata.namespace", "ops")),
            4,
            {},
            id="the input may not reach its namespace",
        ),
        pytest.param(
            {"x"},
            set(),
            make_lease(SLOW, put("metadata.namespace", "ops")),
            600,
            {"holder-gone": "warning"},
            id="its namespace has no pod, and no one renews",
        ),
        pytest.param({POD}, set(), make_lease(put("metadata.namespace", "ops")), 4, {}, id="its pod is elsewhere"),
        pytest.param(
            {"p" * 70}, set(), make_lease(put("spec.holderIdentity", "p" * 63 + "_1")), 4, {}, id="a cut name"
        ),
        pytest.param(set(), set(), HELD, 4, {}, id="no pods are known"),
        pytest.param(set(), {"worker-2"}, node_lease(), 4, {"node-gone": "warning"}, id="a node that is gone"),
        pytest.param(set(), {"worker-1"}, node_lease(), 4, {}, id="a node that is there"),
        pytest.param(set(), set(), node_lease(), 4, {}, id="no nodes are known"),
    ],
)
def test_which_stored_leases_have_lost_their_pod_or_node(
    pods: set[str], nodes: set[str], document: Document, after: int, expected: dict[str, str]
) -> None:
    inventory = Inventory(NOW + after * SECOND, pods={"shop": pods} if pods else {}, nodes=nodes)
    assert orphans(inventory, document) == expected


def test_every_finding_has_a_reason_a_fix_and_a_place() -> None:
    (finding,) = audited(make_lease(put("spec.leaseTransitions", 2**31 - 1), SLOW))
    assert finding.message.startswith(
        "no one else can take this lease until it is fixed: leaseTransitions is 2147483647"
    )
    assert finding.fix == 'kubectl -n shop patch lease checkout --type=merge -p \'{"spec":{"leaseTransitions":0}}\''
    assert (finding.check, finding.place) == ("transitions-jump", "in#1")
    assert all(map(finding.severity.is_at_least, (Severity.INFO, Severity.WARNING, Severity.ERROR)))
