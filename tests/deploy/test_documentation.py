"""README and SECURITY.md name what is in deploy/, and nothing else."""

import re

from tests.deploy.sources import DEPLOY, base_object, documents
from tests.factories import make_review, put, to_bytes
from webhook.policy.document import parse
from webhook.policy_file import load
from webhook.server.respond import respond

ROOT = DEPLOY.parent
README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str, heading: str) -> set[str]:
    """What stands in backticks in the first column of the table under this heading."""
    table = text.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE))


def test_every_overlay_is_explained() -> None:
    assert first_cells(section("Install"), "overlay") == {path.name for path in (DEPLOY / "overlays").iterdir()}


def test_every_component_that_one_may_choose_is_explained() -> None:
    assert first_cells(section("Install"), "component") == {path.name for path in (DEPLOY / "components").iterdir()}


def test_only_overlays_use_the_parts() -> None:
    for path in DEPLOY.glob("components/*/kustomization.yaml"):
        assert "parts/" not in path.read_text()


def test_break_glass_names_the_configuration() -> None:
    name = base_object("ValidatingWebhookConfiguration")["metadata"]["name"]
    first_line = section("When it is down, and break-glass").strip().splitlines()[1]
    assert first_line.startswith(f"kubectl delete validatingwebhookconfiguration {name} ")


def test_labels_in_the_text_are_those_of_the_components() -> None:
    for key, value in re.findall(r"`(lease-webhook/[a-z]+)=([a-z]+)`", section("Install")):
        selectors = [path.read_text() for path in DEPLOY.glob("components/*/webhook.yaml")]
        assert any(f"key: {key}\n      operator: In\n      values: [{value}]" in text for text in selectors)


def test_all_eighteen_threats_have_an_answer() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    assert [int(row[0]) for row in rows] == list(range(1, 19))
    named = set(re.findall(r"`(tests/[a-z]+)`", (ROOT / "SECURITY.md").read_text()))
    assert {"tests/doctor", "tests/deploy", "tests/rendered"} <= named
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


def test_the_proof_is_refused_in_the_words_of_the_readme() -> None:
    verdict = respond(proof_review(), load(None), NOW).verdict
    assert verdict
    assert verdict.code == 422
    (cause,) = verdict.causes
    shown = f'The Lease "lease-webhook-proof" is invalid: {cause.field}: {cause.message}'
    assert f"$ kubectl create --dry-run=server -f deploy/proof.yaml\n{shown}\n" in section("Install")


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


def test_the_runbook_and_readme_lead_to_sections_that_exist() -> None:
    for path in (ROOT / "README.md", ROOT / "docs" / "runbook.md"):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text()):
            page = (path.parent / target).read_text() if target else path.read_text()
            titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in slugs, (path.name, anchor)
