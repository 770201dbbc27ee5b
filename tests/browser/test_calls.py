"""A page calls by name, with JSON, and gets JSON whatever happens."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_lease, put
from tests.incidents import FOLDER
from tests.timeline.election_samples import HOSTILE_NAMES
from webhook.admission.policy.file import load
from webhook.admission.policy.parse import parse
from webhook.browser.calls import CALLS, Page, answer
from webhook.browser.reviewing import make_preset_files
from webhook.browser.session import Session
from webhook.text.quoting import escape

LOG = str(FOLDER / "lease-stolen/audit.log.gz")


def call(page: Page, name: str, /, **given: Any) -> Any:
    reply = json.loads(answer(page, name, json.dumps(given)))
    return reply.get("result", reply)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def test_a_page_opens_files_and_shows_each_view() -> None:
    page = Page()
    (lease, *_) = call(page, "open", paths=[LOG])["leases"]
    assert call(page, "account", lease=lease)["lease"] == lease
    assert call(page, "audit")["findings"]
    assert call(page, "timeline")["html"]
    assert call(page, "check", policy=make_preset_files()["strict"], all_logs=True)["summary"]


def test_a_page_begins_with_presets_the_schema_and_the_rules() -> None:
    start = call(Page(), "start")
    assert sorted(start["presets"]) == ["observe", "standard", "strict"]
    assert parse(start["presets"][start["default"]]).preset == load(None).preset
    assert start["schema"]["title"] == "Policy of lease-webhook"
    assert {call(Page(), "rule", name=rule)["id"] for rule in start["rules"]} == set(start["rules"])


def test_progress_is_passed_on() -> None:
    progress: list[int] = []
    call(Page(lambda read, _size: progress.append(read)), "open", paths=[LOG])
    assert progress[-1] == Path(LOG).stat().st_size


def test_a_review_takes_a_time_as_people_write_it() -> None:
    lease = json.dumps(make_lease())
    outcomes = call(Page(), "review", text=lease, policy=make_preset_files()["strict"], now="2026-01-31t12:00:00z")
    assert outcomes[0]["verdict"] in {"allowed", "warned", "denied"}


def test_the_lines_of_kubectl_stay_lines() -> None:
    lease = json.dumps(make_lease(put("spec.holderIdentity", "a\nb"), put("spec.leaseDurationSeconds", -1)))
    (outcome,) = call(Page(), "review", text=lease, policy=make_preset_files()["strict"])
    lines = outcome["kubectl"].split("\n")
    assert len(lines) > 1
    assert not [line for line in lines if "Error from server" in line[1:] or "* spec" in line[1:]]


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        pytest.param("open", {"paths": ["LICENSE"]}, "LICENSE has no lease", id="a failure of a command"),
        pytest.param(
            "review", {"text": "a: b", "policy": make_preset_files()["strict"]}, "nothing here", id="an unusable input"
        ),
        pytest.param(
            "review",
            {"text": "a: b", "policy": make_preset_files()["strict"], "now": "2026-"},
            '"2026-" is not an RFC 3339 time',
            id="half a time",
        ),
        pytest.param("__init__", {}, "there is no call __init__", id="another name"),
        pytest.param("rule", {"name": "none"}, "this is a bug: KeyError", id="a bug"),
    ],
)
def test_what_goes_wrong_is_one_line(name: str, given: dict[str, Any], problem: str) -> None:
    error = call(Page(), name, **given)["error"]
    assert error.startswith(problem)
    assert "\n" not in error


def test_a_policy_that_is_refused_is_a_problem_with_its_place() -> None:
    problem = call(Page(), "review", text="", policy="preset: strictt\n")["problem"]
    assert (problem["line"], problem["path"]) == (1, "preset")


def test_memory_that_is_full_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_session: Session) -> None:
        raise MemoryError

    monkeypatch.setattr(Session, "audit", fail)
    assert "lease-webhook why --input FILE" in call(Page(), "audit")["error"]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_holder_is_shown_with_what_is_hidden_escaped(tmp_path: Path, name: str) -> None:
    file = tmp_path / "lease.json"
    file.write_text(json.dumps(make_lease(put("spec.holderIdentity", name))))
    page = Page()
    opened = call(page, "open", paths=[str(file)])
    views = [opened["rows"], call(page, "account", lease=opened["leases"][0]), call(page, "audit")]
    assert [text for text in texts(views) if text != escape(text)] == []
    assert opened["rows"][0][2] != "-"


def test_every_call_is_a_method() -> None:
    assert all(callable(getattr(Page, name)) for name in CALLS)
