"""SARIF 2.1.0, which code scanning and editors show next to the line of a file.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
The libraries that write it are types of the same JSON without a check; tests validate this by the schema of OASIS.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

from webhook import __version__
from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import OtherObject, Place
from webhook.cli.checking.evaluation import DocumentOutcome, Evaluation
from webhook.cli.checking.problems import NOT_RULES, Problem, list_problems
from webhook.cli.rules import list_all_rules
from webhook.text.quoting import escape, truncate

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {Mode.DENY: "error", Mode.WARN: "warning", Mode.AUDIT: "note"}

Object = dict[str, Any]


def format_sarif(outcomes: Iterable[DocumentOutcome]) -> str:
    """Return the document about what was checked: a result for each finding."""
    seen: Counter[str] = Counter()
    rules: dict[str, int] = {}
    results: list[Object] = []
    is_successful = True
    for outcome in outcomes:
        if isinstance(outcome, OtherObject):
            continue
        is_successful = is_successful and isinstance(outcome, Evaluation)
        subject = truncate(outcome.subject) if isinstance(outcome, Evaluation) else ""
        for problem in list_problems(outcome):
            index = rules.setdefault(problem.rule, len(rules))
            results.append(_make_result(outcome.place, subject, problem, index, seen))
    run = {
        "tool": {
            "driver": {
                "name": "lease-webhook",
                "semanticVersion": __version__,
                "rules": [_describe_rule(one) for one in rules],
            }
        },
        "automationDetails": {"id": "lease-webhook/check/"},
        "invocations": [{"executionSuccessful": is_successful}],
        "columnKind": "utf16CodeUnits",
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _describe_rule(name: str) -> Object:
    if name in NOT_RULES:
        return {"id": name, "shortDescription": {"text": NOT_RULES[name]}}
    rule = list_all_rules()[name]
    text = escape(" ".join((rule.summary, *rule.details)))
    return {"id": name, "shortDescription": {"text": escape(rule.summary)}, "help": {"text": text}}


def _make_result(place: Place, subject: str, problem: Problem, index: int, seen: Counter[str]) -> Object:
    line = {"region": {"startLine": problem.line}} if problem.line else {}
    return {
        "ruleId": problem.rule,
        "ruleIndex": index,
        "level": _LEVELS[problem.level],
        "message": {"text": f"{escape(subject)}: {problem.text}" if subject else problem.text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": make_uri(place.path)}, **line}}],
        "partialFingerprints": {"finding/v1": _compute_fingerprint(problem.rule, place.path, subject, seen)},
    }


def make_uri(path: str) -> str:
    """Return a path as a relative reference, or as a file: URI if it is absolute; standard input is `-`."""
    quoted = quote(path.encode("utf-8", "surrogatepass"))
    return f"file://{quoted}" if path.startswith("/") else quoted.removeprefix("./")


def _compute_fingerprint(rule: str, path: str, name: str, seen: Counter[str]) -> str:
    """Return the same text for the same (n-th) problem in the next run; messages have times and numbers."""
    key = "\0".join((rule, path, name))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
