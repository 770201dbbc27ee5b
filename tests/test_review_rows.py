"""What comes over the wire that no API server would send: each gets the answer that its row names."""

import json
from pathlib import Path

import pytest

from tests.acceptance import accept
from tests.factories import to_bytes
from tests.review_rows import FOLDER, WHEN, Case, PolicyCase, base, cases, policy_cases
from webhook.admission.policy.file import load
from webhook.cli.main import main
from webhook.server.reviewer import ReviewResponse, respond

POLICY = load("standard")


def uid_of(body: bytes) -> str:
    uid: str = json.loads(body.decode("utf-8", "surrogatepass"))["request"]["uid"]
    return uid


def assert_answer(reply: ReviewResponse, case: Case) -> None:
    expect = case.expect
    if "status" in expect:
        assert reply.status == expect["status"]
        assert reply.verdict is None
        text = reply.body.decode("ascii")
        assert text.endswith("\n")
        assert text.count("\n") == 1
        assert 3 < len(text) < 120
        return
    assert reply.status == 200, reply.body[:200]
    answer = accept(reply.body, uid_of(case.body), expect.get("api_version", "admission.k8s.io/v1"))
    assert answer.allowed is expect["allowed"]
    if answer.status:
        assert answer.status.code == expect["code"]
        causes = answer.status.details.causes if answer.status.details else []
        assert {cause.field for cause in causes} >= set(expect.get("fields", ()))
        if "fields" in expect:
            assert {cause.field for cause in causes} == set(expect["fields"])
    if "warning" in expect:
        assert any(expect["warning"] in warning for warning in answer.warnings)
    elif answer.allowed:
        assert answer.warnings == []


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases()])
def test_every_row_gets_its_answer(case: Case) -> None:
    reply = respond(case.body, POLICY, WHEN)
    assert_answer(reply, case)
    assert all(respond(case.body, POLICY, WHEN).body == reply.body for _ in range(case.times - 1))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in policy_cases()])
@pytest.mark.parametrize("command", [["serve", "--bind", "127.0.0.1:0"], ["check", "-"]], ids=["serve", "check"])
def test_a_bad_policy_is_a_refusal_to_start(
    command: list[str], case: PolicyCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    if case.policy is not None:
        file.write_text(case.policy)
    assert main([*command, "--policy", str(file)]) == case.exit_code
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("lease-webhook: ")
    assert "policy.yaml" in err
    assert err.count("\n") == 1


def test_the_rows_are_there() -> None:
    assert sorted(int(file.name[:2]) for file in FOLDER.glob("*.json")) == [*range(45, 92), 94]


@pytest.mark.parametrize("name", ["create", "update", "delete", "candidate"])
def test_what_the_rows_start_from_is_sound(name: str) -> None:
    reply = respond(to_bytes(base(name)), POLICY, WHEN)
    assert reply.verdict
    assert reply.verdict.allowed
    assert reply.verdict.findings == ()
