"""Exemptions: what was denied is allowed under them, one thing more is not, and no attack is exempt."""

from datetime import date
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import NOW, Tweak, drop, make_candidate, make_lease, make_user, put
from tests.inputs.events import make_event
from tests.suggestions.seen import annotated, audited, item, reviewed
from webhook.api.request import Operation, UserInfo
from webhook.evaluate import evaluate
from webhook.inputs.items import Item, LogEnd, Observation
from webhook.policy.parse import parse
from webhook.policy.schema import EXEMPTIBLE, OPERATIONS
from webhook.rules.registry import RULES
from webhook.suggestions import evidence
from webhook.suggestions.evidence import Writes
from webhook.suggestions.exemptions import exemption_policy

UNTIL = date(2026, 1, 31)
STRICT = "apiVersion: lease-webhook/v1\npreset: strict\n"
BACKUP = "system:serviceaccount:velero:velero"
HARMLESS = {
    "acquire-time-changed",
    "candidate-renew-time-backwards",
    "holder-identity-mismatch",
    "holder-identity-shape",
    "lease-created-empty",
    "renew-time-backwards",
    "transitions-decrease",
    "transitions-mismatch",
}
"""What only the writer's own lease suffers from."""


def suggested(*items: Item, policy: str = STRICT) -> str:
    seen = Writes(NOW, parse(policy))
    for one in items:
        seen.observe(one)
    return exemption_policy(seen, UNTIL, "backup team")


def comments(text: str) -> list[str]:
    return [line.partition("# ")[2] for line in text.splitlines() if line.startswith("# ")]


def entries(text: str) -> list[dict[str, object]]:
    document = parse(text).document
    return [
        {
            "who": [*one.users, *one.service_accounts],
            "where": [f"{namespace}/{name}" for namespace in one.namespaces for name in one.leases],
            "rules": one.rules,
            "operations": one.operations,
        }
        for one in document.exempt
    ]


def by_backup() -> Tweak:
    return put("request.userInfo", make_user(put("username", BACKUP), put("extra", {})))


def restored(*tweaks: Tweak, name: str = "checkout-0") -> Observation:
    """A backup tool creates a candidate with its pingTime."""
    candidate = make_candidate(put("metadata.name", name), put("spec.pingTime", "2025-11-20T12:00:00.000000Z"))
    return reviewed(by_backup(), *tweaks, new=candidate)


def test_every_rule_that_can_be_exempt_is_known_for_an_attack_or_as_harmless() -> None:
    known = [*(rule.id for rule in RULES.values() if rule.texts.attack), *HARMLESS]
    assert sorted(known) == sorted(EXEMPTIBLE)


def test_a_restored_candidate_is_exempt_as_narrowly_as_it_was_seen() -> None:
    text = suggested(restored(), restored(name="checkout-1"))
    assert entries(text) == [
        {
            "who": ["velero/velero"],
            "where": ["shop/checkout-0", "shop/checkout-1"],
            "rules": ["ping-time-writer"],
            "operations": ["CREATE"],
        }
    ]
    (entry,) = parse(text).document.exempt
    assert (entry.owner, entry.until) == ("backup team", UNTIL)
    assert entry.reason == "suggested from 2 denied writes at 2025-11-20T12:00:00Z, in reviews"


def test_a_log_says_itself_what_was_denied_and_what_would_be() -> None:
    denied = audited("create", annotated(event="create", rules="ping-time-writer=deny"), user=BACKUP, code=403)
    would = audited("create", annotated(event="create", rules="x=warn", would_deny="strategy-writer"), user=BACKUP)
    assert entries(suggested(denied, would)) == [
        {
            "who": ["velero/velero"],
            "where": ["shop/checkout"],
            "rules": ["ping-time-writer", "strategy-writer"],
            "operations": ["CREATE"],
        }
    ]


@pytest.mark.parametrize(
    ("verb", "event", "operation"),
    [
        ("update", "edit", "UPDATE"),
        ("patch", "edit", "UPDATE"),
        ("patch", "create", "CREATE"),
        ("delete", "delete", "DELETE"),
    ],
)
def test_the_operation_is_that_of_the_review(verb: str, event: str, operation: str) -> None:
    seen = audited(verb, annotated(event=event, rules="transitions-decrease=deny"), user="kim")
    assert [one["operations"] for one in entries(suggested(seen))] == [[operation]]


def test_rules_and_operations_are_not_mixed() -> None:
    created = audited("create", annotated(event="create", rules="holder-identity-shape=deny"), user="kim")
    edited = audited("update", annotated(event="edit", rules="transitions-decrease=deny"), user="kim")
    elsewhere = audited(
        "update", put("objectRef.namespace", "ops"), annotated(rules="transitions-decrease=deny"), user="kim"
    )
    assert [
        (one["where"], one["rules"], one["operations"]) for one in entries(suggested(created, edited, elsewhere))
    ] == [
        (["ops/checkout"], ["transitions-decrease"], ["UPDATE"]),
        (["shop/checkout"], ["holder-identity-shape"], ["CREATE"]),
        (["shop/checkout"], ["transitions-decrease"], ["UPDATE"]),
    ]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        pytest.param(
            reviewed(new=make_lease(put("spec.holderIdentity", "mallory")), old=make_lease()),
            "shop/checkout (takeover-before-expiry): looks like an attack: took a lease that its holder still had",
            id="a steal",
        ),
        pytest.param(
            audited("update", annotated(event="steal", rules="holder-identity-shape=deny"), code=403),
            "looks like an attack: took a lease that its holder still had",
            id="a steal that another rule denied",
        ),
        pytest.param(
            reviewed(new=make_lease(put("spec.leaseDurationSeconds", 2147483647))),
            "looks like an attack: set a duration after which no one else could take the lease",
            id="a value that freezes",
        ),
        pytest.param(
            reviewed(new=make_lease(put("spec.preferredHolder", "m"), put("spec.strategy", "a.b/c")), old=make_lease()),
            "looks like an attack: named the next leader; moved a lease to the coordinated election",
            id="an election that is forced on a lease",
        ),
        pytest.param(
            reviewed(new=make_lease(put("spec.leaseDurationSeconds", 0))),
            "no exemption applies to lease-duration: correct the client",
            id="a field rule",
        ),
        pytest.param(
            audited("update", annotated(rules="transitions-decrease=deny"), user="k*m"),
            "k*m on UPDATE of shop/checkout (transitions-decrease): this user name cannot be expressed in a policy",
            id="a user with a wildcard",
        ),
        pytest.param(
            audited("update", annotated(rules="transitions-decrease=deny"), name="*"),
            "no object can have this name",
            id="a lease with a wildcard",
        ),
    ],
)
def test_what_is_not_exempt_is_said(seen: Item, why: str) -> None:
    text = suggested(seen)
    assert entries(text) == []
    assert any(why in one for one in comments(text))


def test_who_attacks_is_exempt_from_nothing_in_that_namespace() -> None:
    stolen = audited("update", annotated(event="steal", rules="takeover-before-expiry=warn"), user=BACKUP)
    text = suggested(restored(), stolen)
    assert entries(text) == []
    assert any(
        "CREATE of shop/checkout-0 (ping-time-writer): what else it did in this namespace looks like an attack" in one
        for one in comments(text)
    )


def test_each_writer_has_entries_of_its_own() -> None:
    other = "system:serviceaccount:velero:other"
    by_other = put("request.userInfo", make_user(put("username", other), put("extra", {})))
    text = suggested(restored(), restored(by_other, name="checkout-1"))
    assert [(entry["who"], entry["where"]) for entry in entries(text)] == [
        (["velero/other"], ["shop/checkout-1"]),
        (["velero/velero"], ["shop/checkout-0"]),
    ]


def test_what_is_allowed_needs_no_exemption() -> None:
    text = suggested(reviewed(), audited("update", annotated(event="edit", rules="a=warn")))
    assert text.startswith("apiVersion: lease-webhook/v1\nexempt: []\n# not seen: ")


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(audited("update"), id="a log without the webhook"),
        pytest.param(item(make_lease()), id="a list"),
        pytest.param(item(make_event(drop("user"), put("verb", "get"))), id="no user"),
        pytest.param(LogEnd(NOW), id="the end of a log"),
    ],
)
def test_an_input_without_verdicts_gives_nothing(seen: Item) -> None:
    assert suggested(seen) == ""


def test_each_user_gets_an_exemption_of_its_own_in_one_pass() -> None:
    others = [restored(put("request.userInfo.username", f"user-{number}"), name=f"b-{number}") for number in range(3)]
    text = suggested(others[1], restored(), others[0], others[2], others[1])
    assert [one["who"] for one in entries(text)] == [["velero/velero"], ["user-0"], ["user-1"], ["user-2"]]
    assert [one["where"] for one in entries(text)][2] == ["shop/b-1"]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MAX_WRITES", 1)
    text = suggested(restored(), restored(), restored(name="b"))
    assert [one["where"] for one in entries(text)] == [["shop/checkout-0"]]
    assert "not seen: 1 writes beyond 1 different ones" in comments(text)


def allows(text: str, seen: Observation, now: int = NOW) -> bool:
    """Return whether the suggestion, merged into the policy, allows a write."""
    assert seen.request is not None
    policy = parse(text.replace("apiVersion: lease-webhook/v1\n", STRICT))
    return evaluate(seen.request, policy, now).allowed


def test_the_write_that_was_denied_is_allowed_and_one_thing_more_is_not() -> None:
    text = suggested(restored())
    assert not allows("apiVersion: lease-webhook/v1\n", restored())
    assert allows(text, restored())
    assert not allows(text, restored(name="checkout-1"))
    assert not allows(text, restored(put("request.userInfo.username", "kim")))
    assert not allows(text, restored(put("request.object.spec.renewTime", "2036-01-01T00:00:00.000000Z")))
    after = NOW + 73 * 86_400_000_000
    assert not allows(text, restored(), after)


ACTS = st.tuples(
    st.sampled_from(["kim", "on", "a b", BACKUP]),
    st.sampled_from(["shop", "ops"]),
    st.sampled_from(["x", "y.z", "007"]),
    st.sampled_from(["create", "update", "delete"]),
    st.frozensets(st.sampled_from(sorted(HARMLESS)), min_size=1, max_size=3),
)
Act = tuple[str, str, str, str, frozenset[str]]


@settings(max_examples=50)
@given(st.lists(ACTS, max_size=8))
def test_exactly_what_was_denied_is_exempt(acts: list[Act]) -> None:
    denied: dict[tuple[str, str, str, Operation], frozenset[str]] = {}
    seen = []
    for user, namespace, name, verb, rules in acts:
        key = (user, namespace, name, Operation(verb.upper()))
        denied[key] = denied.get(key, frozenset()) | rules
        annotation = annotated(event=verb, rules=",".join(f"{rule}=deny" for rule in sorted(rules)))
        seen.append(audited(verb, put("objectRef.namespace", namespace), annotation, name=name, user=user, code=403))
    policy = parse(suggested(*seen) or STRICT)
    for key in product(["kim", "on", "a b", BACKUP, "mallory"], ["shop", "ops"], ["x", "y.z", "007"], OPERATIONS):
        assert policy.exempt_rules(UserInfo(key[0]), *key[1:], NOW) == denied.get(key, frozenset())


@settings(max_examples=50)
@given(st.text(), st.text(), st.text(), st.text())
def test_any_names_give_a_policy(user: str, namespace: str, name: str, annotation: str) -> None:
    where = [put("objectRef.namespace", namespace), put("objectRef.name", name), put("user.username", user)]
    texts = annotated(event=annotation, rules=f"transitions-decrease=deny,{annotation}", would_deny=annotation)
    parse(suggested(reviewed(), audited("update", *where, texts)))
