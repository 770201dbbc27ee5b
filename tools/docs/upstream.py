"""Refusals of API servers: whether one refuses by itself what a rule denies, and the evidence for that."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.attacks.attack import attacks
from tests.recordings import recordings
from webhook.admission.policy.file import load
from webhook.admission.rules.rule import Rule
from webhook.api_server.rule_policies import is_refused_upstream
from webhook.cli.rules import REFUSED_UPSTREAM
from webhook.server.reviewer import respond

_OF_BOTH: Final = ("1.36.3", "1.31.14")
COMPARED: Final[Mapping[str, tuple[str, ...]]] = {
    "candidate-binary-version": _OF_BOTH,
    "candidate-emulation-version": _OF_BOTH,
    "candidate-lease-name": _OF_BOTH,
    "candidate-lease-name-immutable": _OF_BOTH,
    "candidate-strategy": ("1.36.3",),
    "candidate-version-order": _OF_BOTH,
    "candidate-versions-required": _OF_BOTH,
    "lease-duration": ("1.36.3",),
    "lease-preferred-holder": ("1.36.3",),
    "lease-strategy": ("1.36.3",),
    "lease-transitions": ("1.36.3",),
    "metadata-immutable": _OF_BOTH,
    "object-metadata": _OF_BOTH,
    "object-name": _OF_BOTH,
    "object-types": _OF_BOTH,
}
"""Versions whose own validation refuses every recorded case that the rule denies: `tests/conformance` compares them."""

_IN_PART: Final = {
    "candidate-lease-name-format": "no: it stores a `leaseName` that no Lease can have (1.36.3, 1.31.14)",
    "candidate-preferred-strategies": "in part: 1.31.14 refuses an unknown strategy but stores an empty list",
    "candidate-strategies-unique": "no: 1.31.14 stores a list that names a strategy twice",
    "time-unreadable": "in part: it refuses text that is not a time but stores a time in year 10000 (1.36.3, 1.31.14)",
}


def describe_upstream(rule: Rule) -> str:
    """Return yes, no, in part or unknown, and why."""
    if rule.id in _IN_PART:
        return _IN_PART[rule.id]
    if is_refused_upstream(rule):
        versions = " and ".join(COMPARED.get(rule.id, ()))
        return f"yes: {REFUSED_UPSTREAM} ({f'compared with {versions}' if versions else 'not compared with its code'})"
    if versions := " and ".join(sorted(_list_sending_versions()[rule.id])):
        return f"no: {versions} sent such a write for review (recorded)"
    if rule.id in _list_rules_of_attacks():
        return "no: API servers send such a write for review (recorded attacks)"
    return "unknown: no such write is recorded"


@cache
def _list_sending_versions() -> Mapping[str, set[str]]:
    """Return, for each rule, the API servers that sent a write for review in which it finds something."""
    policy, found = load("strict"), defaultdict[str, set[str]](set)
    for recording in recordings():
        verdict = respond(recording.body_without_exemption(), policy, recording.received).verdict
        for finding in verdict.findings if verdict else ():
            found[finding.rule].add(recording.file.partition("/")[0])
    return found


@cache
def _list_rules_of_attacks() -> frozenset[str]:
    return frozenset(
        rule
        for attack in attacks()
        for step in attack.writes
        for expected in (step.always, step.standard, step.strict)
        if expected is not None
        for rule in expected.findings
    )
