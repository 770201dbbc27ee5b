"""`check` of what happened: audit logs, watches and the cluster, each write against what was stored before it."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_lease
from tests.inputs.fake_kubectl import Install, fake
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
    stolen = {"clock-behind", "lease-stolen", "steal-warned"}
    log, watch = incident(folder)
    for words in ([log, "--all-logs"], [watch], [log, watch]):
        code, lines, _ = check(*words, "--policy", "strict")
        denials = denied(lines)
        assert {event for event, _, _ in denials} <= {"steal"}
        assert bool(denials) == (folder in stolen)
        assert code == int(bool(denials))


@pytest.mark.parametrize(
    ("folder", "left_out"), [("lease-stolen", 10), ("lease-deleted", 1)], ids=["patches", "a deletion"]
)
def test_what_a_log_does_not_prove_is_counted(folder: str, left_out: int, check: Check) -> None:
    """Another API server may have logged a release before a patch or a deletion, which name no version."""
    log = incident(folder)[0]
    _, lines, messages = check(log, "--policy", "strict")
    assert not denied(lines)
    assert f"not evaluated, as the input does not show what they changed: {3 + left_out} writes" in messages
    assert len(check(log, "--all-logs")[1]) == len(lines) + left_out


def test_a_deletion_that_a_watch_does_not_date_is_not_evaluated(tmp_path: Path, check: Check) -> None:
    """At its last renewal every lease was held."""
    lease = make_lease()
    file = tmp_path / "watch.json"
    file.write_text("".join(json.dumps({"type": event, "object": lease}) + "\n" for event in ("ADDED", "DELETED")))
    code, lines, messages = check(file, "--policy", "strict")
    assert (code, lines) == (2, [])
    assert "what they changed: 1 write" in messages


def test_what_happened_between_two_watches_is_not_known(tmp_path: Path, check: Check) -> None:
    """The second one was begun with --watch-only, after the holder had released the lease."""
    events = [json.loads(line) for line in gzip.decompress(incident("lease-stolen")[1].read_bytes()).splitlines()]
    own = [event for event in events if event["object"]["metadata"]["name"] == "invoices"]
    holders = [event["object"]["spec"]["holderIdentity"] for event in own]
    stolen = next(number for number, holder in enumerate(holders) if holder != holders[0])
    for name, part in (("a.json", own[:stolen]), ("b.json", own[stolen:])):
        (tmp_path / name).write_text("".join(f"{json.dumps(event)}\n" for event in part))
    _, lines, messages = check(tmp_path / "a.json", tmp_path / "b.json", "--policy", "strict")
    assert lines
    assert not denied(lines)
    assert "what they changed: 1 write" in messages


def test_a_list_beside_a_watch_is_evaluated_by_itself(tmp_path: Path, check: Check) -> None:
    watch = incident("lease-stolen")[1]
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [make_lease()]}))
    _, alone, _ = check(watch)
    _, both, _ = check(file, watch)
    assert [line["operation"] for line in both[:1]] == ["CREATE"]
    assert both[1:] == alone


@pytest.mark.parametrize("left_out", ["managedFields", "responseObject"])
def test_a_log_that_shows_less_has_no_other_denial(left_out: str, tmp_path: Path, check: Check) -> None:
    log, _ = incident("lease-stolen")
    whole = set(denied(check(log, "--all-logs", "--policy", "strict")[1]))
    lines = [json.loads(line) for line in gzip.decompress(log.read_bytes()).splitlines()]
    for line in lines:
        line.pop(left_out, None)
        for key in ("requestObject", "responseObject"):
            line.get(key, {}).get("metadata", {}).pop(left_out, None)
    file = tmp_path / "audit.log"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert set(denied(check(file, "--all-logs", "--policy", "strict")[1])) <= whole


def test_logs_of_several_servers_are_one_history(tmp_path: Path, check: Check) -> None:
    log = incident("lease-stolen")[0]
    lines = gzip.decompress(log.read_bytes()).splitlines(keepends=True)
    for number in (0, 1):
        (tmp_path / f"{number}.log").write_bytes(b"".join(lines[number::2]))
    whole, parts = (check(path, "--all-logs", "--policy", "strict")[1] for path in (log, tmp_path))
    assert denied(whole) == denied(parts)
    assert len(whole) == len(parts)


def test_a_log_on_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, check: Check) -> None:
    log = incident("lease-stolen")[0]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert len(check("-")[1]) == len(check(log)[1])


def test_a_history_is_no_state(check: Check) -> None:
    code, lines, err = check("--old", incident("lease-stolen")[0], INCIDENTS)
    assert (code, lines) == (2, [])
    assert "--old is what is stored at one moment" in err


def test_a_user_who_may_not_list_leases_sees_the_refusal(fake: Install, check: Check) -> None:
    fake(fails=True)
    code, lines, err = check()
    assert (code, lines) == (2, [])
    assert err.endswith(": Error from server (Forbidden): no rights\n")


def test_a_log_and_a_watch_of_the_same_writes_are_evaluated_once(check: Check) -> None:
    log, watch = incident("lease-stolen")
    for inputs in ((log, watch), (watch, log)):
        code, lines, _ = check(*inputs, "--policy", "strict")
        assert (code, len(lines), len(denied(lines))) == (1, 60, 1)
        assert denied(lines)[0][1] == denied(check(log, "--all-logs", "--policy", "strict")[1])[0][1]


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
    _, whole, messages = check(file, "--all-logs")
    assert "not evaluated, as the input does not show what they changed: 3 writes" in messages
    file.write_text("".join(f"{json.dumps(line)}\n" for number, line in enumerate(lines) if number != updates[1]))
    _, parts, messages = check(file, "--all-logs")
    assert "not evaluated, as the input does not show what they changed: 4 writes" in messages
    assert len(parts) == len(whole) - 2


def test_a_log_without_objects_evaluates_nothing(
    tmp_path: Path, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in gzip.decompress(incident("leader-killed")[0].read_bytes()).splitlines()]
    file = tmp_path / "audit.log"
    bare = [{k: v for k, v in line.items() if k not in {"requestObject", "responseObject"}} for line in lines]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in bare))
    code, lines, err = check(file)
    assert (code, lines) == (2, [])
    assert err.count("does not show what they changed") == 1
    assert "docs/check.md says what does; if these are the whole audit logs of all API servers, --all-logs" in err
    assert "0 evaluated, and at least 1 must be" in err
    assert main(["check", str(file)]) == 2
    assert "nothing here is a Lease" not in capsys.readouterr().out


def test_without_a_path_the_leases_of_the_cluster_are_evaluated(fake: Install, check: Check) -> None:
    fake()
    code, lines, _ = check()
    assert code == 0
    assert [(line["kind"], line["operation"], line["name"]) for line in lines][:1] == [("Lease", "CREATE", "checkout")]


def test_that_only_creations_were_evaluated_stands_beside_the_counts(
    fake: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    fake()
    assert main(["check", "--policy", "strict"]) == 0
    counts, note = capsys.readouterr().out.splitlines()[-2:]
    assert " evaluated: " in counts
    assert note.startswith("only creations were evaluated: ")


def test_two_policies_on_a_history(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(incident("lease-stolen")[0]), "--all-logs", "--against", "strict"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("newly denied  ")
    assert "57 writes, standard against strict: 1 newly denied; 3 not evaluated\n" in out
