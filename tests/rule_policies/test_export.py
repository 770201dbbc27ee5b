"""What of a policy file reaches the exported policies: modes, numbers, overrides, exemptions, bindings, stamps."""

from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.factories import Document, Tweak, as_version, changed, drop, make_candidate, make_lease, make_review, put
from tests.rule_policies.in_process import ExportedPolicies, evaluated
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.registry import RULES
from webhook.api_server import rule_policies as policies
from webhook.api_server.fence.objects import ACTIONS, BINDING, POLICY, make_literal
from webhook.api_server.rule_policies import (
    is_never_evaluated,
    list_names,
    list_unexported,
    make_manifests,
    make_stamp_policies,
)

HEAD: Final = "apiVersion: lease-webhook/v1\npreset: strict\n"
STAMPS: Final = "stamps: [{suffix: 1a2b3c4d, namespaces: [shop]}]\n"
HOSTILE: Final = "a\"b\\c' || true || ${pod} {x}"
THIEF: Final = (
    put("spec.holderIdentity", "mallory"),
    put("metadata.managedFields[0].time", "2025-11-20T12:00:03Z"),
    put("spec.renewTime", "2025-11-20T12:00:03.000000Z"),
)


def broken(more: str, request: Document) -> dict[str, str]:
    """Rule to mode."""
    return {one.rule: one.mode for one in ExportedPolicies(parse(HEAD + more)).broken(request)}


def update(*tweaks: Tweak, user: str = "ann", old: tuple[Tweak, ...] = (), **more: Any) -> Document:
    before = make_lease(*old)
    request: Document = make_review(old=before, new=changed(before, *tweaks))["request"]
    request["userInfo"] = {"username": user, "groups": ["people"]} | more
    return request


@pytest.mark.parametrize(
    ("more", "mode"),
    [
        pytest.param("", "deny", id="as the preset says"),
        pytest.param("mode: warn", "warn", id="the cap of the file"),
        pytest.param('mode: "off"', None, id="switched off"),
        pytest.param("rules: {takeover-before-expiry: {mode: audit}}", "audit", id="audited"),
        pytest.param('rules: {takeover-before-expiry: {mode: "off"}}', None, id="off"),
        pytest.param(
            'overrides: [{namespaces: ["s?op"], rules: {takeover-before-expiry: {mode: warn}}}]',
            "warn",
            id="overridden",
        ),
        pytest.param(
            "overrides: [{leases: ['x*'], rules: {takeover-before-expiry: {mode: warn}}}]",
            "deny",
            id="of another lease",
        ),
        pytest.param(
            "overrides: [{operations: [CREATE], rules: {takeover-before-expiry: {mode: warn}}}]",
            "deny",
            id="overridden for another operation",
        ),
        pytest.param("exempt: [{owner: o, reason: r, users: [ann]}]", None, id="an exempt user"),
        pytest.param("exempt: [{owner: o, reason: r, groups: [people], leases: ['ch*']}]", None, id="an exempt group"),
        pytest.param(
            "exempt: [{owner: o, reason: r, users: [ann], rules: [transitions-jump]}]", "deny", id="exempt from another"
        ),
        pytest.param(
            "exempt: [{owner: o, reason: r, users: [ann], operations: [DELETE]}]", "deny", id="exempt elsewhere"
        ),
    ],
)
def test_a_rule_has_the_mode_that_the_file_says(more: str, mode: str | None) -> None:
    assert broken(more, update(*THIEF)).get("takeover-before-expiry") == mode


@pytest.mark.parametrize(
    ("more", "modes"),
    [
        pytest.param(
            "", {"leases-deny", "leases-warn", "leases-audit", "candidates-deny", "candidates-warn"}, id="strict"
        ),
        pytest.param("mode: warn", {"leases-warn", "leases-audit", "candidates-warn"}, id="a cap"),
        pytest.param('mode: "off"', set(), id="the kill switch"),
        pytest.param(
            "mode: warn\nbindings: [{namespace: a, lease: b, writers: [a/b], holder: ['*']}]",
            {"leases-warn", "leases-audit", "candidates-warn", "bindings-warn"},
            id="a binding",
        ),
    ],
)
def test_each_export_has_all_bindings_so_that_nothing_of_an_earlier_file_stays_in_force(
    more: str, modes: set[str]
) -> None:
    exported = make_manifests(parse(HEAD + more), 0, "true", ["kube-system"])
    specs: dict[str, dict[str, Document]] = {POLICY: {}, BINDING: {}}
    for one in exported:
        specs[one["kind"]][one["metadata"]["name"].removeprefix(policies.RULE_POLICIES)] = one["spec"]
    every = [f"{kind}-{mode}" for kind in ("leases", "bindings", "candidates") for mode in ("deny", "warn", "audit")]
    assert [*specs[BINDING]] == every
    bound = {name: spec["policyName"].removeprefix(policies.RULE_POLICIES) for name, spec in specs[BINDING].items()}
    in_force = {name for name, policy in bound.items() if policy != "unused"}
    assert in_force - {"candidates-audit"} == modes
    assert specs[POLICY].keys() == {*in_force, "unused"}
    assert all(bound[name] == name for name in in_force)
    assert [name for name, spec in specs[POLICY].items() if is_never_evaluated(spec)] == ["unused"]
    assert all(spec["validations"] for spec in specs[POLICY].values()), "an API server refuses a policy without one"
    assert list_names() == {one["metadata"]["name"] for one in exported} | {
        f"{policies.RULE_POLICIES}{name}" for name in every
    }


def drop_policy_name(manifest: Document) -> Document:
    return {**manifest, "spec": {**manifest["spec"], "policyName": ""}}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("mode: warn", id="a cap"),
        pytest.param('mode: "off"', id="the kill switch"),
        pytest.param("rules: {foreign-writer: {mode: audit}}", id="the guard of stamps audits"),
        pytest.param("bindings: [{namespace: a, lease: b, writers: [a/b], holder: ['*']}]", id="a binding"),
    ],
)
def test_files_differ_by_the_policies_to_which_the_same_bindings_lead(more: str) -> None:
    """A forced apply always replaces a name, and never removes what another field manager added to a list."""
    bindings = []
    for text in ("", more):
        policy = parse(HEAD + STAMPS + text)
        exported = make_manifests(policy, 0, "true", ["kube-system"]) + make_stamp_policies(policy, 0)
        bindings.append([drop_policy_name(one) for one in exported if one["kind"] == BINDING])
    assert bindings[0] == bindings[1]
    assert len(bindings[0]) == 9 + len(["guard", "bounds", "warn", "audit"])


def test_nothing_else_is_applied_where_no_mode_is_used() -> None:
    """A policy of several field managers may be refused by an API server, and a tool that asks first applies none."""
    exported = make_manifests(parse(HEAD + 'mode: "off"'), 0, "true", ["kube-system"])
    assert [one["metadata"]["name"] for one in exported if one["kind"] == POLICY] == ["lease-webhook-rules-unused"]


def test_an_exemption_that_is_over_is_left_out() -> None:
    policy = parse(HEAD + "exempt: [{owner: o, reason: r, users: [ann], until: 2025-11-19}]")
    now = 1_763_640_000_000_000
    assert "exempt0" not in str(make_manifests(policy, now, "true", []))
    assert "exempt0" in str(make_manifests(policy, now - 172_800_000_000, "true", []))
    assert "exempt[0] ends after 2025-11-19" in " ".join(list_unexported(policy, 0))


@pytest.mark.parametrize(
    ("seconds", "mode"), [(31_536_001, "deny"), (31_536_000, "warn"), (86_401, "warn"), (86_400, None)]
)
def test_a_rule_with_two_thresholds(seconds: int, mode: str | None) -> None:
    refusals = broken("", update(put("spec.leaseDurationSeconds", seconds)))
    assert refusals.get("duration-too-long") == mode


def test_a_number_of_an_override_is_in_the_text() -> None:
    more = "overrides: [{namespaces: [shop], rules: {duration-too-long: {deny_above_seconds: 90000}}}]"
    (refusal,) = ExportedPolicies(parse(HEAD + more)).broken(update(put("spec.leaseDurationSeconds", 90_001)))
    assert "must not be greater than 90000;" in refusal.text


def test_an_administrator_is_exempt_but_not_from_unreadable_times() -> None:
    unreadable = put("spec.renewTime", "10000-01-01T00:00:00.000000Z")
    request = update(*THIEF, unreadable, groups=["system:masters"])
    assert broken("", request) == {"time-unreadable": "deny"}


OLDEST: Final = "OldestEmulationVersion"
BOUND: Final = "bindings: [{{namespace: shop, lease: checkout, writers: [shop/op, 'user:ann'], holder: {}{}}}]"
POD: Final = {"authentication.kubernetes.io/pod-name": ["op-0"]}


@pytest.mark.parametrize(
    ("holder", "more", "new", "extra", "mode"),
    [
        pytest.param("['${pod}_*']", "", "op-0_1", POD, None, id="of the pod"),
        pytest.param("['${pod}_*']", "", "op-1_1", POD, "deny", id="of another pod"),
        pytest.param("['${pod}_*']", "", "op-0_1", {}, "warn", id="a template of pods and a token without one"),
        pytest.param(
            "['${pod}_*']", ", require_pod: true", "op-0_1", {}, "deny", id="a token without a pod, which is required"
        ),
        pytest.param("['a.b?[c*']", "", "a.bx[c\n$", {}, None, id="a glob of odd characters"),
        pytest.param("['a.b?[c*']", "", "aXbx[c", {}, "deny", id="a dot is a dot"),
        pytest.param(
            "['${pod}']", "", "op.0", {"authentication.kubernetes.io/pod-name": ["op\\E.0"]}, "deny", id="\\E"
        ),
        pytest.param("['*']", "", "x" * 5000, {}, None, id="a long holder and any"),
        pytest.param("['x*']", "", "x" * 5000, {}, "deny", id="a long holder"),
    ],
)
def test_a_binding_decides_who_may_take_a_lease(
    holder: str, more: str, new: str, extra: dict[str, Any], mode: str | None
) -> None:
    request = update(put("spec.holderIdentity", new), extra=extra)
    assert broken(BOUND.format(holder, more), request).get("identity-binding") == mode


def test_a_stranger_may_not_renew_a_bound_lease_or_write_its_candidates() -> None:
    renewal = (
        put("spec.renewTime", "2025-11-20T12:00:02.000000Z"),
        put("metadata.managedFields[0].time", "2025-11-20T12:00:02Z"),
    )
    bound = BOUND.format("['*']", "")
    assert broken(bound, update(*renewal, user="bob")) == {"identity-binding": "deny"}
    assert broken(bound, update(*renewal, user="system:serviceaccount:shop:op")) == {}
    candidate = make_review(new=make_candidate(put("spec.renewTime", "2025-11-20T12:00:02.000000Z")))["request"]
    assert broken(bound, candidate)["identity-binding"] == "deny"


@pytest.mark.parametrize("is_named", [True, False], ids=["alone", "with its collection"])
@pytest.mark.parametrize(
    ("more", "mode"),
    [
        pytest.param("", "deny", id="nothing else"),
        pytest.param("exempt: [{owner: o, reason: r, leases: [checkout]}]", None, id="an exemption"),
        pytest.param("exempt: [{owner: o, reason: r, leases: ['tmp-*']}]", "deny", id="an exemption of others"),
        pytest.param(
            "overrides: [{leases: [checkout], rules: {identity-binding: {mode: warn}}}]", "warn", id="an override"
        ),
    ],
)
def test_a_stranger_may_not_delete_a_bound_lease(more: str, mode: str | None, *, is_named: bool) -> None:
    request = make_review(old=make_lease())["request"]
    if not is_named:
        del request["name"]
    bound = BOUND.format("['*']", "")
    assert broken(f"{bound}\n{more}", request).get("identity-binding") == mode


@pytest.mark.parametrize(
    ("version", "strategies", "rules"),
    [
        pytest.param("v1alpha1", [OLDEST, "a/b"], set(), id="two"),
        pytest.param("v1alpha1", [], {"candidate-preferred-strategies"}, id="none"),
        pytest.param("v1alpha1", ["a/b", OLDEST, "a/b"], {"candidate-strategies-unique"}, id="one twice"),
        pytest.param("v1beta1", [], set(), id="none in a version that has no list"),
    ],
)
def test_strategies_of_the_first_version(version: str, strategies: list[str], rules: set[str]) -> None:
    candidate = make_candidate(as_version(version), put("spec.preferredStrategies", strategies))
    assert broken("", make_review(new=candidate)["request"]).keys() == rules


def test_a_changed_list_of_strategies_is_a_change_of_the_candidate() -> None:
    before = make_candidate(as_version("v1alpha1"))
    request = make_review(old=before, new=changed(before, put("spec.preferredStrategies", ["a/b", OLDEST])))["request"]
    assert broken("", request) == {"candidate-changed": "deny"}


def test_an_owner_of_a_bound_lease_is_denied_in_every_preset() -> None:
    owner = put("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}])
    standard = parse("apiVersion: lease-webhook/v1\n" + BOUND.format("['*']", ""))
    modes = {one.rule: one.mode for one in ExportedPolicies(standard).broken(update(owner, user="bob"))}
    assert modes == {"owner-reference-added": "deny", "identity-binding": "deny"}
    assert broken(BOUND.format("['*']", ""), update(owner)) == {}


@given(st.text(st.characters(min_codepoint=32, exclude_characters="*?\x7f", exclude_categories=["C", "Z"]), min_size=1))
def test_a_glob_matches_what_it_says(text: str) -> None:
    pattern = make_literal(policies._make_pattern(text))
    assert evaluated(f"object.matches({pattern})", {"object": text})
    assert not evaluated(f"object.matches({pattern})", {"object": text + "x"})


def test_no_text_of_a_file_leaves_its_quotes() -> None:
    texts = {"users": [HOSTILE, "$x"], "groups": [HOSTILE], "namespaces": ["shop"], "leases": ["*[" + "'"]}
    document = yaml.safe_load(HEAD) | {"exempt": [{"owner": "o", "reason": "r", **texts}]}
    document["bindings"] = [
        {"namespace": "shop", "lease": "checkout", "writers": [f"user:{HOSTILE}"], "holder": ["${pod}\\E'\""]}
    ]
    policy = parse(yaml.safe_dump(document, default_flow_style=False).replace("!!python/unicode ", ""))
    refusals = ExportedPolicies(policy).broken(update(*THIEF, user=HOSTILE))
    assert {one.rule for one in refusals} >= {"takeover-before-expiry", "identity-binding"}
    assert all("\n" not in one.text for one in refusals)


def test_a_name_that_is_not_printable_is_not_shown() -> None:
    refusals = ExportedPolicies(parse(HEAD)).broken(update(*THIEF, old=(put("spec.holderIdentity", "\x1b[31m\u202e"),)))
    assert '"(a name that cannot be shown)"' not in refusals[0].text
    assert "is held by (a name that cannot be shown)," in refusals[0].text


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(drop("spec"), id="no spec"),
        pytest.param(put("spec", {}), id="an empty spec"),
        pytest.param(put("spec.renewTime", None), id="the zero time"),
        pytest.param(drop("spec.leaseDurationSeconds"), id="no duration"),
        pytest.param(put("spec.renewTime", "9999-12-31T23:59:59.999999Z"), id="the last time"),
        pytest.param(put("spec.renewTime", "10000-01-01T00:00:00.000000Z"), id="a time after the last"),
        pytest.param(put("spec.renewTime", "0000-01-01T00:00:00.000000Z"), id="the year 0"),
        pytest.param(put("spec.leaseTransitions", 2147483647), id="a counter at its end"),
        pytest.param(drop("metadata.managedFields"), id="no entries"),
        pytest.param(put("metadata.managedFields", [{"manager": "x"}]), id="an entry of nothing"),
        pytest.param(
            put("metadata.managedFields[0].fieldsV1", {"f:spec": {"f:renewTime": {".": {}}}}), id="odd entries"
        ),
        pytest.param(put("metadata.managedFields[0].time", "10000-01-01T00:00:00Z"), id="an entry after the last time"),
        pytest.param(put("metadata.managedFields[0].time", None), id="an entry of the zero time"),
        pytest.param(put("metadata.finalizers", ["a/b"]), id="a finalizer"),
    ],
)
def test_no_expression_errs(tweak: Tweak) -> None:
    """`broken` raises where one errs: an odd lease is renewed, repaired, made and deleted."""
    odd, renewed = make_lease(tweak), make_lease(put("spec.renewTime", "2025-11-20T12:00:02.000000Z"), THIEF[0])
    exported = ExportedPolicies(parse(HEAD + BOUND.format("['${pod}_*']", "")))
    for old, new in ((odd, renewed), (renewed, odd), (odd, odd), (None, odd), (odd, None)):
        exported.broken(make_review(old=old, new=new)["request"])


def test_many_bindings_fit_into_one_expression() -> None:
    listed = [f"- {{namespace: shop, lease: 'l{number}', writers: [shop/op], holder: ['*']}}" for number in range(700)]
    exported = make_manifests(parse(HEAD + "bindings:\n" + "\n".join(listed)), 0, "true", [])
    longest = max(len(one["expression"]) for each in exported for one in each["spec"].get("variables", ()))
    assert 70_000 < longest < 100_000
    request = update(put("metadata.name", "l699"), put("spec.holderIdentity", "x"), user="bob") | {"name": "l699"}
    assert broken("bindings:\n" + "\n".join(listed), request)["identity-binding"] == "deny"


TEMPLATES: Final = [f"{'a' * 54}{number:03}*" for number in range(200)]
POD_TEMPLATES: Final = [f"${{pod}}_a{number:02}*" for number in range(99)]


def bind(templates: list[str]) -> str:
    """Two bindings, of which the second has these templates."""
    return (
        "bindings:\n- {namespace: shop, lease: other, writers: [shop/op], holder: ['*']}\n"
        f"- {{namespace: shop, lease: checkout, writers: ['user:ann'], holder: {templates}}}\n"
    )


@pytest.mark.parametrize(
    "templates",
    [
        pytest.param(POD_TEMPLATES[:25], id="with the name of a pod"),
        pytest.param(TEMPLATES[:136], id="without a variable"),
    ],
)
def test_as_many_templates_as_an_api_server_compares_with_the_longest_holder(templates: list[str]) -> None:
    request = update(put("spec.holderIdentity", "x" * 4096), extra=POD)
    assert broken(bind(templates), request)["identity-binding"] == "deny"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        pytest.param(
            "bindings:\n"
            + "".join(f"- {{namespace: a, lease: 'l{n}', writers: [a/b], holder: ['*']}}\n" for n in range(1000)),
            "bindings",
            id="bindings",
        ),
        pytest.param(
            "overrides:\n" + "- {rules: {transitions-jump: {mode: warn}}}\n" * 101, "overrides", id="overrides"
        ),
        pytest.param(bind(POD_TEMPLATES[:26]), "bindings[1].holder", id="templates with the name of a pod"),
        pytest.param(bind(TEMPLATES[:137]), "bindings[1].holder", id="templates"),
    ],
)
def test_what_no_policy_can_hold_is_refused(more: str, path: str) -> None:
    with pytest.raises(PolicyError) as refused:
        make_manifests(parse(HEAD + more), 0, "true", [])
    assert refused.value.path == path


def say_of_jumps(monkeypatch: pytest.MonkeyPatch, in_cel: RuleInCel) -> None:
    """Have the rule about jumps say something else to an API server."""
    monkeypatch.setitem(RULES, "transitions-jump", replace(RULES["transitions-jump"], in_cel=in_cel))


def test_a_rule_that_never_denies_warns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    warned = RuleInCel(
        warned="variables.count > variables.oldCount + $warn_jump_above",
        warning="spec.leaseTransitions: Forbidden: it is {variables.count}",
    )
    say_of_jumps(monkeypatch, warned)
    (refusal,) = (
        one
        for one in ExportedPolicies(parse(HEAD)).broken(update(put("spec.leaseTransitions", 7)))
        if one.rule == "transitions-jump"
    )
    assert refusal.mode == "warn"
    assert "it is 7" in refusal.text
    assert "transitions-jump" not in broken("", update(put("spec.leaseTransitions", 6)))


def test_variables_of_a_rule_alone_are_in_its_policies_after_those_that_they_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jump = RuleInCel(
        broken="variables.isJump",
        message="spec.leaseTransitions: Forbidden: it is {variables.shownCount}",
        variables={
            "isJump": "variables.countAhead > $warn_jump_above",
            "shownCount": "string(variables.count)",
            "countAhead": "variables.count - variables.oldCount",
            "unusedCount": "variables.oldCount",
        },
    )
    say_of_jumps(monkeypatch, jump)
    (refusal,) = ExportedPolicies(parse(HEAD)).broken(update(put("spec.leaseTransitions", 7)))
    assert (refusal.rule, refusal.mode) == ("transitions-jump", "deny")
    assert "it is 7" in refusal.text
    names = {
        one["metadata"]["name"]: [variable["name"] for variable in one["spec"].get("variables", ())]
        for one in make_manifests(parse(HEAD), 0, "true", [])
        if one["kind"] == POLICY
    }
    own = [name for name in names["lease-webhook-rules-leases-deny"] if name in jump.variables]
    assert own == ["countAhead", "isJump", "shownCount"]
    assert all(jump.variables.keys().isdisjoint(each) for name, each in names.items() if "candidates" in name)


def test_each_name_of_a_variable_is_of_one_expression() -> None:
    shared = {name for section in policies._load_variables().values() for name in section}
    own = [name for one in RULES.values() for name in (*one.in_cel.variables, *one.in_cel.phrases)]
    assert len(own) == len(set(own))
    assert shared.isdisjoint(own)


def test_the_export_lists_what_a_file_needs_beside_the_objects() -> None:
    more = (
        "exempt: [{owner: o, reason: r, users: [ann], namespaces: ['*']}]\n"
        "stamps: [{suffix: 1a2b3c4d, namespaces: [shop]}, {suffix: 2a2b3c4d, namespaces: [b], writer: user}]\n"
        "rules: {live-lease-deleted: {mode: 'off'}}"
    )
    policy = parse(HEAD + more)
    unexported = [*list_unexported(policy, 0)]
    labeled = [one for one in unexported if "kubectl label namespace" in one]
    assert [(" shop " in one, "stamp-writer=user" in one) for one in labeled] == [(True, False), (False, True)]
    about = {one.partition(" ")[0] for one in unexported if one not in labeled}
    without = {rule.id for rule in RULES.values() if not rule.parity and not rule.in_cel.is_said}
    assert about == without - {"live-lease-deleted", "foreign-writer"}, "one is off, the guard of stamps says the other"
    assert "request.namespace" not in next(
        one["expression"]
        for one in make_manifests(policy, 0, "true", [])[1]["spec"]["variables"]
        if one["name"] == "exempt0"
    )


@pytest.mark.parametrize(
    ("more", "mode"),
    [
        pytest.param("", "deny", id="strict"),
        pytest.param("preset: standard\n", "deny", id="standard"),
        pytest.param("preset: standard\nmode: warn\n", "warn", id="a cap"),
        pytest.param("rules: {foreign-writer: {mode: warn}}", "warn", id="warned"),
        pytest.param("rules: {foreign-writer: {mode: audit}}", "audit", id="audited"),
        pytest.param('rules: {foreign-writer: {mode: "off"}}', "", id="off"),
        pytest.param('mode: "off"', "", id="the kill switch"),
    ],
)
def test_the_guard_of_stamps_has_the_mode_of_its_rule(more: str, mode: str) -> None:
    head = HEAD.partition("preset")[0] if "preset" in more else HEAD
    objects = make_stamp_policies(parse(head + STAMPS + more), 0)
    guard, unused = "lease-webhook-stamp-guard", "lease-webhook-stamp-unused"
    bindings = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == BINDING}
    modes = {"deny": guard, "warn": f"{guard}-warn", "audit": f"{guard}-audit"}
    assert {word: bindings[name] for word, name in modes.items()} == {
        word: {"policyName": guard if word == mode else unused, "validationActions": ACTIONS[word]} for word in modes
    }
    assert "SUFFIX" not in str(objects)
    assert str(objects).count("\"'1a2b3c4d'\"") == 3
    policies_of_stamps = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == POLICY}
    assert [name for name, spec in policies_of_stamps.items() if is_never_evaluated(spec)] == [unused]


CONSTANT: Final = [{"manager": "lease-webhook-stamp", "time": "2000-01-01T00:00:00Z"}]
KEEPER: Final = {"authentication.kubernetes.io/pod-uid": ["uid-1"]}
PUT_BACK: Final = put("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}])


def stamped(written: str = "2025-11-20T12:00:02Z", writer: str = "uid-1 ann") -> Tweak:
    """The last writer was ann, from the pod with uid-1."""

    def tweak(lease: Document) -> None:
        lease["metadata"]["managedFields"] = CONSTANT
        names = {"writer": writer, "written": written, "term": "7"}
        lease["metadata"]["annotations"] = {f"lease-webhook/{name}-1a2b3c4d": text for name, text in names.items()}

    return tweak


@pytest.mark.parametrize(
    ("written", "renew_time", "mode"),
    [
        pytest.param("2025-11-20T12:00:02Z", "2999-01-01T00:00:00.000000Z", "deny", id="the year 2999"),
        pytest.param("2025-11-20T12:00:02Z", "2025-11-21T11:00:00.000000Z", None, id="a renewal of tomorrow"),
        pytest.param("2199-12-31T12:00:02Z", "2200-01-01T00:00:00.000000Z", None, id="the clock is there"),
        pytest.param("", "2999-01-01T00:00:00.000000Z", None, id="no time"),
    ],
)
def test_the_clock_of_a_stamped_renewal_is_its_stamp(written: str, renew_time: str, mode: str | None) -> None:
    request = update(stamped(written), put("spec.renewTime", renew_time), old=(stamped(),), extra=KEEPER)
    assert broken(STAMPS, request).get("renew-time-in-future") == mode


RENEW: Final = put("spec.renewTime", "2025-11-20T12:00:02.000000Z")
ACQUIRE: Final = put("spec.acquireTime", "2025-11-20T12:00:02.000000Z")
by_writers = pytest.mark.parametrize(
    ("user", "extra", "stamps", "mode"),
    [
        pytest.param("ann", KEEPER, STAMPS, None, id="its writer"),
        pytest.param("ann", {}, STAMPS, "deny", id="the user of its writer"),
        pytest.param("bob", KEEPER, STAMPS, "deny", id="another user"),
        pytest.param("ann", {}, STAMPS.replace("]}", "], writer: user}"), None, id="the user, as the file says"),
        pytest.param("ann", KEEPER, STAMPS.replace("shop", "other"), "deny", id="in a namespace without stamps"),
        pytest.param("ann", KEEPER, STAMPS.replace("1a2b", "9a2b"), "deny", id="under another suffix"),
        pytest.param("ann", KEEPER, "", "deny", id="without stamps"),
    ],
)
"""Who writes a held lease, where stamps are believed or not, and the mode of what only its stamped writer may do."""


@by_writers
def test_an_owner_is_set_by_the_stamped_writer_of_a_held_lease(
    user: str, extra: dict[str, Any], stamps: str, mode: str | None
) -> None:
    added = update(stamped(), PUT_BACK, old=(stamped(),), user=user, extra=extra)
    assert broken(stamps, added).get("owner-reference-added") == mode


@by_writers
def test_an_owner_is_removed_by_the_stamped_writer_of_a_held_lease(
    user: str, extra: dict[str, Any], stamps: str, mode: str | None
) -> None:
    removed = update(stamped(), drop("metadata.ownerReferences"), old=(stamped(), PUT_BACK), user=user, extra=extra)
    assert broken(stamps, removed).get("owner-reference-removed") == mode


@pytest.mark.parametrize(
    ("uids", "user", "mode"),
    [
        pytest.param(["uid-1"], "ann lee", None, id="its writer"),
        pytest.param(["uid-1 ann"], "lee", "deny", id="a uid that takes the beginning of the user"),
        pytest.param(["uid-1", "uid-2"], "ann lee", "deny", id="two uids"),
    ],
)
def test_the_stamped_writer_is_a_uid_without_a_blank_and_a_user(uids: list[str], user: str, mode: str | None) -> None:
    before = stamped(writer="uid-1 ann lee")
    extra = {"authentication.kubernetes.io/pod-uid": uids}
    added = update(before, PUT_BACK, old=(before,), user=user, extra=extra)
    assert broken(STAMPS, added).get("owner-reference-added") == mode


@by_writers
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(put("spec.leaseDurationSeconds", 1), id="to a second"),
        pytest.param(drop("spec.leaseDurationSeconds"), id="by leaving out the duration"),
        pytest.param(drop("spec.renewTime"), id="by leaving out the renewal"),
    ],
)
def test_a_held_lease_is_cut_by_its_stamped_writer(
    user: str, extra: dict[str, Any], stamps: str, mode: str | None, cut: Tweak
) -> None:
    request = update(stamped(), cut, old=(stamped(),), user=user, extra=extra)
    assert broken(stamps, request).get("duration-shortened") == mode


@by_writers
@pytest.mark.parametrize(
    "tweaks",
    [
        pytest.param((RENEW, drop("spec.leaseDurationSeconds")), id="a renewal without a duration"),
        pytest.param((ACQUIRE, drop("spec.renewTime")), id="a heartbeat without a renewal"),
    ],
)
def test_a_cut_that_a_client_may_make_by_renewing_is_a_warning_for_others(
    user: str, extra: dict[str, Any], stamps: str, mode: str | None, tweaks: tuple[Tweak, ...]
) -> None:
    request = update(stamped(), *tweaks, old=(stamped(),), user=user, extra=extra)
    assert broken(stamps, request).get("duration-shortened") == (mode and "warn")


def test_a_refusal_has_the_status_of_its_text() -> None:
    """A rule's text may begin with one that several rules share."""
    reasons = {
        one["message"].partition(":")[0].removeprefix("lease webhook, rule "): one["reason"]
        for manifest in make_manifests(parse(HEAD), 0, "true", [])
        for one in manifest["spec"].get("validations", ())
        if "reason" in one
    }
    forbidden = {rule for rule, reason in reasons.items() if reason == "Forbidden"}
    assert {"takeover-before-expiry", "takeover-by-node", "foreign-release", "duration-shortened"} <= forbidden
    assert forbidden.isdisjoint({"renew-time-in-future", "duration-too-long", "transitions-jump"})


def test_an_owner_in_a_renewal_is_a_warning() -> None:
    renewal = update(PUT_BACK, put("spec.renewTime", "2025-11-20T12:00:02.000000Z"))
    assert broken("", renewal) == {"owner-reference-added": "warn"}


@pytest.mark.parametrize(
    ("more", "expression"),
    [
        pytest.param("", "true", id="nobody"),
        pytest.param(
            "exempt: [{owner: o, reason: r, users: [ann], rules: [transitions-jump]}]", "true", id="elsewhere"
        ),
        pytest.param(
            "exempt: [{owner: o, reason: r, users: [ann]}]", '!(request.userInfo.username in ["ann"])', id="a user"
        ),
        pytest.param(
            "exempt: [{owner: o, reason: r, users: [ann]}, {owner: o, reason: r, users: [bob], operations: [DELETE]}]",
            '!(request.userInfo.username in ["ann"]) && '
            '!(request.userInfo.username in ["bob"] && request.operation in ["DELETE"])',
            id="two users",
        ),
    ],
)
def test_who_is_exempt_from_the_guard_is_one_condition_that_is_always_there(more: str, expression: str) -> None:
    objects = make_stamp_policies(parse(HEAD + STAMPS + more), 0)
    guard = [one for one in objects if one["metadata"]["name"] == "lease-webhook-stamp-guard"]
    (spec,) = (one["spec"] for one in guard if one["kind"] == POLICY)
    assert [one["name"] for one in spec["matchConditions"]] == ["not-exempt", "not-a-collector", "not-exempt-by-file"]
    assert spec["matchConditions"][-1]["expression"] == expression


@pytest.mark.parametrize(("name", "is_evaluated"), [("special", False), ("checkout", True)])
def test_the_guard_is_not_asked_about_a_lease_that_is_exempt(name: str, *, is_evaluated: bool) -> None:
    """Also where it is deleted with its collection, of which the request has no name."""
    more = STAMPS + "exempt: [{owner: o, reason: r, leases: [special]}]"
    guard = next(one for one in make_stamp_policies(parse(HEAD + more), 0) if one["metadata"]["name"].endswith("guard"))
    condition = guard["spec"]["matchConditions"][-1]["expression"]
    request = make_review(old=make_lease(put("metadata.name", name)))["request"]
    data = {"object": None, "oldObject": request["oldObject"], "request": {"operation": "DELETE"}}
    assert evaluated(condition, data) is is_evaluated


def test_no_stamps_without_a_suffix_and_none_with_two() -> None:
    assert make_stamp_policies(parse(HEAD), 0) == []
    two = "stamps: [{suffix: 1a2b3c4d, namespaces: [shop]}, {suffix: 2a2b3c4d, namespaces: [b]}]"
    with pytest.raises(PolicyError):
        make_stamp_policies(parse(HEAD + two), 0)
