"""Every rule against every recorded review: honest clients are never stopped, abuse gets what rules say of it."""

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance import accept
from tests.recordings import EXPECTED, FOLDER, NEEDING_NOW, Recording, recordings
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.registry import RULES
from webhook.admission.verdict import Verdict
from webhook.cli.checking.expectations import find_differences, make_expectation, read_expectations
from webhook.server.reviewer import respond

PROJECT: Final = Path(__file__).parents[1]
DAY: Final = 86_400_000_000
MOMENTS: Final = {"when received": 0, "a day later": DAY, "ten years later": 3653 * DAY}
POLICIES: Final = {name: load(name) for name in ("observe", "standard", "strict")}
BY_HAND: Final = {name: read_expectations(str(path)) for name, path in EXPECTED.items()}
NEEDS_NOW: Final = frozenset(NEEDING_NOW.read_text().splitlines())

WARNED: Final = {
    "1.36.3/kubernetes-asyncio-other-zones/01-create-create.json": (
        "renew-time-in-future",
        "kubernetes_asyncio writes the local time of its zone as UTC; this one runs east of Greenwich",
    ),
    "1.36.3/kubernetes-python-aio/02-update-claim.json": (
        "renew-time-in-future",
        "kubernetes.aio does the same",
    ),
    "1.36.3/cloudnative-pg/13-update-untouched.json": (
        "owner-reference-added",
        "an owner that does not exist would have the lease deleted; docs/protect-postgresql.md has the binding",
    ),
}
"""Honest reviews that `standard` warns about: the rule, and why it is right to."""
ADOPTION: Final = "1.36.3/cloudnative-pg/13-update-untouched.json"
"""An operator gives a live lease of its pods a new owner: nothing in the review shows that the owner exists."""


def evaluated(recording: Recording, policy: Policy, later: int = 0, body: bytes | None = None) -> Verdict:
    """The verdict, through the bytes, with an answer that kube-apiserver accepts."""
    reply = respond(recording.body if body is None else body, policy, recording.received + later)
    assert reply.status == 200
    assert reply.verdict
    accept(reply.body, reply.verdict.uid)
    return reply.verdict


def said(verdict: Verdict) -> set[str]:
    """Return what every rule did: `rule=mode`."""
    return {f"{finding.rule}={finding.mode.word}" for finding in verdict.findings}


def would_deny(verdict: Verdict) -> set[str]:
    """The rules that the audit annotation names."""
    return set(filter(None, dict(verdict.audit_annotations).get("would-deny", "").split(",")))


PEOPLE: Final = [one for one in recordings() if one.by_person]
ADMINISTRATORS: Final = frozenset({"admin", "system:apiserver"})


def test_every_file_is_in_the_index_and_evaluated_by_hand_if_people_made_it() -> None:
    files = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.json")}
    assert files == {one.file for one in recordings()}
    for name, expected in BY_HAND.items():
        assert expected.keys() == {f"recordings/{one.file}" for one in PEOPLE}, name
    assert {one.file for one in PEOPLE} >= NEEDS_NOW


@pytest.mark.parametrize("recording", [pytest.param(one, id=one.file) for one in recordings()])
def test_every_policy_does_with_it_what_the_rules_say(recording: Recording) -> None:
    verdicts = {name: evaluated(recording, policy) for name, policy in POLICIES.items()}
    for name in ("standard", "strict"):
        # An API server accepted it, so no rule that repeats its checks may refuse it.
        assert [finding for finding in verdicts[name].findings if RULES[finding.rule].parity] == [], name
    if recording.by_person:
        check_by_hand(recording)
    else:
        check_client(recording)
        assert verdicts["strict"].allowed == (recording.file != ADOPTION)
    if recording.by_person and recording.user in ADMINISTRATORS:
        assert (verdicts["strict"].allowed, said(verdicts["strict"])) == (True, set())
    check_observe(recording)


def test_with_the_binding_of_its_page_a_database_does_what_it_does_and_nobody_else() -> None:
    """The page has other names: the namespace of the recordings is that of the cluster."""
    policy = parse((PROJECT / "docs" / "examples" / "postgresql.yaml").read_text().replace("shop", "cloudnative-pg"))
    written = [one for one in recordings() if one.file.startswith("1.36.3/cloudnative-pg/")]
    for recording in written:
        verdict = evaluated(recording, policy)
        assert (verdict.allowed, verdict.warnings) == (True, ()), recording.file
        for account in (b"cloudnative-pg:database", b"cnpg-system:cnpg-manager"):
            stranger = recording.body.replace(
                b"system:serviceaccount:" + account, b"system:serviceaccount:cloudnative-pg:other"
            )
            if stranger != recording.body and "renewal" not in recording.file:
                assert "identity-binding=deny" in said(evaluated(recording, policy, body=stranger)), recording.file


def check_client(recording: Recording) -> None:
    """An honest client is allowed without a warning on any day."""
    known = WARNED.get(recording.file)
    for name, later in MOMENTS.items():
        verdict = evaluated(recording, POLICIES["standard"], later)
        assert verdict.allowed, name
        if known and not later:
            assert [warning.partition(":")[0] for warning in verdict.warnings] == [f"lease webhook, {known[0]}"]
        elif known is None:
            assert verdict.warnings == (), name


def find_line(path: Path, review: str) -> str:
    """Return the file and the number of the line of what is expected of a review."""
    lines = path.read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if f'"{review}"' in line)
    return f"{path.relative_to(PROJECT)}:{number}"


def check_by_hand(recording: Recording) -> None:
    """A write by hand gets what the rules say, and another clock changes no outcome that stamps decide."""
    body = recording.body_without_exemption()
    review = f"recordings/{recording.file}"
    for name, expected in BY_HAND.items():
        verdict = evaluated(recording, POLICIES[name], body=body)
        found = make_expectation(review, verdict, verdict.outcome)
        hint = f"if the rules are right, edit the line, and its `why`: {find_line(EXPECTED[name], review)}"
        assert [*find_differences(expected[review], found)] == [], hint
    for name, later in MOMENTS.items():
        if recording.file not in NEEDS_NOW:
            assert said(evaluated(recording, POLICIES["strict"], later, body)) == set(
                BY_HAND["strict"][review].rules
            ), name


def check_observe(recording: Recording) -> None:
    """The `observe` preset denies nothing and names what would be denied."""
    body = recording.body_without_exemption()
    verdict = evaluated(recording, POLICIES["observe"], body=body)
    assert verdict.allowed
    strict = evaluated(recording, POLICIES["strict"], body=body)
    denied = {finding.rule for finding in strict.findings if finding.mode.word == "deny"}
    # Where a lease has no stamps, `strict` itself only says that it would deny.
    assert would_deny(verdict) == denied | would_deny(strict)
