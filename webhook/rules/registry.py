"""The rules, listed by hand; a list that contradicts itself is refused at start-up."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final

from webhook.api.request import Operation, Resource
from webhook.rules.change import Event
from webhook.rules.election import (
    acquire_time,
    candidates,
    coordinated,
    deletion,
    duration,
    holder_identity,
    release,
    renew_time,
    renewal_stamp,
    system_leases,
    takeover,
    transitions,
    unreadable_time,
)
from webhook.rules.parity import metadata, spec
from webhook.rules.rule import Rule


class BadRegistryError(Exception):
    """The list of rules contradicts itself; the message says how."""


def checked(rules: Iterable[Rule]) -> dict[str, Rule]:
    """The rules by id.

    Raises:
        BadRegistryError: two rules share an id, one has no summary or no source, or strict is weaker than standard.

    """
    by_id: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in by_id:
            raise BadRegistryError(f"two rules are called {rule.id}")
        if not rule.summary or not rule.source:
            raise BadRegistryError(f"rule {rule.id} has no summary or no source")
        if rule.strict < rule.standard:
            raise BadRegistryError(f"rule {rule.id} is weaker in strict than in standard")
        by_id[rule.id] = rule
    return by_id


TYPES: Final = metadata.TYPES
OBJECT_TYPES: Final = TYPES.id

Occasion = tuple[str, Operation, Event]


def by_occasion(rules: Iterable[Rule]) -> Mapping[Occasion, tuple[Rule, ...]]:
    """For each resource, operation and event the rules that are evaluated on it: a renewal needs few."""
    listed = tuple(rules)
    return {
        (resource.value, operation, event): tuple(
            rule
            for rule in listed
            if resource in rule.resources and operation in rule.operations and event in rule.events
        )
        for resource, operation, event in product(Resource, Operation, Event)
    }


RULES: dict[str, Rule] = checked(
    (
        *metadata.NAME_RULES,
        *metadata.RULES,
        *spec.RULES,
        *metadata.OPTION_RULES,
        *unreadable_time.RULES,
        *renewal_stamp.RULES,
        *takeover.RULES,
        *renew_time.RULES,
        *duration.RULES,
        *transitions.RULES,
        *acquire_time.RULES,
        *coordinated.RULES,
        *release.RULES,
        *holder_identity.RULES,
        *system_leases.RULES,
        *deletion.RULES,
        *candidates.RULES,
    )
)

OFFLINE_RULES: dict[str, Rule] = checked(candidates.OFFLINE_RULES)
"""Rules about a set of stored objects, which only reports evaluate: their check takes other arguments."""

RULES_BY_OCCASION: Mapping[Occasion, tuple[Rule, ...]] = by_occasion(RULES.values())

CHECKS_BY_OCCASION: Final = {
    occasion: tuple((rule.check, rule) for rule in rules) for occasion, rules in RULES_BY_OCCASION.items()
}
