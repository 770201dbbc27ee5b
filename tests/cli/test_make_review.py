"""`make-review`: what it prints is a review that an API server could have sent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_cases import LIVE, TAKEN
from tests.factories import make_lease, make_review
from tests.recordings import FOLDER
from webhook.cli.main import main

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Make:
    """Make a review from arguments; gives the document."""
    monkeypatch.chdir(tmp_path)
    Path("live.yaml").write_text(LIVE)
    Path("taken.yaml").write_text(TAKEN)

    def command(*args: str) -> dict[str, Any]:
        assert main(["make-review", *args]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return command


@pytest.mark.parametrize(
    ("args", "operation", "recorded"),
    [
        (["live.yaml"], "CREATE", "*create*"),
        (["taken.yaml", "--old", "live.yaml"], "UPDATE", "*update*"),
        (["live.yaml", "--delete"], "DELETE", "*delete*"),
    ],
    ids=["create", "update", "delete"],
)
def test_a_review_has_every_key_of_a_recorded_one(args: list[str], operation: str, recorded: str, make: Make) -> None:
    real = json.loads(
        next(path for path in sorted(FOLDER.rglob(recorded + ".json")) if "Lease" in path.read_text()).read_bytes()
    )
    made = make(*args)
    assert made["request"]["operation"] == real["request"]["operation"] == operation
    assert made.keys() == real.keys()
    assert made["request"].keys() == real["request"].keys()
    for key in ("kind", "resource", "requestKind", "requestResource"):
        assert made["request"][key].keys() == real["request"][key].keys()
    assert {**made["request"]["options"], **real["request"]["options"]} == real["request"]["options"]


def test_the_user_comes_with_the_groups_of_every_authenticator(make: Make) -> None:
    made = make("live.yaml", "--user", "system:serviceaccount:shop:checkout", "--group", "more")
    groups = ["more", "system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]
    assert made["request"]["userInfo"] == {"username": "system:serviceaccount:shop:checkout", "groups": groups}


def test_the_fields_of_the_api_server_are_filled_in(make: Make) -> None:
    request = make("taken.yaml", "--old", "live.yaml", "--now", "2026-01-31T12:00:05Z", "--dry-run")["request"]
    for stored in (request["object"], request["oldObject"]):
        metadata = stored["metadata"]
        assert (metadata["creationTimestamp"], metadata["resourceVersion"]) == ("2026-01-31T12:00:05Z", "1")
        assert "managedFields" not in metadata
    assert request["object"]["metadata"]["uid"] == request["oldObject"]["metadata"]["uid"]
    assert (request["dryRun"], request["options"]["dryRun"]) == (True, ["All"])


def test_the_same_arguments_make_the_same_review(make: Make) -> None:
    args = ["taken.yaml", "--old", "live.yaml", "--now", "2026-01-31T12:00:05Z"]
    assert make(*args) == make(*args)
    assert make(*args)["request"]["uid"] != make(*args, "--user", "other")["request"]["uid"]


@pytest.mark.parametrize(
    ("now", "verdict"),
    [("2026-01-31T12:00:05Z", "denied"), ("2026-01-31T12:01:00Z", "allowed")],
    ids=["live", "expired"],
)
def test_with_stamps_a_takeover_depends_on_its_time(
    now: str, verdict: str, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [
        "taken.yaml",
        "--old",
        "live.yaml",
        "--stamp",
        "--now",
        now,
        "--user",
        "system:serviceaccount:shop:checkout",
    ]
    Path("review.json").write_text(json.dumps(make(*args)))
    assert main(["check", "--policy", "strict", "review.json"]) == (verdict == "denied")
    assert capsys.readouterr().out.startswith(verdict)


def test_stamps_that_are_there_stay(make: Make) -> None:
    Path("stored.yaml").write_text(yaml.safe_dump(make_lease()))
    made = make("stored.yaml", "--stamp", "--delete")
    assert made["request"]["oldObject"]["metadata"] == make_lease()["metadata"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["gone.yaml"], "gone.yaml: No such file or directory"),
        (["both.yaml"], "both.yaml: one Lease or LeaseCandidate is needed, 2 found"),
        (["review.json"], "review.json: one Lease or LeaseCandidate is needed, 0 found"),
        (
            ["live.yaml", "--old", "other.yaml"],
            "other.yaml is another object: Lease shop/other, not Lease shop/checkout",
        ),
        (["live.yaml", "--old", "live.yaml", "--delete"], "--delete deletes NEW: there is no --old"),
        (["live.yaml", "--now", "today"], '"today" is not an RFC 3339 time'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refusals(args: list[str], error: str, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    Path("both.yaml").write_text(f"{LIVE}---\n{LIVE}")
    Path("other.yaml").write_text(LIVE.replace("name: checkout", "name: other"))
    Path("review.json").write_text(json.dumps(make_review(new=make_lease())))
    assert main(["make-review", *args]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert error in captured.err
