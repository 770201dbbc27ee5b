"""SARIF 2.1.0, which code scanning and editors show next to the line of a file.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote

from webhook import __version__
from webhook.api.text import escape, escape_lines
from webhook.cli.evaluation import Evaluation
from webhook.cli.report import Outcome, subject_of
from webhook.cli.rules import described
from webhook.inputs.items import Foreign, Unreadable
from webhook.rules.rule import Mode
from webhook.verdict import Result

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
REQUEST: Final = "request"
UNREADABLE: Final = "unreadable"
_NOT_RULES: Final = {
    REQUEST: "A review must make sense, and its version must be known.",
    UNREADABLE: "What is examined must be readable.",
}
_LEVELS: Final = {Mode.DENY: "error", Mode.WARN: "warning", Mode.AUDIT: "note"}
_MAX_TEXT: Final = 2000
"""Characters of a message."""

Object = dict[str, Any]
_Found = tuple[str, str, str]
"""The id of a rule, the level, and a text."""


def sarif(outcomes: Iterable[Outcome]) -> str:
    """Return the document about what was checked: a result for each finding."""
    seen: Counter[str] = Counter()
    rules: dict[str, int] = {}
    results: list[Object] = []
    is_successful = True
    for outcome in outcomes:
        if isinstance(outcome, Foreign):
            continue
        is_successful = is_successful and isinstance(outcome, Evaluation)
        for found in _findings(outcome):
            index = rules.setdefault(found[0], len(rules))
            results.append(_result(outcome, found, index, seen))
    run = {
        "tool": {
            "driver": {"name": "lease-webhook", "semanticVersion": __version__, "rules": [_rule(one) for one in rules]}
        },
        "automationDetails": {"id": "lease-webhook/check/"},
        "invocations": [{"executionSuccessful": is_successful}],
        "columnKind": "utf16CodeUnits",
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _findings(outcome: Evaluation | Unreadable) -> Iterator[_Found]:
    if isinstance(outcome, Unreadable):
        yield UNREADABLE, "error", outcome.error
        return
    verdict = outcome.verdict
    found = [one for one in verdict.findings if one.mode is not Mode.OFF]
    yield from ((one.rule, _LEVELS[one.mode], _text(one)) for one in found)
    worst = max((one.mode for one in found), default=Mode.OFF)
    if not verdict.allowed and worst is not Mode.DENY:
        yield REQUEST, "error", verdict.message
    if verdict.allowed and worst < Mode.WARN:
        yield from ((REQUEST, "warning", warning) for warning in verdict.warnings)


def _text(found: Result) -> str:
    """Say of a denied write what is wrong, of an admitted one what happened."""
    if found.mode is not Mode.DENY and found.happened is not None:
        return found.happened.within(_MAX_TEXT, f"lease-webhook rules {found.rule}")
    return str(found.error)


def _rule(name: str) -> Object:
    if name in _NOT_RULES:
        return {"id": name, "shortDescription": {"text": _NOT_RULES[name]}}
    texts = described()[name].texts
    text = escape_lines(" ".join((texts.summary, *texts.details)))
    return {"id": name, "shortDescription": {"text": escape_lines(texts.summary)}, "help": {"text": text}}


def _result(outcome: Evaluation | Unreadable, found: _Found, index: int, seen: Counter[str]) -> Object:
    rule, level, text = found
    place = outcome.place
    name = ""
    if isinstance(outcome, Evaluation):
        name = subject_of(outcome) + ("" if place.is_only else f" #{place.document}")
    line = {"region": {"startLine": place.line}} if place.line else {}
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": level,
        "message": {"text": escape_lines(f"{name}: {text}" if name else escape(text))},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(place.path)}, **line}}],
        "partialFingerprints": {"finding/v1": _fingerprint(rule, place.path, name, seen)},
    }


def uri(path: str) -> str:
    """Return a path as a relative reference, or as a file: URI if it is absolute; standard input is `-`."""
    quoted = quote(path.encode("utf-8", "surrogatepass"))
    return f"file://{quoted}" if path.startswith("/") else quoted.removeprefix("./")


def _fingerprint(rule: str, path: str, name: str, seen: Counter[str]) -> str:
    """Return the same text for the same (n-th) problem in the next run; messages have times and numbers."""
    key = "\0".join((rule, path, name))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
