"""Every rule against every recorded review: honest clients are never stopped, abuse gets what rules say of it."""

import json
from collections.abc import Iterable
from typing import Final

import pytest

from tests.acceptance import accept
from tests.recordings import EXPECTED, FOLDER, Recording, recordings
from webhook.policy.model import Policy
from webhook.policy_file import load
from webhook.rules.registry import RULES
from webhook.server.respond import respond
from webhook.verdict.model import Verdict

DAY: Final = 86_400_000_000
MOMENTS: Final = {"when received": 0, "a day later": DAY, "ten years later": 3653 * DAY}
POLICIES: Final = {name: load(name) for name in ("observe", "standard", "strict")}
BY_HAND: Final = json.loads(EXPECTED.read_text())

WARNED: Final = {
    "1.36.3/kubernetes-asyncio-other-zones/01-create-create.json": (
        "renew-time-in-future",
        "kubernetes_asyncio writes the local time of its zone as UTC; this one runs east of Greenwich",
    ),
}
"""Honest reviews that `standard` warns about: the rule, and why it is right to."""


def evaluated(recording: Recording, policy: Policy, later: int = 0, body: bytes | None = None) -> Verdict:
    """The verdict, through the bytes, with an answer that kube-apiserver accepts."""
    reply = respond(recording.body if body is None else body, policy, recording.received + later)
    assert reply.status == 200
    assert reply.verdict
    accept(reply.body, reply.verdict.uid)
    return reply.verdict


def said(verdict: Verdict) -> set[str]:
    """What every rule did: `rule=mode`."""
    return {f"{finding.rule}={finding.mode.word}" for finding in verdict.findings}


def would_deny(verdict: Verdict) -> set[str]:
    """The rules that the audit annotation names."""
    return set(filter(None, dict(verdict.audit_annotations).get("would-deny", "").split(",")))


def each(found: Iterable[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recording", [pytest.param(one, id=one.file) for one in found])


CLIENTS: Final = [one for one in recordings() if not one.by_person]
PEOPLE: Final = [one for one in recordings() if one.by_person]
ADMIN: Final = [one for one in PEOPLE if one.user in {"admin", "system:apiserver"}]


def test_every_file_is_in_the_index_and_evaluated_by_hand_if_people_made_it() -> None:
    files = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.json")}
    assert files == {one.file for one in recordings()}
    assert BY_HAND.keys() == {one.file for one in PEOPLE}


@pytest.mark.parametrize("later", MOMENTS.values(), ids=MOMENTS.keys())
@each(CLIENTS)
def test_an_honest_client_is_allowed_without_a_warning_on_any_day(recording: Recording, later: int) -> None:
    verdict = evaluated(recording, POLICIES["standard"], later)
    assert verdict.allowed
    known = WARNED.get(recording.file)
    if known and not later:
        assert [warning.partition(":")[0] for warning in verdict.warnings] == [known[0]]
    elif known is None:
        assert verdict.warnings == ()


@each(CLIENTS)
def test_strict_stops_no_honest_client_either(recording: Recording) -> None:
    assert evaluated(recording, POLICIES["strict"]).allowed


@pytest.mark.parametrize("preset", ["standard", "strict"])
@each(PEOPLE)
def test_a_write_by_hand_gets_what_the_rules_say(recording: Recording, preset: str) -> None:
    verdict = evaluated(recording, POLICIES[preset], body=recording.body_without_exemption())
    expected = set(BY_HAND[recording.file][preset])
    assert said(verdict) == expected
    assert verdict.allowed is not any(outcome.endswith("=deny") for outcome in expected)


@pytest.mark.parametrize("later", [DAY, 3653 * DAY], ids=["a day later", "ten years later"])
@each(one for one in PEOPLE if not BY_HAND[one.file].get("needs_now"))
def test_another_clock_changes_no_outcome_that_stamps_decide(recording: Recording, later: int) -> None:
    body = recording.body_without_exemption()
    assert said(evaluated(recording, POLICIES["strict"], later, body)) == set(BY_HAND[recording.file]["strict"])


@each(ADMIN)
def test_administrators_are_exempt_as_recorded(recording: Recording) -> None:
    verdict = evaluated(recording, POLICIES["strict"])
    assert verdict.allowed
    assert said(verdict) == set()


@each(recordings())
def test_observe_denies_nothing_and_names_what_would_be_denied(recording: Recording) -> None:
    body = recording.body_without_exemption()
    verdict = evaluated(recording, POLICIES["observe"], body=body)
    assert verdict.allowed
    strict = evaluated(recording, POLICIES["strict"], body=body)
    denied = {finding.rule for finding in strict.findings if finding.mode.word == "deny"}
    # Where a lease has no stamps, `strict` itself only says that it would deny.
    assert would_deny(verdict) == denied | would_deny(strict)


@pytest.mark.parametrize("preset", ["standard", "strict"])
@each(recordings())
def test_no_field_rule_refuses_what_an_api_server_accepted(recording: Recording, preset: str) -> None:
    verdict = evaluated(recording, POLICIES[preset])
    assert [finding for finding in verdict.findings if RULES[finding.rule].parity] == []
