"""README and SECURITY.md name what is in deploy/, and nothing else."""

import re

from tests.deploy.sources import DEPLOY, base_object

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
