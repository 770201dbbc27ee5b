"""Exemptions that name rules and operations: they silence these and nothing else, whatever they are combined with."""

from collections.abc import Iterable
from datetime import date
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.files import CREATE, DELETE, ENTRY, UPDATE, policy
from tests.recordings import Recording, recordings
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import FOREVER, RULE_IDS
from webhook.admission.rules import holders
from webhook.admission.rules.registry import EXEMPTIBLE, RULES
from webhook.admission.verdict import Verdict
from webhook.kubernetes.request import Operation, UserInfo
from webhook.kubernetes.review import decode

TAKEOVER, PING = "takeover-before-expiry", "ping-time-writer"
TODAY = 1_800_000_000_000_000
"""2027-01-15T08:00:00Z in microseconds since 1970."""
ANN = UserInfo("ann", ("ops", "system:authenticated"))


def find_exempt_rules(*exempt: dict[str, Any], operation: Operation = UPDATE, now: int = TODAY) -> frozenset[str]:
    """Return what `ann` of `ops` is exempt from on shop/checkout."""
    compiled = policy(exempt=[{**ENTRY, **entry} for entry in exempt])
    return compiled.find_exempt_rules(ANN, "shop", "checkout", operation, now)


@pytest.mark.parametrize(
    ("entry", "operation", "expected"),
    [
        pytest.param({}, UPDATE, EXEMPTIBLE, id="nothing named: all rules"),
        pytest.param({"rules": [PING]}, UPDATE, {PING}, id="a rule on any operation"),
        pytest.param({"operations": ["UPDATE"]}, UPDATE, EXEMPTIBLE, id="an operation: all rules"),
        pytest.param({"operations": ["CREATE"]}, UPDATE, set(), id="another operation"),
        pytest.param({"operations": ["CREATE", "DELETE"]}, DELETE, EXEMPTIBLE, id="operations are alternatives"),
        pytest.param({"rules": [PING], "operations": ["CREATE"]}, CREATE, {PING}, id="both fit"),
        pytest.param({"rules": [PING], "operations": ["CREATE"]}, UPDATE, set(), id="a rule on another operation"),
        pytest.param({"rules": [PING, PING, TAKEOVER]}, UPDATE, {PING, TAKEOVER}, id="a rule twice"),
    ],
)
def test_one_entry(entry: dict[str, Any], operation: Operation, expected: frozenset[str]) -> None:
    assert find_exempt_rules({"users": ["ann"], **entry}, operation=operation) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([{"rules": [PING]}, {"rules": [TAKEOVER]}], {PING, TAKEOVER}, id="of one place"),
        pytest.param([{"rules": [PING]}, {"rules": [TAKEOVER], "leases": ["c*"]}], {PING, TAKEOVER}, id="of two globs"),
        pytest.param([{"rules": [PING]}, {}], EXEMPTIBLE, id="of one rule, and of all"),
        pytest.param([{}, {"rules": [PING]}], EXEMPTIBLE, id="of all, and of one rule"),
        pytest.param([{"rules": [PING]}, {"operations": ["CREATE"]}], {PING}, id="rules of one, operations of another"),
        pytest.param(
            [{"rules": [PING]}, {"users": [], "groups": ["ops"], "rules": [TAKEOVER]}],
            {PING, TAKEOVER},
            id="of a user and of a group",
        ),
        pytest.param(
            [{"rules": [PING]}, {"users": [], "leases": ["checkout"], "rules": [TAKEOVER]}],
            {PING, TAKEOVER},
            id="of a user and of anybody",
        ),
        pytest.param([{"rules": [PING]}, {"users": ["bob"]}], {PING}, id="not of another user"),
        pytest.param([{"rules": [PING]}, {"leases": ["db"]}], {PING}, id="not of another lease"),
        pytest.param([{"rules": [PING]}, {"until": "2027-01-14"}], {PING}, id="not of one that has ended"),
        pytest.param([{"until": "2027-01-14"}, {"rules": [PING]}], {PING}, id="not of one that had ended before"),
        pytest.param(
            [{"rules": [PING], "until": "2027-01-14"}, {"rules": [PING], "operations": ["UPDATE"]}],
            {PING},
            id="ended for all operations and not for this one",
        ),
    ],
)
def test_entries_add_up_and_keep_apart(entries: list[dict[str, Any]], expected: frozenset[str]) -> None:
    assert find_exempt_rules(*({"users": ["ann"], **entry} for entry in entries)) == expected


def test_each_rule_keeps_its_own_end() -> None:
    entries = [
        {"users": ["ann"], "rules": [PING, TAKEOVER], "until": "2027-01-14"},
        {"users": ["ann"], "rules": [PING], "until": "2027-01-20"},
        {"users": ["ann"], "rules": [PING], "until": "2027-01-16"},
    ]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        assert find_exempt_rules(*(entries[index] for index in order)) == {PING}
        assert find_exempt_rules(*(entries[index] for index in order), now=TODAY + 6 * 86_400_000_000) == set()


def test_rules_that_nobody_is_exempt_from_are_never_silent() -> None:
    named = {rule.id for rule in RULES.values() if rule.parity or rule.never_exempt}
    assert set(RULE_IDS) - EXEMPTIBLE == named
    assert "time-unreadable" in named
    admin = UserInfo("admin", ("system:masters",))
    for operation in (CREATE, UPDATE, DELETE):
        assert policy().find_exempt_rules(admin, "shop", "checkout", operation, FOREVER - 1) == EXEMPTIBLE


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "users": st.lists(st.sampled_from(["ann", "bob"]), max_size=2),
            "groups": st.lists(st.sampled_from(["ops", "dev"]), max_size=2),
            "namespaces": st.lists(st.sampled_from(["shop", "s*", "*", "bank"]), max_size=2),
            "leases": st.lists(st.sampled_from(["checkout", "c*t", "?*", "db"]), max_size=2),
            "rules": st.lists(st.sampled_from(sorted(EXEMPTIBLE)[:4]), min_size=1, max_size=3),
            "operations": st.lists(st.sampled_from(["CREATE", "UPDATE", "DELETE"]), min_size=1, max_size=3),
            "until": st.sampled_from(["2027-01-14", "2027-01-15", "2027-01-16"]),
        },
    ).filter(lambda entry: any(entry.get(key) for key in ("users", "groups", "namespaces", "leases"))),
    max_size=6,
)


@given(
    ENTRIES,
    st.builds(UserInfo, st.sampled_from(["ann", "bob", ""]), st.sampled_from([(), ("ops",), ("ops", "dev")])),
    st.sampled_from(["shop", "bank"]),
    st.sampled_from(["checkout", "db"]),
    st.sampled_from([CREATE, UPDATE, DELETE]),
)
def test_what_is_silent_is_what_reading_each_entry_by_itself_says(
    entries: list[dict[str, Any]], user: UserInfo, namespace: str, name: str, operation: Operation
) -> None:
    compiled = policy(exempt=[{**ENTRY, **entry} for entry in entries])
    concerned = [entry for entry in entries if concerns(entry, user, namespace, name, operation)]
    expected = set(chain.from_iterable(entry.get("rules", EXEMPTIBLE) for entry in concerned))
    assert compiled.find_exempt_rules(user, namespace, name, operation, TODAY) == expected


def concerns(entry: dict[str, Any], user: UserInfo, namespace: str, name: str, operation: Operation) -> bool:
    requesters = entry.get("users", []) + entry.get("groups", [])
    return (
        (not requesters or user.username in entry.get("users", []) or bool({*user.groups} & {*entry.get("groups", [])}))
        and covers(entry.get("namespaces"), namespace)
        and covers(entry.get("leases"), name)
        and operation.value in entry.get("operations", [operation.value])
        and date.fromisoformat(entry.get("until", "9999-12-31")) >= date(2027, 1, 15)
    )


def covers(globs: list[str] | None, text: str) -> bool:
    return not globs or any(holders.matches(pattern, text) for pattern in globs)


STRICT = policy(preset="strict")


def found(verdict: Verdict) -> list[tuple[str, Any, str]]:
    return [(one.rule, one.mode, str(one.error)) for one in verdict.findings]


def verdict_on(recording: Recording, under: Policy) -> Verdict:
    return evaluate(decode(recording.body_without_exemption()), under, recording.received)


WITH_FINDINGS = [one for one in recordings() if verdict_on(one, STRICT).findings]


def subsets(rules: Iterable[str]) -> list[list[str]]:
    listed = sorted(rules)
    return [list(some) for size in range(1, len(listed) + 1) for some in combinations(listed, size)]


@pytest.mark.uncounted
@pytest.mark.parametrize("recording", [pytest.param(one, id=one.file) for one in WITH_FINDINGS])
def test_a_recorded_write_loses_the_findings_of_the_named_rules_and_keeps_the_others(recording: Recording) -> None:
    request = decode(recording.body_without_exemption())
    plain = found(verdict_on(recording, STRICT))
    exemptible = {rule for rule, *_ in plain if rule in EXEMPTIBLE}
    for rules in subsets(exemptible)[:64]:
        entry = {**ENTRY, "users": [request.user.username if request.user else ""], "rules": rules}
        expected = [one for one in plain if one[0] not in rules]
        assert found(verdict_on(recording, policy(preset="strict", exempt=[entry]))) == expected
        on_it = {**entry, "operations": [request.operation.value]}
        assert found(verdict_on(recording, policy(preset="strict", exempt=[on_it]))) == expected
        others = sorted({"CREATE", "UPDATE", "DELETE"} - {request.operation.value})
        for named in ({**entry, "operations": others}, {**ENTRY, "users": entry["users"], "operations": others}):
            assert found(verdict_on(recording, policy(preset="strict", exempt=[named]))) == plain


def test_the_recordings_show_many_rules_and_all_operations() -> None:
    requests = [decode(one.body) for one in WITH_FINDINGS]
    assert {request.operation for request in requests} == {CREATE, UPDATE, DELETE}
    assert len({rule for one in WITH_FINDINGS for rule, *_ in found(verdict_on(one, STRICT))} & EXEMPTIBLE) >= 15
