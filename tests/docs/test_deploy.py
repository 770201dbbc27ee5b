"""The pages name what is in deploy/, and nothing else."""

import re
from pathlib import Path

import pytest

from tests.deploy.sources import DEPLOY, Object, base_object, documents
from tests.factories import make_review, put, to_bytes
from tools.docs import chart_values
from tools.docs.pages import DOCS, README, ROOT, find_section, find_table
from webhook.admission.policy.file import load
from webhook.admission.policy.parse import parse
from webhook.api_server.fence.objects import LABELS
from webhook.api_server.rule_policies import make_manifests, make_stamp_policies
from webhook.server.reviewer import respond

INSTALL = DOCS / "install.md"
SECURITY = ROOT / "SECURITY.md"


def first_cells(title: str, heading: str) -> set[str]:
    """The first column of a table, without its backticks."""
    return {row[0].strip("`") for row in find_table(find_section(INSTALL, title), heading)}


def test_every_overlay_is_explained() -> None:
    assert first_cells("Overlays", "overlay") == {path.name for path in (DEPLOY / "overlays").iterdir()}


def test_every_component_that_one_may_choose_is_explained() -> None:
    assert first_cells("Components", "component") == {path.name for path in (DEPLOY / "components").iterdir()}


def test_the_table_of_the_chart_is_that_of_its_values() -> None:
    assert chart_values.PAGE.read_text() == chart_values.make_page(), "write it again: make docs"


def test_only_overlays_use_the_parts() -> None:
    for path in DEPLOY.glob("components/*/kustomization.yaml"):
        assert "parts/" not in path.read_text()


def deletes(text: str, target: Object) -> bool:
    """True if a command of a page deletes an object, by its name or by a label."""
    for command in re.findall(r"^kubectl delete (.*?)(?: +#.*)?$", text, re.MULTILINE):
        kind, *names = [word for word in command.split() if not word.startswith("--")]
        labels = [f"{key}={value}" for key, value in target["metadata"].get("labels", {}).items()]
        by_label = names[0] == "-l" and names[1] in labels
        if kind == target["kind"].lower() and (by_label or target["metadata"]["name"] in names):
            return True
    return False


def shipped() -> list[Object]:
    """Every object of deploy/ that is not a template, and the policies that `install --policies-only` prints."""
    files = [path for path in DEPLOY.rglob("*.yaml") if "templates" not in path.parts]
    return [one for path in files for one in documents(path)] + make_manifests(load("strict"), 0, "true", [])


def denying() -> list[Object]:
    """Configurations of webhooks, and bindings of policies that deny."""
    return [
        one
        for one in shipped()
        if one.get("kind", "").endswith("WebhookConfiguration")
        or "Deny" in one.get("spec", {}).get("validationActions", ())
    ]


@pytest.mark.parametrize("page", [README, DOCS / "denied.md"])
def test_break_glass_deletes_all_that_denies(page: Path) -> None:
    title = "Break-glass" if page == README else "Stop every denial at once"
    text = find_section(page, title)
    deleted = {(one["kind"], one["metadata"]["name"]): deletes(text, one) for one in denying()}
    assert {key for key, is_deleted in deleted.items() if not is_deleted} == set()
    assert {name for _, name in deleted} >= {"lease-webhook", "lease-webhook-depth", "lease-webhook-stamp-bounds"}
    assert {name for _, name in deleted} >= {"lease-webhook-stamp-guard", "lease-webhook-rules-leases-deny"}


STAMPS = "apiVersion: lease-webhook/v1\nstamps: [{suffix: 1a2b3c4d, namespaces: [shop]}]\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(find_section(DOCS / "stamp.md", "Remove"), id="the page about stamps"),
        pytest.param(find_section(INSTALL, "Uninstall"), id="the page about installation"),
    ],
)
def test_what_removes_stamps_names_all_that_is_made_of_them(text: str) -> None:
    commands = " ".join(line for line in text.splitlines() if "lease-webhook-stamp" in line).split()
    made = {one["metadata"]["name"] for one in make_stamp_policies(parse(STAMPS), 0)}
    assert made <= {word.partition("=")[2].strip("'") or word.strip("'") for word in commands}


def test_break_glass_says_what_stays() -> None:
    text = find_section(README, "Break-glass")
    staying = [one for one in shipped() if one.get("kind") == "MutatingAdmissionPolicyBinding"]
    assert {one["metadata"]["name"] for one in staying} == {"lease-webhook-stamp"}
    assert "`kubectl delete mutatingadmissionpolicybinding lease-webhook-stamp`" in text
    assert f"-l app.kubernetes.io/component={LABELS['app.kubernetes.io/component']}`" in text


def test_the_kill_switch_edits_the_policy_that_is_mounted() -> None:
    namespace, config_map = (base_object(kind)["metadata"]["name"] for kind in ("Namespace", "ConfigMap"))
    command = find_section(DOCS / "operate.md", "Kill switch").strip().splitlines()[1]
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
    message = f'The Lease "lease-webhook-proof" is invalid: {cause.field}: {cause.message}'
    for text in (find_section(README, "Install the webhook"), find_section(INSTALL, "Verify")):
        assert f"$ kubectl create --dry-run=server -f deploy/proof.yaml\n{message}\n" in text


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
