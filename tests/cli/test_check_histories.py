"""`check` of what happened: audit logs, watches and the cluster, each write against what was stored before it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inputs.test_files import Install, fake
from webhook.cli.main import main

__all__ = ["fake"]

INCIDENTS = Path(__file__).parents[1] / "data" / "incidents"
Check = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Run `check --format json`; gives the exit code, the lines, and standard error."""

    def run(*words: object) -> tuple[int, list[dict[str, Any]], str]:
        code = main(["check", "--format", "json", *map(str, words)])
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err

    return run


def denied(lines: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (line["event"], line["user"], finding["rule"])
        for line in lines
        if not line["allowed"]
        for finding in line["findings"]
        if finding["mode"] == "deny"
    ]


def incident(name: str) -> tuple[Path, Path]:
    return INCIDENTS / name / "audit.log.gz", INCIDENTS / name / "leases.json.gz"


@pytest.mark.parametrize("folder", sorted(path.name for path in INCIDENTS.iterdir() if path.is_dir()))
def test_a_recorded_incident_has_no_denial_but_of_a_steal(folder: str, check: Check) -> None:
    code, lines, _ = check(incident(folder)[0], "--policy", "strict")
    found = denied(lines)
    assert {event for event, _, _ in found} <= {"steal"}
    assert bool(found) == (folder in {"clock-behind", "lease-stolen", "steal-warned"})
    assert code == int(bool(found))


def test_a_log_and_a_watch_of_the_same_writes_are_evaluated_once(check: Check) -> None:
    log, watch = incident("lease-stolen")
    for inputs in ((log, watch), (watch, log)):
        code, lines, _ = check(*inputs, "--policy", "strict")
        assert (code, len(lines), len(denied(lines))) == (1, 60, 1)
        assert denied(lines)[0][1] == denied(check(log, "--policy", "strict")[1])[0][1]


def test_the_writer_of_a_watch_is_not_known(check: Check) -> None:
    _, lines, _ = check(incident("one-identity")[1])
    assert {line["user"] for line in lines} == {""}
    assert not any(finding["rule"] == "holder-identity-mismatch" for line in lines for finding in line["findings"])
    _, lines, _ = check(incident("one-identity")[0])
    assert any(finding["rule"] == "holder-identity-mismatch" for line in lines for finding in line["findings"])


def test_a_write_whose_predecessor_is_missing_is_not_evaluated(tmp_path: Path, check: Check) -> None:
    """The logs of other API servers are not given: what looks like a steal may follow a release."""
    lines = [json.loads(line) for line in gzip.decompress(incident("lease-stolen")[0].read_bytes()).splitlines()]
    updates = [
        number
        for number, line in enumerate(lines)
        if line["verb"] == "update" and line["objectRef"].get("name") == "invoices" and "responseObject" in line
    ]
    file = tmp_path / "audit.log"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    _, whole, said = check(file)
    assert "not evaluated, as the input does not show what they changed: 3 writes" in said
    file.write_text("".join(f"{json.dumps(line)}\n" for number, line in enumerate(lines) if number != updates[1]))
    _, parts, said = check(file)
    assert "not evaluated, as the input does not show what they changed: 4 writes" in said
    assert len(parts) == len(whole) - 2


def test_a_log_without_objects_evaluates_nothing(tmp_path: Path, check: Check) -> None:
    lines = [json.loads(line) for line in gzip.decompress(incident("leader-killed")[0].read_bytes()).splitlines()]
    file = tmp_path / "audit.log"
    bare = [{k: v for k, v in line.items() if k not in {"requestObject", "responseObject"}} for line in lines]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in bare))
    code, lines, err = check(file)
    assert (code, lines) == (2, [])
    assert "does not show what they changed" in err
    assert "0 evaluated, and at least 1 must be" in err


def test_without_a_path_the_leases_of_the_cluster_are_evaluated(fake: Install, check: Check) -> None:
    fake()
    code, lines, _ = check()
    assert code == 0
    assert [(line["kind"], line["operation"], line["name"]) for line in lines][:1] == [("Lease", "CREATE", "checkout")]


def test_two_policies_on_a_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(incident("lease-stolen")[0]), "--against", "strict"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("newly denied  ")
    assert "57 writes, standard against strict: 1 newly denied\n" in out
