"""Every finding of `audit`, and every rule that stored objects can break, is found in its example."""

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from tests.audit.examples import EXAMPLES, NOON
from tests.factories import Document
from tests.rules.pinned_writes import pinned_writes
from webhook.analysis.audit.leases import STORED_RULES
from webhook.analysis.claims.registry import PROBLEMS
from webhook.cli.main import main
from webhook.findings import Severity

DATA = Path(__file__).parent.parent / "data"
DUMPS: dict[str, Sequence[Document]] = {check: one.dump for check, one in EXAMPLES.items() if one.dump}

DENIED: dict[str, list[Document]] = {
    rule: [
        review["request"]["object"]
        for name, review in pinned_writes()
        if name == rule and review["request"].get("object")
    ]
    for rule in STORED_RULES.keys() - DUMPS.keys()
}
"""By rule, the objects that its own tests expect it to deny: stored, each has the same defect."""


def severities_of(check: str) -> Collection[Severity]:
    """Return those that the page has."""
    return PROBLEMS[check].severities if check in PROBLEMS else (Severity.ERROR, Severity.WARNING)


def find(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[tuple[str, str]]:
    """Return the checks and severities that `audit` prints."""
    main(["audit", *arguments, "--format", "json"])
    findings = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    return {(one["check"], one["severity"]) for one in findings}


def find_checks(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[str]:
    """Return the checks, whose severities are those of the registries."""
    all_found = find(capsys, *arguments)
    assert not [(check, severity) for check, severity in all_found if severity not in severities_of(check)]
    return {check for check, _ in all_found}


@pytest.mark.parametrize("check", DUMPS)
def test_a_seeded_defect_is_found(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": DUMPS[check]}))
    assert check in find_checks(capsys, "--input", str(dump), "--now", NOON)


@pytest.mark.parametrize("rule", sorted(DENIED))
def test_what_a_rule_denies_is_found_in_a_stored_object(
    rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.json"
    dumps = [json.dumps({"apiVersion": "v1", "kind": "List", "items": [one]}) for one in DENIED[rule]]
    assert any(
        dump.write_text(text) and rule in find_checks(capsys, "--input", str(dump), "--now", NOON) for text in dumps
    )


HOSTILE = "{name}'; reboot; --all {lease}{kubectl}"
"""A name that ends its word, adds a command, and looks like what stands for other names."""


@pytest.mark.parametrize("check", [*DUMPS, *sorted(DENIED)])
def test_names_are_words_of_the_commands(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read the advice as a shell does: anybody may write a file, and in a cluster a candidate's leaseName."""
    renamed = json.loads(json.dumps(DUMPS.get(check) or DENIED[check]))
    for lease in (document for document in renamed if document["kind"] in {"Lease", "LeaseCandidate"}):
        lease["metadata"]["name"] += HOSTILE
        if lease["metadata"]["namespace"] == "shop":
            lease["metadata"]["namespace"] += HOSTILE
        if lease["spec"].get("leaseName"):
            lease["spec"]["leaseName"] += HOSTILE
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": renamed}))
    main(["audit", "--input", str(dump), "--now", NOON, "--format", "json"])
    repairs = [json.loads(line)["fix"] for line in capsys.readouterr().out.splitlines()]
    named = [word for repair in repairs if "reboot" in repair for word in shlex.split(repair) if "reboot" in word]
    # A sentence may follow a command.
    assert all(word.rstrip(",").removesuffix(";").endswith(HOSTILE) for word in named)


@pytest.mark.parametrize("check", [check for check, one in EXAMPLES.items() if one.log])
def test_an_incident_is_found_in_its_log(check: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check in find_checks(capsys, "--input", str(DATA / EXAMPLES[check].log))


@pytest.mark.parametrize("check", [check for check, one in EXAMPLES.items() if one.watch])
def test_a_finding_is_in_its_watch(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = tmp_path / "watch.json"
    watch.write_text("".join(json.dumps({"type": "MODIFIED", "object": one}) + "\n" for one in EXAMPLES[check].watch))
    assert check in find_checks(capsys, "--input", str(watch), "--now", NOON)
