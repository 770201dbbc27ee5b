"""Refusals of API servers: whether one refuses by itself what a rule denies, and the evidence for that."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from tests.attacks.attack import attacks
from tests.conformance.refusals import find_refusing_versions
from tests.recordings import recordings
from webhook.admission.policy.file import load
from webhook.admission.rules.rule import Rule
from webhook.api_server.rule_policies import is_refused_upstream
from webhook.cli.rules import REFUSED_UPSTREAM
from webhook.server.reviewer import respond


def describe_upstream(rule: Rule) -> str:
    """Return yes, no, in part or unknown, and why."""
    if rule.texts.upstream:
        return rule.texts.upstream
    if is_refused_upstream(rule):
        versions = " and ".join(find_refusing_versions().get(rule.id, ()))
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
