"""`rules`: every rule can be found and explained."""

import json
import re
from pathlib import Path

import pytest

import webhook
from webhook.admission.policy.schema import RULE_IDS
from webhook.admission.rules.registry import ALL_RULES, RULES
from webhook.api_server.doctor import in_force
from webhook.cli.checking.problems import NOT_RULES
from webhook.cli.main import main
from webhook.cli.rules import list_all_rules


def test_every_rule_that_a_policy_may_name_is_described() -> None:
    assert set(list_all_rules()) == {*RULE_IDS, "object-types"}


@pytest.mark.parametrize("rule", list_all_rules())
def test_one_rule_explained(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", rule]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{rule}\n  ")
    assert " ".join(list_all_rules()[rule].summary.split()) in " ".join(out.split())
    facts = dict(line.split(maxsplit=1) for line in out.splitlines() if line.startswith(("  source ", "  file ")))
    assert (Path(webhook.__file__).parents[1] / facts["file"]).is_file()
    assert facts["source"]
    for title in ("Why", "Who is affected", "How to fix"):
        assert f"\n  {title}\n    " in out
    assert "](" not in out
    is_stored = "\n  How to fix a stored object\n    " in out
    assert is_stored == bool(list_all_rules()[rule].stored)
    assert all(len(line) <= 100 or line.startswith("    kubectl ") for line in out.splitlines())


def test_the_repair_of_a_stored_object_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "transitions-jump"]) == 0
    command = 'kubectl -n NAMESPACE patch lease NAME --type=merge -p \'{"spec":{"leaseTransitions":0}}\''
    assert f"\n    {command}" in capsys.readouterr().out
    assert main(["rules", "transitions-jump", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["stored"] == command


@pytest.mark.parametrize("columns", ["80", "100", "300"])
def test_the_list_fits_the_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= min(int(columns), 100)
    words = " ".join(" ".join(lines).split())
    assert "takeover-before-expiry warn deny The holder of a live lease" in words


def test_a_summary_has_the_width_of_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("takeover-before-expiry             warn      deny")
    assert lines[at + 1] == "  The holder of a live lease may not be replaced before the lease expires."


def test_the_list_names_every_rule_with_its_modes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines()[1:-2] if not line.startswith(" ")]
    rows = {line.split()[0]: line.split()[1:3] for line in lines}
    assert rows.keys() == list_all_rules().keys()
    assert rows["takeover-before-expiry"] == ["warn", "deny"]
    assert rows["transitions-mismatch"] == ["off", "audit"]


def test_the_numbers_and_the_reach_of_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "duration-too-long"])
    out = capsys.readouterr().out
    assert "warn_above_seconds: 86400 (warns" in out
    assert "evaluated on renewals too" in out
    main(["rules", "renew-time-in-future"])
    assert "a deny_above_seconds below 86400 has no effect" in " ".join(capsys.readouterr().out.split())
    main(["rules", "renew-time-backwards"])
    assert "mode deny has no effect on those" in " ".join(capsys.readouterr().out.split())
    main(["rules", "takeover-before-expiry"])
    assert "not evaluated on a renewal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "hint"),
    [("takeover-before-expire", "did you mean takeover-before-expiry?"), ("zzz", "`lease-webhook rules` lists them")],
    ids=["almost", "nothing near"],
)
def test_an_unknown_rule(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", name]) == 2
    assert capsys.readouterr().err == f'lease-webhook: there is no rule "{name}"; {hint}\n'


def test_no_summary_is_longer_than_a_line() -> None:
    assert [rule.id for rule in RULES.values() if len(rule.summary) > 110] == []


def test_everything_counts_the_same_rules(capsys: pytest.CaptureFixture[str]) -> None:
    (exempt,) = in_force.describe_own_exemption(None, "admin", ("system:masters",), "shop", 0)
    told = re.search(r"of (\d+) rules", exempt.text)
    assert told
    assert main(["rules", "--format", "json"]) == 0
    listed = {json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()}
    pages = {path.stem for path in Path("docs/rules").glob("*.md")} - {"README"}
    assert listed == pages == ALL_RULES.keys()
    assert int(told[1]) == len(listed)


def test_what_a_program_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--format", "json"]) == 0
    rules = {rule["id"]: rule for rule in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(rules) == list(list_all_rules())
    assert rules["takeover-before-expiry"]["modes"] == {"standard": "warn", "strict": "deny"}
    assert rules["duration-too-long"]["numbers"]
    assert main(["rules", "lease-duration", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == rules["lease-duration"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["rules", "lease-stolen"], '"lease-stolen" is a claim: lease-webhook claims lease-stolen'),
        (["claims", "foreign-writer"], '"foreign-writer" is a rule: lease-webhook rules foreign-writer'),
    ],
)
def test_a_name_of_the_other_list_is_not_guessed(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == f"lease-webhook: {text}\n"


@pytest.mark.parametrize("name", sorted(NOT_RULES))
def test_what_check_reports_beside_the_rules_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", name]) == 0
    assert NOT_RULES[name] in capsys.readouterr().out
    assert main(["rules", name, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == name
