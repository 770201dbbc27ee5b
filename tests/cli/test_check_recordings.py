"""`check` of recordings: reviews under one policy, and what another would change."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.check_command import RENEWAL, STEAL, Run, run
from tests.factories import Document, changed, make_lease, make_review, put, to_bytes
from tests.recordings import FOLDER

__all__ = ["run"]

LIVE_DELETED = make_review(old=make_lease())


def record(*reviews: Document, received: str = "") -> None:
    """The reviews as files, with an index where there is a moment."""
    Path("recorded").mkdir()
    for number, review in enumerate(reviews, 1):
        Path(f"recorded/{number}.json").write_bytes(to_bytes(review))
    if received:
        entries = [{"file": f"{number}.json", "received": received} for number in range(1, len(reviews) + 1)]
        Path("recorded/index.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_text_shows_what_is_denied_or_warned_and_counts_rules(run: Run) -> None:
    record(RENEWAL, STEAL)
    assert run("recorded") == (
        0,
        """\
warned     recorded/2.json  Lease shop/checkout, steal
           warning: lease webhook, takeover-before-expiry: lease "shop/checkout" was taken from
           "checkout-6d5f9c-x2x8p_1f0e" 11 s before expiry: there may be two leaders

  rule                    standard
  takeover-before-expiry  1 warn

2 evaluated: 1 allowed with warnings, 1 allowed
""",
        "",
    )


def test_text_of_a_comparison(run: Run) -> None:
    record(RENEWAL, STEAL)
    assert run("recorded", "--against", "strict") == (
        1,
        """\
newly denied  recorded/2.json  Lease shop/checkout, steal
              takeover-before-expiry: spec.holderIdentity: Forbidden: lease "shop/checkout" is held
              by "checkout-6d5f9c-x2x8p_1f0e", last renewed 4 s ago (12:00:00Z, API server clock),
              duration 15 s; retry in 11 s, or ask the holder to release it

  rule                    standard  strict
  takeover-before-expiry  1 warn    1 deny

2 writes, standard against strict: 1 newly denied
""",
        "",
    )


@pytest.mark.parametrize(
    ("policy", "against", "change", "code"),
    [
        ("standard", "strict", "newly denied", 1),
        ("strict", "standard", "no longer denied", 0),
        ("standard", "off.yaml", "no longer warned", 0),
        ("off.yaml", "standard", "newly warned", 0),
        ("standard", "standard", "", 0),
        ("standard", "louder.yaml", "other rules", 0),
    ],
)
def test_every_change_has_a_name(policy: str, against: str, change: str, code: int, run: Run) -> None:
    record(STEAL, RENEWAL)
    Path("louder.yaml").write_text("apiVersion: lease-webhook/v1\nrules: {transitions-mismatch: {mode: warn}}\n")
    Path("off.yaml").write_text("apiVersion: lease-webhook/v1\npreset: standard\nmode: off\n")
    if change == "other rules":
        uncounted = changed(STEAL, put("request.object.spec.leaseTransitions", 5))
        Path("recorded/1.json").write_bytes(to_bytes(uncounted))
    exit_code, out, _ = run("recorded", "--policy", policy, "--against", against, "--format", "json")
    assert exit_code == code
    assert [line["change"] for line in lines(out)] == [change, ""]
    assert set(lines(out)[0]["against"]) == set(lines(out)[0]) - {"against", "change"}


@pytest.mark.parametrize(
    ("received", "findings"),
    [("2025-11-20T12:00:10Z", ["live-lease-deleted"]), ("2025-11-20T12:01:00Z", [])],
    ids=["while live", "after expiry"],
)
def test_the_index_says_when(received: str, findings: list[str], run: Run) -> None:
    record(LIVE_DELETED, received=received)
    (line,) = lines(run("recorded", "--format", "json")[1])
    assert [finding["rule"] for finding in line["findings"]] == findings


def test_an_index_above_the_directory_counts_too(run: Run) -> None:
    record(LIVE_DELETED, received="2025-11-20T12:01:00Z")
    (line,) = lines(run("recorded/1.json", "--format", "json")[1])
    assert line["findings"] == []


@pytest.mark.parametrize(
    ("line", "error"),
    [
        pytest.param("{", "not JSON", id="half a line"),
        pytest.param('{"file": "a\\u0000b", "received": "2026-01-01T00:00:00Z"}', "null", id="a name with NUL"),
        pytest.param('{"file": "1.json", "received": "soon"}', "RFC 3339", id="no time"),
        pytest.param("[" * 3000, "not an object", id="deep"),
        pytest.param("\x80", "not JSON", id="no UTF-8"),
    ],
)
def test_a_broken_line_of_the_index_costs_only_itself(line: str, error: str, run: Run) -> None:
    record(LIVE_DELETED, received="2025-11-20T12:01:00Z")
    with Path("recorded/index.jsonl").open("a", encoding="latin-1") as index:
        index.write(f"{line}\n")
    code, out, err = run("recorded", "--format", "json")
    broken, review = lines(out)
    assert (code, broken["source"], review["findings"], err) == (2, "recorded/index.jsonl#2", [], "")
    assert error in broken["error"]


def test_manifests_are_evaluated_too(run: Run) -> None:
    Path("recorded").mkdir()
    Path("recorded/lease.json").write_bytes(to_bytes(make_lease()))
    Path("recorded/broken.json").write_text("{")
    Path("recorded/index.jsonl").write_text('{"file": "a.json", "received": "2025-11-20T12:00:00Z"}\n')
    code, out, err = run("recorded", "--format", "json")
    assert code == 2
    assert [line["source"] for line in lines(out)] == ["recorded/broken.json#1", "recorded/lease.json#1"]
    assert err == ""
    assert run("recorded", "--against", "strict")[0] == 2


def test_all_recordings_against_strict(run: Run) -> None:
    code, out, err = run(str(FOLDER), "--against", "strict", "--format", "json")
    assert (code, err) == (1, "")
    assert len(lines(out)) == 339
    assert {line["change"] for line in lines(out)} == {"newly denied", "newly warned", "other rules", ""}
