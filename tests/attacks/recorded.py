"""The reviews that a real API server made of the attacks, and the webhook's answers to them today.

`tests/data/attacks/<attack>.<preset>.jsonl.gz` holds one line for each review: when it was received, and its bytes.
"""

import gzip
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.attacks.attack import Attack, policy_text
from tests.attacks.play import Outcome, by_rule
from tests.attacks.requests import Clock
from tests.deep_json import decode
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.cli.options import parse_moment
from webhook.server.reviewer import ReviewResponse, respond

FOLDER: Final = Path(__file__).parents[1] / "data" / "attacks"


class Review(Struct, frozen=True):
    """One review as it came; `received` in microseconds since 1970."""

    received: int
    body: bytes


class RecordedWorld:
    """Gives the recorded reviews of one attack to the webhook, one for each write."""

    def __init__(self, reviews: Iterable[Review], policy: Policy) -> None:
        self._left = list(reviews)
        self._policy = policy

    def clock(self) -> Clock:
        """The moment of the next review."""
        return Clock(self._left[0].received)

    def read(self) -> dict[str, Any]:
        """The object that the next review has as the old one."""
        old: dict[str, Any] = decode(self._left[0].body)["request"]["oldObject"]
        return old

    def send(self, _by: str, _method: str, _manager: str, _body: dict[str, Any] | None, /) -> Outcome:
        """The verdict on the next review."""
        review = self._left.pop(0)
        return outcome_of(respond(review.body, self._policy, review.received))

    def wait(self, seconds: float) -> None:
        """The recording waited."""


def outcome_of(reply: ReviewResponse) -> Outcome:
    """Return what the API server makes of an answer; without one the write passes, as under failurePolicy Ignore."""
    verdict = reply.verdict
    if verdict is None:
        return Outcome(True, {"no verdict": str(reply.status)}, reply.body.decode())
    findings = by_rule((finding.rule, finding.mode.word) for finding in verdict.findings if finding.mode.word != "off")
    return Outcome(verdict.allowed, findings, verdict.message or "")


@cache
def policy_of(preset: str) -> Policy:
    """The policy that the attacks are played under."""
    return parse(policy_text(preset))


def file_of(attack: Attack, preset: str) -> Path:
    """Return where the reviews of an attack are."""
    return FOLDER / f"{attack.id}.{preset}.jsonl.gz"


def reviews_of(attack: Attack, preset: str) -> list[Review]:
    """The recorded reviews of an attack, in order."""
    lines = gzip.decompress(file_of(attack, preset).read_bytes()).splitlines()
    return [Review(parse_moment(line["received"]), line["body"].encode()) for line in map(json.loads, lines)]


def every_review() -> list[Review]:
    """The recorded reviews of all attacks under all presets."""
    lines = (
        line for file in sorted(FOLDER.glob("*.jsonl.gz")) for line in gzip.decompress(file.read_bytes()).splitlines()
    )
    return [Review(parse_moment(line["received"]), line["body"].encode()) for line in map(json.loads, lines)]


def store(attack: Attack, preset: str, reviews: Iterable[tuple[str, bytes]]) -> None:
    """Write the reviews of an attack; the file is the same for the same reviews."""
    lines = [{"received": received, "body": body.decode()} for received, body in reviews]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    FOLDER.mkdir(parents=True, exist_ok=True)
    file_of(attack, preset).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
