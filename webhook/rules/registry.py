"""The rules, listed by hand, refused at start-up where two share an id or one has no text."""

from collections.abc import Iterable

from webhook.rules.rule import Rule


class BadRegistryError(Exception):
    """The list of rules contradicts itself; the message says how."""


def checked(rules: Iterable[Rule]) -> dict[str, Rule]:
    """The rules by id.

    Raises:
        BadRegistryError: two rules share an id, or one has no summary or no source.
    """
    by_id: dict[str, Rule] = {}
    for rule in rules:
        if rule.id in by_id:
            raise BadRegistryError(f"two rules are called {rule.id}")
        if not rule.summary or not rule.source:
            raise BadRegistryError(f"rule {rule.id} has no summary or no source")
        by_id[rule.id] = rule
    return by_id


RULES: dict[str, Rule] = checked(())
