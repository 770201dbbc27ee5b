"""Bindings: all that was seen is allowed under them, one thing more is denied."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import KEEPER, NOW, Document, Tweak, drop, make_entry, make_lease, make_user, put
from tests.inputs.events import make_event, watched
from tests.suggestions.seen import annotated, audited, item, reviewed
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import Item, LogEnd, Observation
from webhook.analysis.suggestions import bindings
from webhook.analysis.suggestions.bindings import AllWrites, make_binding_policy

LONG_AGO = "2025-11-20T10:00:00Z"
INTRUDER = "system:serviceaccount:other:intruder"
POD = "authentication.kubernetes.io/pod-name"
NO_WRITER = "no binding for shop/checkout: no writer was seen; add the pods to a list, or add an audit log"


def suggested(*items: Item, only: tuple[str, str] | None = None) -> str:
    seen = AllWrites(NOW)
    for record in items:
        seen.observe(record)
    return make_binding_policy(seen, only)


def bound(text: str) -> dict[tuple[str, str], Binding]:
    return dict(parse(text).bindings)


def only(text: str) -> Binding:
    (binding,) = bound(text).values()
    return binding


def comments(text: str) -> list[str]:
    return [line.partition("# ")[2] for line in text.splitlines() if line.startswith("# ")]


def expired_lease(*tweaks: Tweak) -> Document:
    owned = make_entry("holderIdentity", "renewTime", "leaseDurationSeconds", time=LONG_AGO)
    return make_lease(
        put("metadata.managedFields", [owned]), put("spec.renewTime", "2025-11-20T10:00:00.000000Z"), *tweaks
    )


def written(user: str, pod: str, holder: str | None, *tweaks: Tweak) -> Observation:
    """A takeover of an expired lease."""
    extra = {POD: [pod]} if pod else {}
    who = put("request.userInfo", {"username": user, "groups": ["system:authenticated"], "extra": extra})
    new = make_lease(put("spec.holderIdentity", holder), put("spec.leaseTransitions", 6))
    return reviewed(who, *tweaks, new=new, old=expired_lease(put("spec.holderIdentity", "gone")))


def pod(name: str, account: str) -> Item:
    metadata = {"name": name, "namespace": "shop"}
    return item({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"serviceAccountName": account}})


def denied(policy: Policy, seen: Observation) -> bool:
    assert seen.request is not None
    verdict = evaluate(seen.request, policy, seen.at or NOW)
    return any(one.rule == "identity-binding" and one.mode is Mode.DENY for one in verdict.findings)


def test_an_elector_is_bound_by_its_pod() -> None:
    text = suggested(reviewed(), written(KEEPER, "checkout-b", "checkout-b_2"))
    assert bound(text) == {("shop", "checkout"): Binding(frozenset({("shop", "checkout")}), frozenset(), ("${pod}_*",))}
    assert "  - shop/checkout  # 2 writes at 2025-11-20T12:00:00Z\n" in text
    assert '  holder: ["${pod}_*"]  # 2 seen: checkout-6d5f9c-x2x8p_1f0e, checkout-b_2\n' in text
    assert "not seen of shop/checkout: who deletes it" in comments(text)


def test_a_person_and_a_deletion_are_bound_as_well() -> None:
    kim = [put("request.userInfo.username", "kim"), put("request.userInfo.extra", {})]
    text = suggested(reviewed(), reviewed(*kim, old=expired_lease()))
    assert only(text).users == {"kim"}
    assert not any("who deletes it" in one for one in comments(text))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(reviewed(put("request.options.dryRun", ["All"])), id="a dry run"),
        pytest.param(audited("get"), id="a read"),
        pytest.param(audited("list"), id="a list"),
        pytest.param(LogEnd(NOW), id="the end of a log"),
        pytest.param(audited("update", put("objectRef.resource", "leasecandidates")), id="a candidate"),
        pytest.param(audited("update", name="other"), id="another lease than the chosen one"),
        pytest.param(audited("update", code=403), id="a write that was refused"),
        pytest.param(audited("update", put("objectRef.name", "a b")), id="a name that no lease can have"),
        pytest.param(audited("update", put("objectRef.namespace", "a.b")), id="a namespace that cannot exist"),
    ],
)
def test_what_says_nothing_of_a_binding(seen: Item) -> None:
    assert suggested(seen, only=("shop", "checkout")) == ""


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            reviewed(new=make_lease(put("metadata.labels", {"a": "b"})), old=make_lease()), id="an edit of labels"
        ),
        pytest.param(
            reviewed(
                put("request.userInfo.username", "system:serviceaccount:kube-system:generic-garbage-collector"),
                old=make_lease(),
            ),
            id="a deletion by the garbage collector",
        ),
    ],
)
def test_what_a_binding_allows_to_anyone_makes_no_writer(seen: Item) -> None:
    text = suggested(seen)
    assert bound(text) == {}
    assert NO_WRITER in comments(text)


def test_an_edit_of_labels_is_known_by_the_state_before_in_a_log() -> None:
    kim = put("user.username", "kim")
    events = [item(make_event()), item(make_event(kim, put("responseObject.metadata.labels", {"a": "b"})))]
    assert only(suggested(*events)).users == frozenset()
    gone = item(make_event(put("verb", "delete"), drop("responseObject")))
    assert only(suggested(events[0], gone, events[1])).users == {"kim"}


@pytest.mark.parametrize("writer", [("system:apiserver", []), ("admin", ["system:masters"])], ids=str)
def test_writers_to_whom_no_binding_applies_are_left_out(writer: tuple[str, list[str]]) -> None:
    who = [put("user.username", writer[0]), put("user.groups", writer[1])]
    text = suggested(item(make_event(*who)))
    assert bound(text) == {}
    assert NO_WRITER in comments(text)


def test_a_log_without_holders_binds_the_writer_only() -> None:
    text = suggested(audited("update"))
    assert only(text) == Binding(frozenset({("shop", "checkout")}), frozenset(), ("*",))
    assert "# no holder was seen\n" in text


def test_a_list_beside_a_log_shows_the_holder() -> None:
    assert only(suggested(audited("update"), item(make_lease()))).holders == ("${pod}_*",)
    # A holder of whom no pod is known stays as it is.
    other = item(make_lease(put("spec.holderIdentity", "node-1")))
    assert only(suggested(audited("update"), other)).holders == ("node-1",)


@pytest.mark.parametrize("seen", [item(make_lease()), item(watched(make_lease()))], ids=["a list", "a watch"])
def test_of_an_unknown_writer_the_pod_names_the_service_account(seen: Item) -> None:
    text = suggested(pod("checkout-6d5f9c-x2x8p", "checkout"), pod("mail-0", "mail"), seen)
    assert only(text) == Binding(frozenset({("shop", "checkout")}), frozenset(), ("${pod}_*",))
    assert "  - shop/checkout  # of pod checkout-6d5f9c-x2x8p, which the holder names; no write of it was seen" in text
    alone = suggested(seen)
    assert bound(alone) == {}
    assert NO_WRITER in comments(alone)
    assert bound(suggested(pod("checkout-6d5f9c-x2x8p", "a b"), seen)) == {}


def test_who_comes_by_an_attack_is_no_writer() -> None:
    stolen = reviewed(
        put("request.userInfo", make_user(put("username", INTRUDER), put("extra", {}))),
        new=make_lease(put("spec.holderIdentity", "mallory")),
        old=make_lease(),
    )
    text = suggested(reviewed(), stolen, item(make_lease(put("spec.holderIdentity", "mallory"))))
    assert only(text) == Binding(frozenset({("shop", "checkout")}), frozenset(), ("${pod}_*",))
    assert any(
        one.startswith("left out: other/intruder on shop/checkout: looks like an attack: took a lease that its holder")
        for one in comments(text)
    )
    assert "no binding for shop/checkout: every writer is left out" in comments(suggested(stolen))


def test_an_attacker_writes_no_other_lease_of_the_namespace() -> None:
    stolen = audited("update", annotated(rules="takeover-before-expiry=warn"), user=INTRUDER)
    mine = audited("create", name="mine", user=INTRUDER)
    text = suggested(audited("update", user=INTRUDER), stolen, mine)
    assert bound(text) == {}
    assert "left out: other/intruder on shop/mine: what else it did in this namespace looks like an attack" in comments(
        text
    )


def test_a_writer_of_old_who_attacks_is_bound_with_a_remark() -> None:
    stolen = audited("update", annotated(rules="takeover-before-expiry=warn"))
    text = suggested(audited("update"), stolen)
    assert only(text).service_accounts == {("shop", "checkout")}
    assert any(
        one.startswith("look at shop/checkout on shop/checkout, which is a writer: took") for one in comments(text)
    )


def test_a_watch_shows_who_took_the_lease() -> None:
    held = make_lease(put("metadata.resourceVersion", "1"))
    owned = make_entry("holderIdentity", "renewTime", "leaseDurationSeconds", time="2025-11-20T12:00:02Z")
    taken = make_lease(
        put("spec.holderIdentity", "mallory"),
        put("metadata.managedFields", [owned]),
        put("metadata.resourceVersion", "2"),
    )
    text = suggested(audited("update"), item(watched(held, "ADDED")), item(watched(taken)))
    assert only(text).holders == ("${pod}_*",)


def test_a_user_that_a_policy_cannot_say_is_left_out() -> None:
    text = suggested(audited("update", put("user.username", "k*m")))
    assert bound(text) == {}
    assert "left out: k*m on shop/checkout: this user name cannot be expressed in a policy" in comments(text)


def test_a_holder_that_a_policy_cannot_say_is_left_out() -> None:
    text = suggested(written("kim", "", "a*"), written("kim", "", "b"))
    assert only(text).holders == ("b",)
    assert "left out: holder a* of shop/checkout: it cannot be expressed in a policy" in comments(text)


def test_many_holders_without_their_pods_are_every_holder() -> None:
    text = suggested(*(written("kim", "", f"node-{number}") for number in range(9)))
    assert only(text).holders == ("*",)
    assert any(
        "more than 8 holders do not begin with their pods: * checks the writer only" in one for one in comments(text)
    )


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "MAX_WRITES", 2)
    text = suggested(*(audited("update", name=name) for name in "abca"))
    assert [name for _, name in bound(text)] == ["a", "b"]
    assert "not seen: 1 write beyond 2 different ones" in comments(text)


WRITERS = st.tuples(
    st.sampled_from([KEEPER, "system:serviceaccount:ops:keeper", "kim", "on", "system:node:n1"]),
    st.sampled_from(["checkout-0", "checkout-1", "op.x-abcde", ""]),
    st.sampled_from(["", "_1f0e", "_2a7c9", "-external", "/x", "_*"]),
    st.sampled_from(["node-1", "node-2", "5b2ff1e0", "vm_95a5e30e-0458", "007", "", "a" * 70]),
)
Act = tuple[str, str, str, str]


def hourly(acts: list[Act]) -> list[Observation]:
    """Takeovers and renewals, an hour after each other, so that the lease has always expired."""
    observations = []
    old = expired_lease(put("spec.holderIdentity", "gone"))
    for number, (user, pod, ending, name) in enumerate(acts):
        at = NOW + number * 3_600_000_000
        clock = f"2025-11-20T{12 + number}:00:00"
        owned = make_entry("holderIdentity", "renewTime", "leaseDurationSeconds", "leaseTransitions", time=f"{clock}Z")
        new = make_lease(
            put("metadata.managedFields", [owned]),
            put("metadata.resourceVersion", str(5000 + number)),
            put("spec.holderIdentity", f"{pod}{ending}" if pod else name),
            put("spec.renewTime", f"{clock}.000000Z"),
        )
        who = {"username": user, "groups": ["system:authenticated"], "extra": {POD: [pod]} if pod else {}}
        observations.append(reviewed(put("request.userInfo", who), received=at, new=new, old=old))
        old = new
    return observations


@settings(max_examples=50)
@given(st.lists(WRITERS, min_size=1, max_size=8), WRITERS)
def test_all_that_was_seen_is_allowed_and_one_thing_more_is_denied(acts: list[Act], more: Act) -> None:
    seen = hourly(acts)
    policy = parse(suggested(*seen))
    binding = policy.bindings["shop", "checkout"]
    assert not any(denied(policy, one) for one in seen)
    (another,) = hourly([more])
    assert denied(policy, another) or more[0] in {user for user, *_ in acts}
    (stranger,) = hourly([("system:serviceaccount:shop:stranger", *more[1:])])
    assert denied(policy, stranger)
    (odd,) = hourly([(acts[0][0], "mail-0", "~", "")])
    assert denied(policy, odd) or "*" in binding.holders


@settings(max_examples=50)
@given(st.text(), st.text(), st.text(), st.text(), st.sampled_from(["create", "update", "delete"]))
def test_any_names_give_a_policy(user: str, holder: str, namespace: str, name: str, verb: str) -> None:
    changes = [put("user.username", user), put("responseObject.spec.holderIdentity", holder)]
    place = [put("objectRef.namespace", namespace), put("objectRef.name", name)]
    parse(suggested(item(make_event(*changes, put("verb", verb))), item(make_event(*changes, *place))))
