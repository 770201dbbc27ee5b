"""The checks that may find something in a write, by what they are evaluated on."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Final

from webhook.admission.rules.change import Conditions, Event
from webhook.admission.rules.rule import Check, Rule
from webhook.kubernetes.request import Operation, Resource

Occasion = tuple[str, Operation, Event]
NO_RULES: Final[frozenset[str]] = frozenset()


class Checks:
    """The checks of some rules, by what they are evaluated on."""

    def __init__(self, rules: Collection[Rule]) -> None:
        self._by_occasion: Mapping[Occasion, Sequence[Rule]] = {
            (resource.value, operation, event): [
                rule
                for rule in rules
                if resource in rule.resources and operation in rule.operations and event in rule.events
            ]
            for resource, operation, event in product(Resource, Operation, Event)
        }
        self._exemptible = frozenset(rule.id for rule in rules if rule.is_exemptible)
        # It has an entry for each set of conditions that a write has met, which are few, with exemptions from all and
        # from none. Of other sets of exempt rules a policy may have very many, of which a client chooses one by a name.
        self._checks: dict[tuple[str, Operation, Event, Conditions, frozenset[str]], Sequence[tuple[Check, Rule]]] = {}

    def find_rules(self, resource: str, operation: Operation, event: Event) -> Sequence[Rule]:
        """Return the rules for such a write, before their conditions are checked."""
        return self._by_occasion[resource, operation, event]

    def find_checks(
        self,
        resource: str,
        operation: Operation,
        event: Event,
        conditions: Conditions,
        exempt: frozenset[str] = NO_RULES,
    ) -> Sequence[tuple[Check, Rule]]:
        """Return the checks that may find something in a write that meets these conditions, with their rules.

        Those of the rules that the writer is exempt from are left out.
        """
        if exempt and exempt != self._exemptible:
            checks = self.find_checks(resource, operation, event, conditions)
            return tuple(one for one in checks if one[1].id not in exempt)
        key = resource, operation, event, conditions, exempt
        known = self._checks.get(key)
        if known is None:
            rules = self._by_occasion[resource, operation, event]
            known = self._checks[key] = tuple(
                (rule.check, rule)
                for rule in rules
                if (rule.only_if is None or conditions[rule.only_if]) and rule.id not in exempt
            )
        return known
