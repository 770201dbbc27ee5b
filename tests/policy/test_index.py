"""Finding the entries for one lease: what a scan of all would find, at a cost that their number does not change."""

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.files import ENTRY, UPDATE, policy
from webhook.admission.policy.model import MAX_ENTRIES, LeaseIndex, Policy
from webhook.admission.policy.schema import PolicyError
from webhook.admission.rules import holders
from webhook.kubernetes.request import UserInfo

PATTERNS = st.text("ab*?", max_size=5)
NAMES = st.text("ab", max_size=6)
MANY = 2_000
ANN = UserInfo("ann", ("ops", "system:authenticated"))


@given(st.lists(st.tuples(PATTERNS, PATTERNS), max_size=30), NAMES, NAMES)
def test_the_index_finds_what_a_scan_finds(entries: list[tuple[str, str]], namespace: str, name: str) -> None:
    index: LeaseIndex[int] = LeaseIndex()
    for number, (namespace_glob, lease_glob) in enumerate(entries):
        index.put([namespace_glob], [lease_glob], number)
    scanned = [n for n, (a, b) in enumerate(entries) if holders.matches(a, namespace) and holders.matches(b, name)]
    assert sorted(index.find(namespace, name)) == scanned


def test_as_many_globs_as_allowed_and_no_more() -> None:
    index: LeaseIndex[int] = LeaseIndex()
    for number in range(MAX_ENTRIES):
        index.put(["shop"], [f"*-{number}-*"], number)
    assert index.find("shop", "a-0-b") == [0]
    with pytest.raises(PolicyError):
        index.put(["shop"], ["*-x-*"], 0)
    index.put(["bank"], ["*-x-*"], 7)
    assert index.find("bank", "a-x-b") == [7]


def entry(kind: str, number: int) -> dict[str, Any]:
    """The entry of that number; all together use exact names, beginnings, ends and both."""
    namespace = f"team-{number:05}"
    lease = ("db", "db-*", "*-db", "db-*-main", "db-?")[number % 5]
    if kind == "bindings":
        return {"namespace": namespace, "lease": "db", "writers": [f"{namespace}/db"], "holder": ["${pod}_*"]}
    if kind == "overrides":
        where = {"namespaces": [namespace], "leases": [lease]} if number % 2 else {"leases": [f"{namespace}-db"]}
        return {**where, **narrowed(number), "rules": {"foreign-release": {"mode": "audit"}}}
    who: dict[str, Any] = ({"users": ["ann"]}, {"groups": ["ops"]}, {"users": [f"user-{number}"]}, {})[number % 4]
    rules = {"rules": ["foreign-release"]} if number % 4 == 3 else {}
    return {**ENTRY, **who, **narrowed(number), **rules, "namespaces": [namespace], "leases": [lease]}


def narrowed(number: int) -> dict[str, Any]:
    return {"operations": ["UPDATE", "DELETE"]} if number % 3 == 0 else {}


@cache
def made_of(kind: str, count: int) -> Policy:
    return policy(**{kind: [entry(kind, number) for number in range(count)]})


def calls(question: Callable[[], object]) -> int:
    """Return how many functions, of Python and of C, are called to answer."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(profile)
    try:
        question()
    finally:
        sys.setprofile(None)
    return count


LEASES = [("team-00003", "db-a-main"), ("team-00001", "db-7"), ("shop", "team-00002-x-db"), ("elsewhere", "checkout")]


@pytest.mark.uncounted
@pytest.mark.parametrize(("namespace", "name"), LEASES)
@pytest.mark.parametrize("kind", ["exempt", "overrides", "bindings"])
def test_two_thousand_entries_cost_what_twenty_cost(kind: str, namespace: str, name: str) -> None:
    few, many = made_of(kind, 20), made_of(kind, MANY)
    questions: list[Callable[[Policy], object]] = [
        lambda policy: policy.resolve(namespace, name, UPDATE),
        lambda policy: policy.find_exempt_rules(ANN, namespace, name, UPDATE, 0),
    ]
    for question in questions:
        assert question(many) == question(few)
        assert calls(partial(question, many)) == calls(partial(question, few))


def test_the_last_of_two_thousand_is_found() -> None:
    last = MANY - 1
    assert (f"team-{last:05}", "db") in made_of("bindings", MANY).bindings
    overridden = made_of("overrides", MANY).resolve(f"team-{last:05}", "db-x", UPDATE)
    assert overridden.modes["foreign-release"].word == "audit"
    anybody = UserInfo("anybody")
    assert made_of("exempt", MANY).find_exempt_rules(anybody, f"team-{last:05}", "db-x", UPDATE, 0) == {
        "foreign-release"
    }


def test_without_entries_a_lookup_is_one_call_and_one_comparison() -> None:
    plain = policy()
    assert calls(lambda: plain.resolve("shop", "checkout", UPDATE)) <= 5
