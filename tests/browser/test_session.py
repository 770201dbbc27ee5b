"""The views of a page have what the commands print of the same files."""

import gzip
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import click
import pytest

from tests.incidents import FOLDER
from webhook.admission.policy.file import load
from webhook.browser import session as sessions
from webhook.browser.session import Session
from webhook.cli import reading
from webhook.cli.main import main

STOLEN = [str(FOLDER / "lease-stolen" / name) for name in ("audit.log.gz", "leases.json.gz")]
INPUTS = [word for path in STOLEN for word in ("--input", path)]
LEASE = "invoices/invoices"
OLD = "docs/examples/live-lease.yaml"


def printed(*words: str) -> str:
    with redirect_stdout(io.StringIO()) as out:
        main([*words])
    return out.getvalue()


def test_the_leases_are_the_rows_of_why() -> None:
    listed = Session(STOLEN).list_leases()
    output = printed("why", *INPUTS, "--format", "wide")
    for row in [[listed["heading"]], listed["head"], *listed["rows"]]:
        assert all(cell in output for cell in row)
    assert (listed["leases"][0], listed["severities"][0]) == (LEASE, "error")


def test_each_file_is_recognized() -> None:
    recognized = [(one["kind"], one["says"]) for one in Session([*STOLEN, OLD, "LICENSE"]).list_leases()["recognized"]]
    assert recognized == [
        ("audit log", "an audit log"),
        ("watch", "a watch"),
        ("dump", "objects as they are stored"),
        ("", "nothing about leases"),
    ]


def test_what_cannot_be_read_is_a_note() -> None:
    assert any("LICENSE" in note for note in Session([*STOLEN, "LICENSE"]).list_leases()["notes"])


def test_a_list_without_managed_fields_says_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "lease.json"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", "namespace": "b"}}
    file.write_text(json.dumps(lease | {"spec": {"holderIdentity": "x"}}))
    assert any("--show-managed-fields" in note for note in Session([str(file)]).list_leases()["notes"])


def test_an_account_is_what_why_prints_of_a_lease() -> None:
    explained = Session(STOLEN).explain_lease(LEASE)
    output = " ".join(printed("why", LEASE, *INPUTS, "--verbose").split())
    texts = [explained["headline"], explained["advice"]["sentence"], *(one["message"] for one in explained["findings"])]
    texts += [text for part in ("facts", "events") for _, text in explained[part]]
    worrying = [one for one in texts if "it lasts 15 s" not in one]
    assert all(" ".join(text.split()) in output for text in worrying)
    assert explained["findings"][0]["check"] == "lease-stolen"


def test_a_lease_that_is_not_there_is_refused() -> None:
    with pytest.raises(click.ClickException, match="shop/none is not in the input"):
        Session(STOLEN).explain_lease("shop/none")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b" \n", "given is empty", id="an empty file"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0", "given is not text", id="a picture"),
        pytest.param(b"\xff\xd8\xff\xe0", "given is not text", id="a picture without zeros"),
        pytest.param(
            b"Error from server (Forbidden): leases is forbidden\n",
            "given has what kubectl answered in place of leases: Error from server (Forbidden): leases is forbidden",
            id="an error of the API server",
        ),
        pytest.param(b"error: You must be logged in\n", "You must be logged in", id="an error of kubectl"),
        pytest.param(b"Apache License\n", "given has no lease: open a list", id="another text"),
        pytest.param(gzip.compress(b"a: b\n"), "given has no lease: open a list", id="another text, gzipped"),
    ],
)
def test_files_without_a_lease_are_refused_with_what_they_are(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(click.ClickException, match=re.escape(problem)):
        Session([str(path)]).list_leases()


def test_the_history_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(STOLEN)
    session.list_leases()
    monkeypatch.setattr(reading, "read_for_history", None)
    assert session.explain_lease(LEASE)["lease"] == LEASE


def test_the_findings_are_those_of_audit_the_worst_first() -> None:
    findings = Session(STOLEN).audit()["findings"]
    lines = [json.loads(line) for line in printed("audit", *INPUTS, "--format", "json").splitlines()]
    assert sorted((one["check"], one["message"]) for one in findings) == sorted(
        (line["check"], line["message"]) for line in lines
    )
    assert [one["severity"] for one in findings] == sorted(
        (one["severity"] for one in findings), key=["error", "warning", "info"].index
    )
    assert findings[0]["lease"] == LEASE


def test_a_finding_about_another_object_names_no_lease(tmp_path: Path) -> None:
    file = tmp_path / "candidate.json"
    metadata = {"name": "a", "namespace": "b"}
    file.write_text(
        json.dumps({"apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "metadata": metadata})
    )
    findings = Session([str(file)]).audit()["findings"]
    assert {one["lease"] for one in findings} == {""}


def test_a_timeline_is_the_page_of_the_command() -> None:
    timeline = Session(STOLEN, now=1_795_320_000_000_000).draw_timeline()
    assert timeline["leases"] == 4
    assert timeline["html"].startswith("<!DOCTYPE html>")
    assert all(lease in timeline["html"] for lease in Session(STOLEN).list_leases()["leases"])


@pytest.mark.parametrize("policy", ["strict", "standard"])
def test_check_has_what_the_command_denies_and_warns_about(policy: str) -> None:
    result = Session(STOLEN).check(load(policy))
    lines = [
        json.loads(line) for line in printed("check", *STOLEN, "--policy", policy, "--format", "json").splitlines()
    ]
    expected = [(line["source"], line["verdict"], line["message"]) for line in lines if line["verdict"] != "allowed"]
    assert [(one["source"], one["verdict"], one["message"]) for one in result["outcomes"]] == expected
    assert result["summary"] in printed("check", *STOLEN, "--policy", policy)
    assert {one["lease"] for one in result["outcomes"]} <= {LEASE}


def test_check_counts_by_rule_and_mode() -> None:
    rules = {one["rule"]: one for one in Session(STOLEN).check(load("strict"))["rules"]}
    assert rules["takeover-before-expiry"]["deny"] == 1


def test_check_says_what_it_cannot_evaluate() -> None:
    log = str(FOLDER / "lease-deleted/audit.log.gz")
    assert any("not evaluated" in note for note in Session([log]).check(load("strict"))["notes"])
    evaluated = [Session([log]).check(load("strict"), all_logs=whole)["summary"] for whole in (False, True)]
    assert [
        text in printed("check", log, "--policy", "strict", *more)
        for text, more in zip(evaluated, ([], ["--all-logs"]), strict=True)
    ] == [True, True]


def test_check_lists_what_is_unreadable() -> None:
    (outcome,) = Session(["LICENSE"]).check(load("strict"))["outcomes"]
    assert "LICENSE" in outcome["subject"]
    assert outcome["lease"] == ""


def test_more_rows_than_a_page_lists_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_ROWS", 1)
    leases, audit = Session(STOLEN).list_leases(), Session(STOLEN).audit()
    assert (len(leases["rows"]), leases["left_out"]) == (1, 3)
    assert (len(audit["findings"]), audit["left_out"] > 0) == (1, True)
    folder = "tests/data/leases"
    checked = Session([folder]).check(load("strict"))
    assert len(checked["outcomes"]) == 1
    assert checked["left_out"] > 0
