"""The leases that a command lists, and their order."""

import json
from pathlib import Path

import pytest
import yaml

from tests.factories import drop, put
from tests.inputs.events import make_event
from webhook.cli.main import main

SEEDED = "tests/data/leases/seeded.json"
NOW = "2025-11-20T12:00:05Z"


@pytest.fixture
def labeled(tmp_path: Path) -> str:
    """Return the seeded leases, of which each second one has another label."""
    listed = json.loads(Path(SEEDED).read_text())
    for number, item in enumerate(listed["items"]):
        item["metadata"]["labels"] = {"tier": "front" if number % 2 else "back"}
    path = tmp_path / "labeled.json"
    path.write_text(json.dumps(listed))
    return str(path)


def names(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["why", "--now", NOW, "-o", "name", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_states_select(labeled: str, capsys: pytest.CaptureFixture[str]) -> None:
    everything = names(capsys, "--input", labeled)
    frozen = names(capsys, "--input", labeled, "--state", "frozen")
    others = names(capsys, "--input", labeled, "--state", "expired,released", "--state", "live,never-held,unknown")
    assert frozen == ["shop/copied", "shop/ledger"]
    assert sorted([*frozen, *others]) == everything


def test_checks_select(labeled: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "--input", labeled, "--check", "transitions-jump,holder-clock") == [
        "shop/ledger",
        "shop/queue",
    ]


def test_labels_select(labeled: str, capsys: pytest.CaptureFixture[str]) -> None:
    front, back = (names(capsys, "--input", labeled, "-l", f"tier={tier}") for tier in ("front", "back"))
    assert front
    assert sorted([*front, *back]) == names(capsys, "--input", labeled, "--selector", "tier")
    assert names(capsys, "--input", labeled, "-l", "!tier") == []


def test_a_lease_of_which_only_writes_were_seen_has_no_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = make_event(put("level", "Metadata"), drop("requestObject"), drop("responseObject"))
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(event) + "\n")
    assert names(capsys, "--input", str(log)) == ["shop/checkout"]
    assert names(capsys, "--input", str(log), "-l", "!tier") == []


def test_the_worst_come_first_and_the_first_line_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--input", SEEDED, "--now", NOW]) == 0
    first, _, *rows, _ = capsys.readouterr().out.splitlines()
    assert first.endswith("need attention")
    states = [row.split()[1] for row in rows]
    assert states.index("frozen") < states.index("live")
    assert first.split()[0] == str(sum(1 for row in rows if len(row.split()) > 7 and row.split()[-1] != "-"))


@pytest.mark.parametrize("order", ["worst", "name", "renewed", "changes"])
def test_every_order_lists_every_lease(order: str, capsys: pytest.CaptureFixture[str]) -> None:
    listed = names(capsys, "--input", SEEDED, "--sort-by", order)
    assert sorted(listed) == names(capsys, "--input", SEEDED)
    if order == "renewed":
        assert listed[0] == "shop/old"


def test_yaml_and_json_have_the_same_content(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for output in ("yaml", "json"):
        assert main(["why", "--input", SEEDED, "--now", NOW, "-o", output]) == 0
        texts.append(capsys.readouterr().out)
    assert [*yaml.safe_load_all(texts[0])] == [json.loads(line) for line in texts[1].splitlines()]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--state", "dead"], '"dead" is not a state'),
        (["--check", "transition-jump"], "did you mean transitions-jump?"),
        (["--check", "holder"], '"holder" is not a finding; lease-webhook claims lists them among all claims'),
        (["--check", "lease-stolen,never-held"], '"never-held" is not a finding'),
        (["-l", "a in b"], "is not a label selector"),
        (["shop/ledger", "--state", "live"], "are for the list of all leases"),
    ],
)
def test_what_is_not_known_is_refused(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--input", SEEDED, *words]) == 2
    assert problem in capsys.readouterr().err
