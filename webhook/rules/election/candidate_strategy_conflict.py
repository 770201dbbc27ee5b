"""Candidates of one lease that cannot agree on a strategy: coordinated leader election then elects no leader.

A fact about a set of objects, so no single write is ever refused for it: reports over stored objects use it.
"""

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Final

from semver import Version

from webhook.api import semantic_version
from webhook.api.field import invalid
from webhook.api.objects import LeaseCandidate
from webhook.api.text import quote
from webhook.rules.finding import Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import CANDIDATES, WRITES, Rule
from webhook.rules.times import MINUTE, instant, normalized

ID: Final = "candidate-strategy-conflict"
LIVE: Final = 30 * MINUTE
"""A candidate that has not renewed for longer is not counted, and is removed.

Source: kubernetes `pkg/controlplane/controller/leaderelection/leasecandidategc_controller.go`.
"""
ALPHA: Final = "coordination.k8s.io/v1alpha1"
"""The only version with a list of strategies in order of preference (Kubernetes 1.31)."""


def candidates_agree_on_a_strategy(candidates: Iterable[LeaseCandidate], now: int) -> Iterator[Finding]:
    """The live candidates of one lease must agree on its strategy.

    Since v1alpha2 the strategy of the highest binaryVersion counts, so candidates of that version must have the same;
    in v1alpha1 all ordered lists together must have no cycle and exactly one first choice. Versions that do not parse
    are left to the field rules.

    Args:
        candidates: those of one namespace and one spec.leaseName.
        now: microseconds since 1970.

    """
    live = sorted((one for one in candidates if _is_live(one, now)), key=lambda one: one.metadata.name or "")
    yield from _one_strategy([one for one in live if one.api_version != ALPHA])
    yield from _one_first_choice([one for one in live if one.api_version == ALPHA])


def _is_live(candidate: LeaseCandidate, now: int) -> bool:
    renewed = instant(normalized(candidate.spec.renew_time))
    return renewed is not None and now - renewed <= LIVE


def _one_strategy(candidates: list[LeaseCandidate]) -> Iterator[Finding]:
    versions = {id(one): version for one in candidates if (version := _version(one)) is not None}
    if not versions:
        return
    highest = max(versions.values())
    deciding = [one for one in candidates if versions.get(id(one)) == highest]
    by_strategy = {one.spec.strategy or "": one for one in deciding}
    if len(by_strategy) > 1:
        choices = ", ".join(f"{one.metadata.name} {quote(strategy)}" for strategy, one in by_strategy.items())
        detail = (
            f"live candidates of the highest binaryVersion {highest} must have the same strategy ({choices}), "
            "or no leader is elected"
        )
        yield Finding(invalid("spec.strategy", sorted(by_strategy), detail))


def _version(candidate: LeaseCandidate) -> Version | None:
    try:
        return semantic_version.parse(candidate.spec.binary_version or "")
    except ValueError:
        return None


def _one_first_choice(candidates: list[LeaseCandidate]) -> Iterator[Finding]:
    before: dict[str, set[str]] = {}
    for candidate in candidates:
        preferences = [strategy or "" for strategy in candidate.spec.preferred_strategies or []]
        for strategy in preferences:
            before.setdefault(strategy, set())
        for preferred, other in pairwise(preferences):
            before[other].add(preferred)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = " before ".join(quote(strategy) for strategy in error.args[1])
        yield _in_preferences(before, f"live candidates must not prefer strategies in a cycle ({circle})")
        return
    roots = sorted(strategy for strategy, preferred in before.items() if not preferred)
    if len(roots) > 1:
        choices = " and ".join(quote(strategy) for strategy in roots)
        yield _in_preferences(before, f"live candidates must have one first choice together, not {choices}")


def _in_preferences(strategies: Iterable[str], problem: str) -> Finding:
    return Finding(invalid("spec.preferredStrategies", sorted(strategies), f"{problem}, or no leader is elected"))


RULES = (
    Rule(
        id=ID,
        check=candidates_agree_on_a_strategy,
        resources=CANDIDATES,
        operations=WRITES,
        standard=Mode.AUDIT,
        strict=Mode.AUDIT,
        source="kubernetes `pkg/controlplane/controller/leaderelection/election.go`, pickBestStrategy, "
        "of 1.31 and of 1.32.",
    ),
)
