"""The smallest Roles: all that was seen is allowed under them, one thing more is refused."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import NOW, Tweak, drop, make_lease, put
from tests.observations.events import make_event, watched
from tests.suggestions.rbac import allows, documents
from tests.suggestions.seen import SOURCE, annotated, audited, item, reviewed
from webhook.observations.observation import Item, LogEnd, Unreadable
from webhook.suggestions import rights as module
from webhook.suggestions.rights import Rights
from webhook.suggestions.roles import RESOURCES, VERBS
from webhook.suggestions.suspicion import Suspicions

DAY = 86_400_000_000
INTRUDER = "system:serviceaccount:other:intruder"


def suggested(*items: Item, account: str = "") -> str:
    rights = Rights(Suspicions(NOW), account)
    for one in items:
        rights.observe(one)
    return rights.text()


def rules_of(text: str) -> list[tuple[list[str], list[str], list[str]]]:
    roles = (one for one in documents(text) if one["kind"] in {"Role", "ClusterRole"})
    return [
        (rule["resources"], rule.get("resourceNames", []), rule["verbs"]) for role in roles for rule in role["rules"]
    ]


def comments(text: str) -> list[str]:
    return [line.partition("# ")[2] for line in text.splitlines() if line.startswith("# ")]


def test_an_elector_may_create_and_the_rest_by_name() -> None:
    text = suggested(audited("get", code=404), audited("create", code=201), audited("get"), audited("update"))
    role, binding = documents(text)
    assert (role["kind"], role["metadata"]) == ("Role", {"name": "checkout-leases", "namespace": "shop"})
    assert rules_of(text) == [(["leases"], [], ["create"]), (["leases"], ["checkout"], ["get", "update"])]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "checkout-leases"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "checkout", "namespace": "shop"}]


def test_the_evidence_stands_beside_the_rules() -> None:
    later = put("stageTimestamp", "2025-11-20T12:02:00.000000Z")
    text = suggested(audited("create", name="b"), audited("get"), audited("update", later), audited("update", name="b"))
    assert "  verbs: [create]  # seen: create 1 (b); no name can limit create\n" in text
    assert "  resourceNames: [b]\n  verbs: [update]  # seen: update 1\n" in text
    assert "  resourceNames: [checkout]\n  verbs: [get, update]  # seen: get 1, update 1\n" in text
    assert comments(text)[0] == (
        "shop/checkout in namespace shop: 4 requests from 2025-11-20T12:00:00Z to 2025-11-20T12:02:00Z (1 min 59 s), "
        "in an audit log"
    )


def test_what_was_not_seen_is_said() -> None:
    said = comments(suggested(audited("update"), Unreadable(SOURCE, "not JSON")))
    assert "not seen: get; an elector reads its lease before it writes" in said
    assert "not seen: list, watch, patch, delete, deletecollection" in said
    assert "not seen: 1 part of the input that could not be read" in said
    assert any(one.startswith("not seen: anything but what happened at 2025-11-20T12:00:00Z: ") for one in said)
    verbs = [audited(verb) for verb in VERBS]
    assert not [one for one in comments(suggested(*verbs, LogEnd(NOW + 8 * DAY))) if one.startswith("not seen")]


def test_many_creations_are_named_in_part() -> None:
    text = suggested(*(audited("create", name=name) for name in "edcba"))
    assert "# seen: create 5 (a, b, c, d, ...); no name can limit create" in text


@pytest.mark.parametrize("verb", ["get", "update", "patch", "delete"])
def test_a_request_about_one_object_without_its_name_is_not_granted_for_all(verb: str) -> None:
    """`PUT .../leases` has such a verb and no name, and is answered with 405."""
    assert suggested(audited(verb, drop("objectRef.name"), code=405)) == ""


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in {"list", "watch"}])
def test_a_write_outside_of_a_namespace_is_not_granted_in_all(verb: str) -> None:
    assert suggested(audited(verb, drop("objectRef.namespace"), code=404)) == ""


@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
def test_a_collection_is_granted_without_a_name_unless_it_was_limited_to_one(verb: str) -> None:
    assert rules_of(suggested(audited(verb, drop("objectRef.name")))) == [(["leases"], [], [verb])]
    assert rules_of(suggested(audited(verb))) == [(["leases"], ["checkout"], [verb])]
    both = suggested(audited(verb, drop("objectRef.name")), audited(verb), audited("get"))
    assert rules_of(both) == [(["leases"], [], [verb]), (["leases"], ["checkout"], ["get"])]


def test_a_list_of_all_namespaces_needs_a_cluster_role() -> None:
    text = suggested(audited("list", drop("objectRef.name"), drop("objectRef.namespace")), audited("get"))
    assert [one["kind"] for one in documents(text)] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert documents(text)[0]["metadata"] == {"name": "shop:checkout-leases"}
    assert comments(text)[0].startswith("shop/checkout in all namespaces: 1 request at ")


@pytest.mark.parametrize("verb", ["patch", "update"])
def test_a_write_that_created_the_object_needs_create_as_well(verb: str) -> None:
    assert rules_of(suggested(audited(verb, code=201))) == [
        (["leases"], [], ["create"]),
        (["leases"], ["checkout"], [verb]),
    ]
    assert rules_of(suggested(audited(verb))) == [(["leases"], ["checkout"], [verb])]


def test_reviews_show_the_verb_by_their_options() -> None:
    created = reviewed(put("request.options.kind", "PatchOptions"))
    patched = reviewed(put("request.options.kind", "PatchOptions"), new=make_lease(), old=make_lease())
    deleted = reviewed(put("request.options", None), old=make_lease(drop("spec")))
    odd = reviewed(put("request.options", {"kind": 5}), new=make_lease(), old=make_lease())
    assert [one.verb for one in (created, patched, deleted, odd)] == ["patch", "patch", "delete", "update"]
    assert rules_of(suggested(created)) == [(["leases"], [], ["create"]), (["leases"], ["checkout"], ["patch"])]
    assert "not seen: reads, and most renewals, in reviews: the API server sends neither to the webhook" in comments(
        suggested(created)
    )


def test_a_role_stands_in_the_namespace_of_the_leases() -> None:
    role, binding = documents(suggested(audited("get", user="system:serviceaccount:ops:watcher")))
    assert role["metadata"] == binding["metadata"] == {"name": "ops:watcher-leases", "namespace": "shop"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "watcher", "namespace": "ops"}]


def test_one_service_account_can_be_chosen() -> None:
    both = (audited("get"), audited("get", user=INTRUDER))
    assert len(documents(suggested(*both))) == 4
    assert [one["subjects"] for one in documents(suggested(*both, account="shop/checkout")) if "subjects" in one] == [
        [{"kind": "ServiceAccount", "name": "checkout", "namespace": "shop"}]
    ]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(audited("get", user="kim"), id="a person"),
        pytest.param(audited("get", user="system:serviceaccount:shop:a b"), id="an illegal name"),
        pytest.param(audited("get", user="system:serviceaccount:shop"), id="no name"),
        pytest.param(audited("get", put("objectRef.namespace", "a/b")), id="an illegal namespace"),
        pytest.param(item(watched(make_lease())), id="a watch"),
        pytest.param(item(make_lease()), id="a dump"),
        pytest.param(LogEnd(NOW), id="the end of a log"),
        pytest.param(item(make_event(put("verb", "get"), drop("user"))), id="no user"),
    ],
)
def test_of_others_nothing_is_suggested(seen: Item) -> None:
    assert suggested(seen) == ""


@pytest.mark.parametrize("name", ["*", "a?", " a", "a\nb"])
def test_a_name_that_no_object_can_have_is_left_out(name: str) -> None:
    text = suggested(audited("get", name=name), audited("update"))
    assert rules_of(text) == [(["leases"], ["checkout"], ["update"])]
    assert any(one.endswith("no object can have this name") for one in comments(text))


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        pytest.param(
            audited("update", put("annotations", {"authorization.k8s.io/decision": "forbid"}), code=403),
            "update of leases shop/checkout, refused: the right is missing (1 time at 2025-11-20T12:00:00Z",
            id="no right",
        ),
        pytest.param(audited("update", code=403), "refused: it was denied (1 time", id="denied by another webhook"),
        pytest.param(audited("update", put("responseStatus", {})), "refused: it was denied (1 time", id="no status"),
        pytest.param(
            audited("update", annotated(event="steal", rules="takeover-before-expiry=deny"), code=403),
            "refused: took a lease that its holder still had (1 time",
            id="a steal",
        ),
        pytest.param(
            audited("update", annotated(rules="duration-too-long=deny,no-such-rule=deny"), code=422),
            "refused: set a duration after which no one else could take the lease (1 time",
            id="a value that freezes",
        ),
    ],
)
def test_what_was_refused_is_not_granted(seen: Item, why: str) -> None:
    text = suggested(seen)
    assert not documents(text)
    assert why in text
    assert rules_of(suggested(seen, audited("get"))) == [(["leases"], ["checkout"], ["get"])]


@pytest.mark.parametrize("code", [404, 409, 422, 500])
def test_a_conflict_needs_the_right_as_well(code: int) -> None:
    assert rules_of(suggested(audited("update", code=code))) == [(["leases"], ["checkout"], ["update"])]


def test_one_who_comes_by_an_attack_is_left_out() -> None:
    stolen = audited("update", annotated(event="steal", rules="takeover-before-expiry=warn"))
    text = suggested(audited("get"), stolen, audited("update"))
    assert not documents(text)
    assert "left out: shop/checkout on leases shop/checkout: looks like an attack: took a lease" in text


def test_a_writer_of_old_who_attacks_is_granted_with_a_remark() -> None:
    stolen = audited("update", annotated(event="steal", rules="takeover-before-expiry=warn"))
    text = suggested(audited("update"), stolen)
    assert rules_of(text) == [(["leases"], ["checkout"], ["update"])]
    assert "look at leases shop/checkout, which is granted: took a lease that its holder still had (1 time" in text


def test_a_stranger_who_attacks_gets_nothing_in_that_namespace() -> None:
    stolen = audited("update", annotated(rules="takeover-before-expiry=warn"), user=INTRUDER)
    created = audited("create", name="mine", user=INTRUDER)
    text = suggested(audited("update", user=INTRUDER), stolen, created)
    assert not documents(text)
    assert "leases shop/mine: what else it did in this namespace looks like an attack" in text


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    refused = [audited("get", name=name, code=403) for name in "uvw"]
    text = suggested(*(audited("get", name=name) for name in "abca"), *refused)
    assert rules_of(text) == [(["leases"], ["a", "b"], ["get"])]
    assert "not seen: 1 requests about more than 2 leases" in comments(text)
    assert "get of leases shop/v, refused" in text
    assert "get of leases shop/w, refused" not in text


REQUESTS = st.tuples(
    st.sampled_from(["checkout", "a.b", "on", "007", "ä"]),
    st.sampled_from(["shop", "ops"]),
    st.sampled_from(VERBS),
    st.sampled_from(sorted(RESOURCES)),
    st.sampled_from(["shop", "ops", ""]),
    st.sampled_from(["x", "y.z", "true", "1", "null", "x:y", "{}"]),
)


def _event(request: tuple[str, str, str, str, str, str]) -> Item:
    name, home, verb, kind, namespace, lease = request
    where: list[Tweak] = [put("objectRef.resource", RESOURCES[kind]), put("objectRef.namespace", namespace)]
    return audited(verb, *where, name=lease, user=f"system:serviceaccount:{home}:{name}")


@settings(max_examples=60)
@given(st.lists(REQUESTS, max_size=12), REQUESTS)
def test_all_that_was_seen_is_allowed_and_nothing_else(
    seen: list[tuple[str, str, str, str, str, str]], more: tuple[str, str, str, str, str, str]
) -> None:
    text = suggested(*map(_event, seen))
    objects = documents(text)
    # No name can limit a creation, what is granted in all namespaces is granted in each, and that are reads only.
    possible = [one for one in seen if one[0] != "ä" and (one[4] or one[2] in {"list", "watch"})]
    known = {(*one[:5], "" if one[2] == "create" else one[5]) for one in possible}
    for name, home, verb, kind, namespace, lease in (*seen, more):
        allowed = allows(objects, f"{home}/{name}", verb, RESOURCES[kind], namespace, lease)
        named = "" if verb == "create" else lease
        assert allowed == any((name, home, verb, kind, place, named) in known for place in {namespace, ""})


@settings(max_examples=60)
@given(st.text(), st.text(), st.text(), st.sampled_from(VERBS))
def test_any_names_give_yaml(user: str, namespace: str, name: str, verb: str) -> None:
    where = [put("objectRef.namespace", namespace), put("user.username", user)]
    text = suggested(audited(verb, *where, name=name), audited("update", name=name))
    for one in yaml.load_all(text, yaml.CSafeLoader):
        assert one is None or one["apiVersion"] == "rbac.authorization.k8s.io/v1"
