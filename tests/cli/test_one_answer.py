"""`why`, `audit` and `timeline` say the same of every recorded incident."""

import datetime as dt
import io
import json
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console

from tests.factories import drop, make_candidate, make_entry, make_lease, put
from webhook.analysis.history.follow import ClusterHistory
from webhook.cli import reading
from webhook.cli.main import main
from webhook.cli.selection import Selection
from webhook.cli.watching import draw_frame
from webhook.cli.why import select_accounts

DATA: Final = Path("tests/data")
HAPPENED: Final = {"taken", "chosen", "written-in", "released", "holder-replaced", "second-writer"}
MARKED: Final = {"steal", "takeover", "takeover-by-expiry", "takeover-by-release", "release", "claim", "edit"}


def inputs() -> Iterator[Any]:
    for folder, names in (
        ("incidents", ("leases.json.gz", "audit.log.gz")),
        ("measured-incidents", ("audit.jsonl.gz",)),
    ):
        for incident in sorted((DATA / folder).iterdir()):
            for name in names:
                yield pytest.param(incident, name, id=f"{incident.name}-{name.partition('.')[0]}")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--format", "json"]) in {0, 1}
    return capsys.readouterr().out


def loud(findings: list[Any]) -> list[tuple[str, str, str]]:
    return sorted((one["check"], one["severity"], one["message"]) for one in findings if one["severity"] != "info")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["why", "--verbose", *words]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.deep
@pytest.mark.uncounted
@pytest.mark.parametrize(("incident", "name"), [*inputs()])
def test_three_commands_have_one_answer(incident: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    truth = json.loads((incident / "truth.json").read_text())
    namespace, lease = truth["namespace"], truth.get("lease") or truth["name"]
    file = str(incident / name)
    why = json.loads(printed(capsys, "why", f"{namespace}/{lease}", "--input", file))
    audit = map(json.loads, printed(capsys, "audit", "--input", file).splitlines())
    own = [one for one in audit if (one["namespace"], one["name"]) == (namespace, lease)]
    assert loud(own) == loud(why["findings"])
    timeline = json.loads(printed(capsys, "timeline", "--input", file, f"{namespace}/{lease}"))
    holders = [one["holder"] for one in timeline["leases"][0]["spans"] if one["holder"]]
    assert [one for one, _ in groupby(holders)] == [one for one, _ in groupby(one["holder"] for one in why["tenures"])]


@pytest.mark.deep
@pytest.mark.parametrize(("incident", "name"), [*inputs()])
def test_text_json_and_page_have_one_sentence_for_each_event(
    incident: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = json.loads((incident / "truth.json").read_text())
    lease, file = f"{truth['namespace']}/{truth.get('lease') or truth['name']}", str(incident / name)
    why = json.loads(printed(capsys, "why", lease, "--input", file))
    text = run(capsys, lease, "--input", file)
    assert why["headline"] in text
    assert why["advice"]["sentence"] in text
    warned: dict[str, list[str]] = {}
    for claim in why["claims"]:
        if claim["severity"] != "info":
            warned.setdefault(claim["claim"], []).append(claim["text"])
    # Of many findings of one kind the text has the latest.
    claims = [one for texts in warned.values() for one in texts[-3:]]
    claims += [one["text"] for one in why["claims"] if one["claim"] in HAPPENED]
    (drawn,) = json.loads(printed(capsys, "timeline", "--input", file, lease))["leases"]
    marks = [one["text"] for one in drawn["marks"] if one["kind"] in MARKED]
    if "earlier event" not in text:
        assert [one for one in claims if " ".join(one.split()) not in text] == []
        assert [one for one in marks if " ".join(one.split()).partition(". ")[0] not in text] == []


SPANS: Final = {
    "live": {"held"},
    "frozen": {"frozen"},
    "expired": {"overdue"},
    "released": {"leaderless", "removed"},
    "unknown": {"written", "unrecorded"},
}
"""The kinds of the last span of a lease in each state."""


def table_row(paths: Sequence[str], lease: tuple[str, str]) -> list[str]:
    """The row that `top` draws of a lease at the end of an input: without what is not known."""
    histories = ClusterHistory()
    for item in reading.read_for_history(paths):
        histories.add(item)
    bounds = histories.bounds
    as_of = reading.find_evaluation_time(None, paths, bounds.until, bounds.shown)
    file = io.StringIO()
    console = Console(file=file, width=300)
    (account,) = select_accounts(histories, [lease], as_of, Selection())
    console.print(*draw_frame(histories, as_of, Selection(), lease[0]), sep="\n")
    rows = [line.split() for line in file.getvalue().splitlines() if line.startswith("/".join(lease))]
    assert len(rows) == int(not account.history.is_deleted)
    return rows[0] if rows else ["/".join(lease), account.state.value]


@pytest.mark.deep
@pytest.mark.parametrize(("incident", "name"), [*inputs()])
def test_holder_state_and_since_when_are_the_same_everywhere(
    incident: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    truth = json.loads((incident / "truth.json").read_text())
    key = truth["namespace"], truth.get("lease") or truth["name"]
    lease, file = "/".join(key), str(incident / name)
    why = json.loads(printed(capsys, "why", lease, "--input", file))
    (drawn,) = json.loads(printed(capsys, "timeline", lease, "--input", file))["leases"]
    assert main(["timeline", lease, "--input", file, "-o", "-"]) == 0
    data = json.loads(capsys.readouterr().out.partition('id="data">')[2].partition("</script>")[0])
    (lane,) = data["lanes"]
    kind, _, _, _, _, holder, *_ = lane["spans"][-1]
    last = drawn["spans"][-1]
    row = table_row([file], key)
    assert (data["kinds"][kind][0], data["strings"][holder]) == (last["kind"], last["holder"])
    assert row[1] == why["state"]
    if last["ends"] is None:
        assert last["kind"] in SPANS[why["state"]]
    if why["state"] in {"live", "expired"}:
        assert row[2] == last["holder"] == why["holder"]
        recorded = [one for one in drawn["spans"] if one["kind"] != "unrecorded"]
        own = takewhile(lambda span: span["holder"] == why["holder"], reversed(recorded))
        since = why["tenures"][-1]["since"]
        assert since is None or since[:19] in {one["begins"][:19] for one in own}
    changes = [one for one in row[3:] if one.isdecimal()]
    assert lane["handovers"] == 0 or str(lane["handovers"]) in changes


@pytest.mark.parametrize(
    ("patch", "since", "begins"),
    [
        pytest.param({}, "2026-11-21T08:00:00.000000Z", "2026-11-21T08:00:00.000000Z", id="its own"),
        pytest.param({"holderIdentity": "mallory"}, None, "2026-11-25T13:30:17.000000Z", id="of an earlier holder"),
        pytest.param(
            {"holderIdentity": "mallory", "acquireTime": "9999-12-31T23:59:59.000000Z"},
            None,
            "2026-11-25T13:30:17.000000Z",
            id="its own, of the future",
        ),
        pytest.param(
            {
                "holderIdentity": "mallory",
                "acquireTime": "2026-11-25T13:30:16.000000Z",
                "renewTime": "9999-12-31T23:59:59.000000Z",
            },
            None,
            "2026-11-25T13:30:17.000000Z",
            id="its own, beside a renewTime of another age",
        ),
    ],
)
def test_a_stored_lease_is_held_since_acquire_time_only_if_its_holder_wrote_it(
    patch: dict[str, str], since: str | None, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"holderIdentity": "checkout-0", "acquireTime": "2026-11-21T08:00:00.000000Z"}
    patched = {"renewTime": "2026-11-25T13:30:17.000000Z", **patch} if patch else {}
    spec = {"leaseDurationSeconds": 15, "renewTime": "2026-11-25T13:30:15.000000Z", **own, **patched}
    entries = [make_entry(*(spec.keys() - patched), manager="kubectl-create", time="2026-11-25T13:30:15Z")]
    if patched:
        entries.append(make_entry(*patched, manager="kubectl-patch", time="2026-11-25T13:30:17Z"))
    lease = make_lease(put("spec", spec), put("metadata.managedFields", entries))
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [lease]}))
    moment = ("--input", str(file), "--now", "2026-11-25T13:30:20Z")
    account = json.loads(printed(capsys, "why", *moment))
    assert (account["held_since"], account["tenures"][0]["since"]) == (since, since)
    (drawn,) = json.loads(printed(capsys, "timeline", *moment))["leases"]
    assert drawn["spans"][0]["begins"] == begins


@pytest.mark.parametrize(
    ("created", "since", "begins"),
    [
        pytest.param("2026-11-25T13:30:15Z", None, "2026-11-25T13:30:15.000000Z", id="put back from a copy"),
        pytest.param("2026-11-21T08:00:01Z", *["2026-11-21T08:00:00.000000Z"] * 2, id="by a clock that is behind"),
        pytest.param("2026-11-25T13:30:16Z", *["2026-11-21T08:00:00.000000Z"] * 2, id="after its renewal, as none is"),
    ],
)
def test_no_one_held_a_lease_before_it_was_created(
    created: str, since: str | None, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"holderIdentity": "checkout-0", "acquireTime": "2026-11-21T08:00:00.000000Z"}
    spec = {"leaseDurationSeconds": 15, "renewTime": "2026-11-25T13:30:15.000000Z", **own}
    entry = make_entry(*spec, manager="kubectl-create", time="2026-11-25T13:30:15Z")
    lease = make_lease(
        put("spec", spec), put("metadata.managedFields", [entry]), put("metadata.creationTimestamp", created)
    )
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [lease]}))
    moment = ("--input", str(file), "--now", "2026-11-25T13:30:20Z")
    assert json.loads(printed(capsys, "why", *moment))["held_since"] == since
    (drawn,) = json.loads(printed(capsys, "timeline", *moment))["leases"]
    assert drawn["spans"][0]["begins"] == begins


def test_a_list_without_managed_fields_does_not_say_whose_acquire_time_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"holderIdentity": "checkout-0", "acquireTime": "2026-11-21T08:00:00.000000Z"}
    spec = {"leaseDurationSeconds": 15, "renewTime": "2026-11-25T13:30:15.000000Z", **own}
    file = tmp_path / "list.json"
    lease = make_lease(put("spec", spec), drop("metadata.managedFields"))
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [lease]}))
    moment = ("--input", str(file), "--now", "2026-11-25T13:30:20Z")
    assert json.loads(printed(capsys, "why", *moment))["held_since"] is None
    (drawn,) = json.loads(printed(capsys, "timeline", *moment))["leases"]
    assert drawn["spans"][0]["begins"] == "2026-11-25T13:30:15.000000Z"


def test_a_holder_that_the_api_server_chose_leads_from_its_own_first_renewal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(DATA / "incidents" / "coordinated" / "audit.log.gz")
    why = json.loads(printed(capsys, "why", "scheduler/scheduler", "--input", file))
    before, after = why["tenures"]
    (drawn,) = json.loads(printed(capsys, "timeline", "--input", file, "scheduler/scheduler"))["leases"]
    (_, _, chosen, held) = drawn["spans"]
    assert (chosen["kind"], chosen["ends"]) == ("chosen", held["begins"])
    unled = dt.datetime.fromisoformat(held["begins"]) - dt.datetime.fromisoformat(before["until"])
    assert unled.total_seconds() == after["leaderless_seconds"] == 23.178049


@pytest.mark.parametrize("is_watch", [False, True], ids=["of a list", "of a watch"])
@pytest.mark.parametrize(
    ("numbers", "severity"),
    [("deny_above_seconds: 100000", "error"), ("warn_above_seconds: 200000", ""), ("", "warning")],
    ids=["stricter", "laxer", "no policy"],
)
def test_audit_and_why_take_the_numbers_of_rules_from_the_policy_file(
    is_watch: bool, numbers: str, severity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = make_lease(put("spec.leaseDurationSeconds", 172_800))
    file, policy = tmp_path / "leases.json", tmp_path / "policy.yaml"
    file.write_text(json.dumps({"type": "ADDED", "object": lease} if is_watch else lease))
    policy.write_text(f"apiVersion: lease-webhook/v1\nrules:\n  duration-too-long: {{{numbers}}}\n")
    options = ("--input", str(file), *(("--policy", str(policy)) if numbers else ()))
    audited = [json.loads(line) for line in printed(capsys, "audit", *options).splitlines()]
    name = f"{lease['metadata']['namespace']}/{lease['metadata']['name']}"
    explained = json.loads(printed(capsys, "why", name, *options))["findings"]
    for findings in (audited, explained):
        severities = [one["severity"] for one in findings if one["check"] == "duration-too-long"]
        assert severities == ([severity] if severity else [])


@pytest.mark.parametrize("is_watch", [False, True], ids=["of a list", "of a watch"])
@pytest.mark.parametrize(
    ("lease", "severity"),
    [("checkout", "error"), ("checkout-6d5f9c-x2x8p_1f0e", "warning")],
    ids=["of its lease", "of a lease called as it is"],
)
def test_audit_takes_the_numbers_for_a_candidate_from_those_for_its_lease(
    is_watch: bool, lease: str, severity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = make_candidate(put("spec.renewTime", "2025-11-20T12:10:00.000000Z"))
    file, policy = tmp_path / "candidates.json", tmp_path / "policy.yaml"
    file.write_text(json.dumps({"type": "ADDED", "object": candidate} if is_watch else candidate))
    numbers = "candidate-renew-time-in-future: {deny_above_seconds: 60}"
    policy.write_text(f"apiVersion: lease-webhook/v1\noverrides: [{{leases: [{lease}], rules: {{{numbers}}}}}]\n")
    now = ("--now", "2025-11-20T12:00:05Z")
    audited = printed(capsys, "audit", "--input", str(file), "--policy", str(policy), *now)
    findings = [json.loads(line) for line in audited.splitlines()]
    severities = [one["severity"] for one in findings if one["check"] == "candidate-renew-time-in-future"]
    assert severities == [severity]
