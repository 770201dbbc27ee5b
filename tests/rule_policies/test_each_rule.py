"""The CEL of each rule speaks where the rule does, and is silent where the rule is.

It is compared on the writes that the tests of the rule evaluate, and on what stands beside those of which the rule
speaks. Where the two are only compared, a CEL that is never true agrees with the engine on all that its rule allows, so
one that denies is asked for. `make model` shows that these writes suffice: without any clause of the CEL, it would say
something else of one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.factories import NOW, STAMP_ENTRY, Document, to_bytes
from tests.rule_policies import compared
from tests.rule_policies.clauses import drop_each_alternative, drop_each_clause
from tests.rule_policies.in_process import Broken, ExportedPolicies
from tests.rule_policies.neighbors import STAMP_SUFFIX, list_neighbors
from tests.rules.findings import SECOND
from tests.rules.modules import list_evaluated_reviews, modules
from tests.rules.pinned_writes import pinned_writes
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.admission.rules.rule import Rule
from webhook.api_server import rule_policies
from webhook.kubernetes.times import parse_stamp

SPEAKING: Final = [rule for rule in RULES.values() if rule.in_cel.is_said]
DENYING: Final = "".join(
    [
        "apiVersion: lease-webhook/v1\npreset: strict\nrules:\n",
        *(f"  {rule.id}: {{mode: deny}}\n" for rule in SPEAKING),
    ]
)
"""With the mode `deny` a finding has the mode of its tier."""
BINDINGS: Final = """bindings:
- {namespace: shop, lease: checkout, writers: [shop/checkout], holder: ["${pod}_*", "manual-?"]}
"""


@cache
def policies() -> list[tuple[Policy, ExportedPolicies]]:
    """Without bindings, and with one."""
    return [(policy, ExportedPolicies(policy)) for policy in (parse(DENYING), parse(DENYING + BINDINGS))]


def cases() -> Iterator[Any]:
    for rule in SPEAKING:
        if rule.in_cel.broken:
            yield pytest.param(rule.id, Mode.DENY, id=rule.id)
        if rule.in_cel.warned:
            yield pytest.param(rule.id, Mode.WARN, id=f"{rule.id}, warned")


def texts_of(rule: str) -> Iterator[tuple[str, str]]:
    """Yield what the engine and the policy say of the writes whose wording is pinned, if both say something."""
    for name, review in pinned_writes():
        body, request = to_bytes(review), review["request"]
        for policy, exported in policies() if name == rule and compared.is_sent(request, body) else ():
            verdict = compared.verdict_of(body, policy, NOW + 4 * SECOND)
            errors = {one.mode.word: str(one.error) for one in verdict.findings if one.rule == rule and one.mode}
            broken = {one.mode: one.text for one in exported.broken(request) if one.rule == rule}
            yield from ((errors[mode], broken[mode]) for mode in errors.keys() & broken.keys())


@pytest.mark.parametrize("rule", [rule.id for rule in SPEAKING])
def test_policy_and_engine_say_the_same(rule: str) -> None:
    texts = [(error, text) for error, text in texts_of(rule) if "(a name that cannot be shown)" not in text]
    assert texts
    differs = find_text_difference(rule)
    for error, text in texts:
        said, _, sender = text.rpartition(" (lease webhook")
        assert sender
        assert (re.sub(differs, "", said) == re.sub(differs, "", error)) if differs else (said == error)
        assert differs is None or RULES[rule].in_cel.lacks or said == error, "`lacks` says what a policy does not say"


def find_text_difference(rule: str) -> str | None:
    found = [getattr(module, "TEXT_DIFFERS_IN_CEL", {}).get(rule) for module in modules()]
    return next((one for one in found if one), None)


@pytest.mark.parametrize(("rule", "tier"), [*cases()])
def test_policy_and_engine_speak_of_the_same_write(rule: str, tier: Mode) -> None:
    answers = [
        (
            (tier.word, rule) in compared.expected(compared.verdict_of(body, policy, NOW + 4 * SECOND), request),
            any((one.mode, one.rule) == (tier.word, rule) for one in exported.broken(request)),
        )
        for name, review in pinned_writes()
        for body, request in [(to_bytes(review), review["request"])]
        if name == rule and compared.is_sent(request, body)
        for policy, exported in policies()
    ]
    assert (True, True) in answers, f"(engine, policy) speak: {sorted(set(answers))}"


STAMPS: Final = f"stamps: [{{suffix: {STAMP_SUFFIX}, namespaces: [shop]}}]\n"
UNNOTICED: Final[dict[str, set[str]]] = {
    "transitions-decrease": {"broken 1"},
    "acquire-time-changed": {"acquireMoved 1", "broken 1"},
    "apiserver-lease-writer": {"broken 3"},
    "candidate-across-namespaces": {"broken 2"},
    "candidate-lease-name-format": {"broken 1", "broken 3", "broken 5"},
    "candidate-preferred-strategies": {"broken 1", "broken 2"},
    "candidate-renew-time-backwards": {"broken 2"},
    "candidate-strategies-unique": {"repeated 1", "repeated 2"},
    "duration-shortened": {"broken 2", "cut 1", "isCut 3", "warned 1", "warned 2"},
    "foreign-release": {"broken 3", "broken 5", "namesPod 2", "oldRests 1"},
    "foreign-release-across-namespaces": {"broken 3"},
    "holder-identity-mismatch": {"broken 3", "rests 1"},
    "holder-identity-shape": {"broken 1", "broken 2", "warned 1", "warned 2"},
    "identity-binding": {
        "broken 10",
        "broken 12",
        "fits 1",
        "fits 2",
        "isCheckable 2",
        "isCheckable 3",
        "isCheckable 4",
        "warned 1",
        "warned 4",
        "warned 6",
    },
    "lease-without-stamps": {"broken 1", "broken 2", "broken 3", "broken 5"},
    "owner-reference-added": {"broken 4", "warned 2", "warned 5"},
    "owner-reference-removed": {"broken 2", "removed 1", "removed 2", "removed 3", "removed 4"},
    "renew-time-backwards": {"broken 1", "broken 3"},
    "renew-time-in-future": {"warned 3", "warned 4"},
    "transitions-jump": {"warned 2"},
}
"""Clauses that no write here needs: another clause or the occasion implies them, they bound a cost, or it is
missing: a strict xfail, which fails once it is noticed."""
OTHER_NUMBER: Final = 10
"""For every number of a rule: usual values of fields are on both sides of it."""
PINNED: Final = "a write whose wording is pinned"
MOST_NEIGHBORS: Final = 4
"""The number of writes of a rule whose neighbors are compared."""


@cache
def compared_writes(rule: str) -> Sequence[tuple[str, bytes, Document]]:
    """Return writes that an API server may send, each once: what it is, its body and its request."""
    pinned = [review for name, review in pinned_writes() if name == rule]
    found: dict[bytes, tuple[str, Document]] = {}
    for name, review in [
        *((PINNED, one) for one in pinned),
        *(("evaluated by its tests", one) for one in list_evaluated_reviews(rule)),
        *(neighbor for one in pinned[:MOST_NEIGHBORS] for neighbor in list_neighbors(one)),
    ]:
        found.setdefault(to_bytes(review), (name, review["request"]))
    return [(name, body, request) for body, (name, request) in found.items() if compared.is_sent(request, body)]


@cache
def policies_of(rule: str) -> Sequence[Policy]:
    """Return policies in which this rule alone denies: alone, with a binding, with stamps, and with other numbers."""
    modes = "".join(f"  {one.id}: {{mode: {'deny' if one.id == rule else 'off'}}}\n" for one in SPEAKING)
    text = f"apiVersion: lease-webhook/v1\npreset: strict\nrules:\n{modes}"
    # A number that is off by default is evaluated with this one.
    numbers = "".join(f", {name}: {OTHER_NUMBER}" for name in RULES[rule].default_limits)
    with_numbers = (
        [text.replace(f"  {rule}: {{mode: deny}}\n", f"  {rule}: {{mode: deny{numbers}}}\n")] if numbers else []
    )
    return [parse(one) for one in (text, text + BINDINGS, text + STAMPS, *with_numbers)]


@cache
def find_wanted(rule: str) -> Sequence[tuple[str, int, Document, compared.Found]]:
    """Return each write, by which of the policies, and what must be found of it, but for those refused before."""
    return [
        (name, number, request, wanted)
        for number, policy in enumerate(policies_of(rule))
        for name, body, request in compared_writes(rule)
        if (wanted := find_by_engine(rule, body, policy, request)) is not None
    ]


def find_in_cel(rule: Rule, about: RuleInCel, only: str = "") -> Iterator[frozenset[Broken] | None]:
    """Yield what a rule finds of each of these writes, if its CEL were this; None where that errs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_policies, "RULES", {**RULES, rule.id: replace(rule, in_cel=about)})
        exported = [ExportedPolicies(policy) for policy in policies_of(rule.id)]
    for name, number, request, _ in find_wanted(rule.id):
        if only not in {"", name}:
            continue
        try:
            broken = exported[number].broken(request)
            yield frozenset(one for one in broken if one.rule == rule.id)
        except ValueError:
            yield None


def list_differences(rule: Rule, about: RuleInCel) -> Iterator[tuple[object, ...]]:
    """Yield the writes of which the engine and the CEL say something else."""
    for (name, _, request, wanted), said in zip(find_wanted(rule.id), find_in_cel(rule, about), strict=False):
        seen = None if said is None else compared.found({(one.mode, one.rule) for one in said}, request)
        if wanted != seen:
            yield name, "engine", wanted, "policy", seen, request


@pytest.mark.slow
@pytest.mark.parametrize("rule", [rule.id for rule in SPEAKING])
def test_policy_and_engine_agree_on_the_writes_of_the_tests_and_beside_them(rule: str) -> None:
    hint = "the check of the rule and its `in_cel` say something else of these; what CEL cannot say: WHERE_CEL_DIFFERS"
    assert [*list_differences(RULES[rule], RULES[rule].in_cel)] == [], hint


@pytest.mark.parametrize("rule", [rule.id for rule in SPEAKING if not rule.parity])
def test_the_tests_of_a_rule_evaluate_reviews_that_are_compared(rule: str) -> None:
    hint = "its tests evaluate no review by `said` or `findings` of tests/rules/findings.py, so its CEL is not compared"
    assert "evaluated by its tests" in {name for name, *_ in compared_writes(rule)}, hint


def find_by_engine(rule: str, body: bytes, policy: Policy, request: Document) -> compared.Found | None:
    """Return what a policy must find of a write, None of one that the API server or the engine refuses to read."""
    verdict = compared.verdict_of(body, policy, find_clock(request))
    if verdict.code == HTTPStatus.BAD_REQUEST or any(one.rule not in RULES for one in verdict.findings):
        return None
    findings = tuple(one for one in verdict.findings if one.rule == rule)
    return compared.expected(replace(verdict, findings=findings), request)


def find_clock(request: Document) -> int:
    """Return when a write is evaluated: when the API server has just stamped it."""
    entries = ((request.get("object") or {}).get("metadata") or {}).get("managedFields") or ()
    stamps = [parse_stamp(entry.get("time")) for entry in entries if not is_constant_entry(entry)]
    return max((one for one in stamps if one is not None), default=NOW)


def is_constant_entry(entry: Document) -> bool:
    return bool(entry.get("manager") == STAMP_ENTRY["manager"])


def drop_from_each(drop: Callable[[str], Iterator[tuple[str, str]]], what: str = "") -> Iterator[Any]:
    """Yield each part of the CEL of each rule, as `drop` finds it in a text, and the CEL without it."""
    for rule in SPEAKING:
        about = rule.in_cel
        texts = {"broken": about.broken, "warned": about.warned, **about.variables}
        for name, text in texts.items():
            for number, (part, without) in enumerate(drop(text)):
                own = {"variables": {**about.variables, name: without}} if name in about.variables else {name: without}
                place = f"{name} {what}{number + 1}"
                marks = [pytest.mark.xfail(strict=True)] if place in UNNOTICED.get(rule.id, ()) else []
                yield pytest.param(rule, part, replace(about, **own), id=f"{rule.id}, {place}", marks=marks)


@pytest.mark.deep
@pytest.mark.parametrize(("rule", "clause", "without"), [*drop_from_each(drop_each_clause)])
def test_a_clause_of_the_cel_that_is_dropped_is_noticed(rule: Rule, clause: str, without: RuleInCel) -> None:
    is_noticed = any(True for _ in list_differences(rule, without)) or is_text_other(rule, without)
    hint = (
        f"no write of the tests needs {clause}: evaluate one in the rule's tests, or add it to WRITES_IT_ALLOWS there; "
        f"if numbers decide it, one at their defaults, or at {OTHER_NUMBER} (`policies_of`)"
    )
    assert is_noticed, hint


@pytest.mark.parametrize(("rule", "alternative", "without"), [*drop_from_each(drop_each_alternative, "alternative ")])
def test_an_alternative_of_a_regular_expression_that_is_dropped_is_noticed(
    rule: Rule, alternative: str, without: RuleInCel
) -> None:
    hint = f"no write of the tests needs {alternative}: evaluate one in the rule's tests, or add it to WRITES_IT_ALLOWS"
    assert any(True for _ in list_differences(rule, without)), hint


def test_each_alternative_is_dropped() -> None:
    text = r"""h.matches('^\p{Zs}|(a|b)c|[\p{Cf}\d]$') && r.matches("^[-.]+[0-9a-z]")"""
    assert [alternative for alternative, _ in drop_each_alternative(text)] == [
        "a",
        "b",
        r"\p{Cf}",
        r"\d",
        r"^\p{Zs}",
        "(a|b)c",
        r"[\p{Cf}\d]$",
    ]
    assert text.replace(r"^\p{Zs}|", "") in {without for _, without in drop_each_alternative(text)}


def is_text_other(rule: Rule, about: RuleInCel) -> bool:
    """Return whether a CEL says something else of a write whose wording is pinned."""
    return [*find_in_cel(rule, rule.in_cel, PINNED)] != [*find_in_cel(rule, about, PINNED)]
