"""The pages name what is in deploy/, and nothing else."""

import re

from tests.deploy.sources import DEPLOY, base_object, documents
from tests.factories import make_review, put, to_bytes
from tools.docs import chart_values
from tools.docs.pages import DOCS, README, ROOT, section, table
from webhook.admission.policy.file import load
from webhook.admission.policy.parse import parse
from webhook.server.reviewer import respond

INSTALL = DOCS / "install.md"
SECURITY = ROOT / "SECURITY.md"


def first_cells(title: str, heading: str) -> set[str]:
    """The first column of a table, without its backticks."""
    return {row[0].strip("`") for row in table(section(INSTALL, title), heading)}


def test_every_overlay_is_explained() -> None:
    assert first_cells("Overlays", "overlay") == {path.name for path in (DEPLOY / "overlays").iterdir()}


def test_every_component_that_one_may_choose_is_explained() -> None:
    assert first_cells("Components", "component") == {path.name for path in (DEPLOY / "components").iterdir()}


def test_the_table_of_the_chart_is_that_of_its_values() -> None:
    assert chart_values.PAGE.read_text() == chart_values.page(), "write it again: make docs"


def test_only_overlays_use_the_parts() -> None:
    for path in DEPLOY.glob("components/*/kustomization.yaml"):
        assert "parts/" not in path.read_text()


def test_break_glass_names_the_configuration() -> None:
    name = base_object("ValidatingWebhookConfiguration")["metadata"]["name"]
    first_line = section(README, "Break-glass").strip().splitlines()[1]
    assert first_line.startswith(f"kubectl delete validatingwebhookconfiguration {name} ")


def test_the_kill_switch_edits_the_policy_that_is_mounted() -> None:
    namespace, config_map = (base_object(kind)["metadata"]["name"] for kind in ("Namespace", "ConfigMap"))
    command = section(DOCS / "operate.md", "Kill switch").strip().splitlines()[1]
    assert command.startswith(f"kubectl -n {namespace} edit configmap {config_map} ")


def test_labels_in_the_text_are_those_of_the_components() -> None:
    pairs = re.findall(r"`(lease-webhook/[a-z]+)=([a-z]+)`", INSTALL.read_text())
    assert len(pairs) == 3
    for key, value in pairs:
        selectors = [path.read_text() for path in (*DEPLOY.glob("components/*/webhook.yaml"), *DEPLOY.glob("stamp/*"))]
        assert any(re.search(rf"key: {key},?\s+operator: In,?\s+values: \[{value}\]", text) for text in selectors)


def test_each_threat_has_an_answer() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", SECURITY.read_text(), re.MULTILINE)
    assert [int(row[0]) for row in rows] == [*range(1, len(rows) + 1)]
    assert rows
    named = set(re.findall(r"`((?:tests|lab)/[a-z]+)`", SECURITY.read_text()))
    assert {"tests/doctor", "tests/deploy", "lab/rendered"} <= named
    assert all((ROOT / path).is_dir() for path in named)


NOW = 1_763_640_002_000_000
AS_SENT = "10000-01-01T00:59:59.999999Z"
"""How an API server writes the renewTime of the proof into the review, seen on v1.36.3."""


def proof_review(*user: str) -> bytes:
    (lease,) = documents(DEPLOY / "proof.yaml")
    lease["spec"]["renewTime"] = AS_SENT
    metadata = lease["metadata"]
    changes = [
        put("request.object", lease),
        put("request.name", metadata["name"]),
        put("request.namespace", metadata["namespace"]),
        put("request.dryRun", True),
        put("request.userInfo.groups", [*user, "system:authenticated"]),
    ]
    return to_bytes(make_review(*changes))


def test_the_proof_is_refused_in_the_words_of_the_pages() -> None:
    verdict = respond(proof_review(), load(None), NOW).verdict
    assert verdict
    assert verdict.code == 422
    (cause,) = verdict.causes
    shown = f'The Lease "lease-webhook-proof" is invalid: {cause.field}: {cause.message}'
    for text in (section(README, "Install the webhook"), section(INSTALL, "Verify")):
        assert f"$ kubectl create --dry-run=server -f deploy/proof.yaml\n{shown}\n" in text


def test_nobody_is_exempt_from_the_proof() -> None:
    everybody = parse(
        "apiVersion: lease-webhook/v1\npreset: standard\n"
        "exempt: [{groups: [system:authenticated], owner: o, reason: r}]\n"
    )
    for policy in (load("standard"), load("strict"), everybody):
        verdict = respond(proof_review("system:masters"), policy, NOW).verdict
        assert verdict
        assert not verdict.allowed


def test_observe_admits_the_proof_with_a_warning() -> None:
    verdict = respond(proof_review(), load("observe"), NOW).verdict
    assert verdict
    assert verdict.allowed
    assert verdict.warnings
