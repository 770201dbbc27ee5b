"""Evaluates a case and compares its verdict with the expected one."""

import json
from pathlib import Path

from msgspec import UNSET, Struct

from webhook.api.review import ReviewError
from webhook.cli.cases import Case, Expectation
from webhook.cli.evaluation import Evaluation, evaluate_review, load_policy
from webhook.cli.failure import Failure
from webhook.cli.manifest import Writer, review_of, stamped
from webhook.cli.moment import moment
from webhook.cli.sources import Document, Item, Manifest, Origin, Review, Skipped, Unreadable, encoded, item_of, read
from webhook.policy.schema_types import PRESETS
from webhook.rules.mode import Mode


class CaseResult(Struct, frozen=True):
    """What came of a case: its verdict with each difference from the expected one, or why there is none (`error`)."""

    case: Case
    evaluation: Evaluation | None = None
    differences: tuple[str, ...] = ()
    error: str = ""

    @property
    def passed(self) -> bool:
        """Whether the verdict is as expected."""
        return not self.error and not self.differences


def result_of(case: Case, policy: str | None = None) -> CaseResult:
    """Evaluate one case; `policy` stands in place of that of the case."""
    try:
        evaluation = _evaluated(case, policy)
    except (Failure, ReviewError, ValueError) as error:
        return CaseResult(case, error=str(error))
    return CaseResult(case, evaluation, tuple(_differences(case.text.expect, evaluation)))


def actual(evaluation: Evaluation) -> Expectation:
    """The verdict as a file expects it: with every rule that denies or warns."""
    modes = {rule: mode for rule, mode in _modes(evaluation).items() if mode in ("deny", "warn")}
    return Expectation(evaluation.verdict.allowed, evaluation.verdict.event or UNSET, modes)  # type: ignore[arg-type]  # a Literal is not narrowed by `in`


def _evaluated(case: Case, policy: str | None) -> Evaluation:
    around, text = case.circumstances, case.text
    folder = Path(case.at.path).parent
    name = policy or around.policy or None
    if name and not policy and name not in PRESETS:
        name = str(folder / name)
    now = moment(around.now) if around.now else None
    if text.review is not None:
        if text.old is not None or text.new is not None:
            raise Failure("a case has a review, or old and new")
        return evaluate_review(case.at, _review(text.review, folder), load_policy(name), now)
    if text.new is None and text.old is None:
        raise Failure("a case needs a review, or new, or old, or both")
    if around.groups and not around.user:
        raise Failure("groups need a user: a group alone writes nothing")
    writer = Writer(around.user, around.groups) if around.user else None
    new, old = (None if one is None else _object(one, folder) for one in (text.new, text.old))
    if around.stamped:
        new, old = new and stamped(new, now), old and stamped(old)
    body = review_of(new, old, writer)
    return evaluate_review(case.at, body, load_policy(name), now, writer_known=writer is not None)


def _object(given: str | Document, folder: Path) -> Document:
    item = _only(given, folder)
    if not isinstance(item, Manifest):
        raise Failure(f"{_shown(given)}: not a Lease or LeaseCandidate")
    return item.document


def _review(given: str | Document, folder: Path) -> bytes:
    if not isinstance(given, str):
        return encoded(given)
    item = _only(given, folder)
    if not isinstance(item, Review):
        raise Failure(f"{_shown(given)}: not an AdmissionReview")
    return item.body


def _only(given: str | Document, folder: Path) -> Item:
    """The one document of a file, or the one that stands in the case."""
    if not isinstance(given, str):
        item = item_of(Origin("the object in the case"), "", given)
        if isinstance(item, Unreadable):
            raise Failure(item.error)
        return item
    items = [item for item in read([str(folder / given)]) if not isinstance(item, Skipped)]
    if len(items) != 1:
        raise Failure(f"{given}: one object is needed, {len(items)} found")
    if isinstance(items[0], Unreadable):
        raise Failure(f"{given}: {items[0].error}")
    return items[0]


def _differences(expected: Expectation | None, evaluation: Evaluation) -> list[str]:
    if expected is None:
        return ["nothing is expected; --update writes what the verdict is"]
    verdict = evaluation.verdict
    found = []
    if expected.allowed is not verdict.allowed:
        found.append(f"allowed: expected {_word(expected.allowed)}, got {_word(verdict.allowed)}")
    if expected.event is not UNSET and expected.event != verdict.event:
        found.append(f"event: expected {expected.event or 'none'}, got {verdict.event or 'none'}")
    if expected.rules is not UNSET:
        got = _modes(evaluation)
        for rule, mode in expected.rules.items():
            if got.get(rule) != mode:
                found.append(f"rules: {rule}: expected {mode}, got {got.get(rule, 'nothing')}")
        found += [
            f"rules: {rule}: expected nothing, got {mode}"
            for rule, mode in got.items()
            if rule not in expected.rules and mode != Mode.AUDIT.word
        ]
    return found


def _modes(evaluation: Evaluation) -> dict[str, str]:
    """The strongest mode of each rule that found something."""
    modes: dict[str, Mode] = {}
    for finding in evaluation.verdict.findings:
        modes[finding.rule] = max(finding.mode, modes.get(finding.rule, Mode.OFF))
    return {rule: mode.word for rule, mode in modes.items() if mode is not Mode.OFF}


def _word(value: bool) -> str:  # noqa: FBT001 - the value itself
    return json.dumps(value)


def _shown(given: str | Document) -> str:
    return given if isinstance(given, str) else "the object in the case"
