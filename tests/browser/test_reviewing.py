"""A review or a manifest before a policy."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_lease, make_review, put, to_bytes
from tests.recordings import FOLDER as RECORDINGS
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.browser import reviewing
from webhook.browser.reviewing import make_preset_files, review
from webhook.errors import InputError

STRICT = make_preset_files()["strict"]
STEAL = RECORDINGS / "1.36.3/kubectl-unusual/18-update-steal-unexpired-by-other-namespace.json"
TAKEN, LIVE = (Path(f"docs/examples/{name}-lease.yaml").read_text() for name in ("taken", "live"))
WRITER = "system:serviceaccount:shop:checkout"
BATCH = "kind: Job\napiVersion: batch/v1\nmetadata: {name: a}\n"


def first(text: str, **more: Any) -> dict[str, Any]:
    return review(text, STRICT, **more)[0]


def test_every_preset_is_a_policy_file() -> None:
    assert {name: parse(text).preset for name, text in make_preset_files().items()} == {
        name: name for name in make_preset_files()
    }


def test_a_review_is_denied_with_what_kubectl_prints() -> None:
    outcome = first(STEAL.read_text())
    assert (outcome["verdict"], outcome["code"], outcome["event"]) == ("denied", 403, "steal")
    assert outcome["kubectl"].startswith("Error from server (Forbidden): ")
    assert json.loads(outcome["response"])["response"]["allowed"] is False
    assert [one["rule"] for one in outcome["findings"]] == ["takeover-before-expiry", "takeover-across-namespaces"]
    assert all(one["fix"] for one in outcome["findings"])


def test_another_policy_decides_otherwise() -> None:
    assert review(STEAL.read_text(), make_preset_files()["observe"])[0]["verdict"] == "warned"


def test_a_manifest_is_evaluated_at_the_time_that_is_given() -> None:
    expired = first(TAKEN, old=LIVE, user=WRITER, now=4_000_000_000_000_000)
    assert "takeover-before-expiry" not in [one["rule"] for one in expired["findings"]]


def test_the_fixture_of_a_review_is_the_review_in_one_line() -> None:
    fixture = first(STEAL.read_text())["review"]
    assert "\n" not in fixture
    assert json.loads(fixture) == json.loads(STEAL.read_text())


def test_a_manifest_alone_is_a_creation_by_someone_unknown() -> None:
    outcome = first(TAKEN)
    assert (outcome["operation"], outcome["user"]) == ("CREATE", "")


def test_a_manifest_is_an_update_of_what_is_stored() -> None:
    outcome = first(TAKEN, old=LIVE, user=WRITER)
    assert (outcome["operation"], outcome["verdict"], outcome["user"]) == ("UPDATE", "denied", WRITER)


def test_the_fixture_of_a_manifest_is_the_review_that_was_evaluated() -> None:
    outcome = first(TAKEN, old=LIVE, user=WRITER)
    again = first(outcome["review"])
    assert [again[key] for key in ("verdict", "message", "user")] == [
        outcome[key] for key in ("verdict", "message", "user")
    ]


def test_groups_are_those_of_the_writer() -> None:
    request = json.loads(first(TAKEN, user="jane", groups=["ops"])["review"])["request"]
    assert request["userInfo"]["groups"] == ["ops", "system:authenticated"]


def test_unknown_fields_have_a_line() -> None:
    (field,) = first(TAKEN + "  holder: x\n")["unknownFields"]
    assert field["line"] == len(TAKEN.splitlines()) + 1


def test_each_document_of_a_text_has_a_verdict_and_other_kinds_have_none() -> None:
    assert [one["name"] for one in review("---\n".join([TAKEN, BATCH, LIVE]), STRICT)] == ["checkout", "checkout"]


def test_a_broken_document_is_an_error_with_its_line() -> None:
    outcomes = review(f"{TAKEN}\n---\nkind: [", STRICT)
    assert ("error" in outcomes[0], "error" in outcomes[1]) == (False, True)
    assert outcomes[1]["line"] > 1


def test_a_review_that_contradicts_itself_is_denied() -> None:
    text = to_bytes(make_review(put("request.name", "other"), new=make_lease())).decode()
    assert first(text)["code"] == 400


def test_only_the_first_documents_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "MAX_DOCUMENTS", 1)
    assert len(review(f"{TAKEN}---\n{LIVE}", STRICT)) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(BATCH, "nothing here is a Lease", id="another kind"),
        pytest.param('{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n', "this is a log or a watch", id="a log"),
        pytest.param(" " * (reviewing.MAX_BYTES + 1), "open it as a file", id="too much"),
    ],
)
def test_a_text_without_a_write_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        review(text, STRICT)


def test_a_stored_object_that_is_broken_is_refused() -> None:
    with pytest.raises(InputError, match="the stored object: "):
        review(TAKEN, STRICT, old="kind: [")


def test_a_policy_that_is_refused_has_a_line() -> None:
    with pytest.raises(PolicyError) as refused:
        review(TAKEN, STRICT + "rules:\n  takeover: {mode: deny}\n")
    assert (refused.value.line, refused.value.path) == (4, "rules.takeover")
