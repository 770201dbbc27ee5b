"""Rules as policies: their findings are those of the engine, and nobody honest is refused."""

import concurrent.futures
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import Any, Final

from lab.e2e.api_client import APPLY, Reply
from lab.e2e.counting import CountingWebhook
from lab.e2e.elections import elect_each
from lab.e2e.manifests import format_micro_time
from lab.e2e.one_lease import OneLease
from lab.e2e.policy_writes import RandomWrites, write_all
from lab.e2e.quantile import find_quantile
from lab.e2e.toolchain import VERSIONS
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import WEBHOOK, Row, World
from tests.match_condition import EXPRESSION
from tests.rule_policies import compared
from tests.rule_policies.in_process import Broken, ExportedPolicies
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.api_server.doctor.documents import find_difference
from webhook.api_server.fence.objects import BINDING, POLICY
from webhook.api_server.rule_policies import RULE_POLICIES, list_names, make_manifests, make_stamp_policies

WRITES: Final = int(os.environ.get("LEASE_E2E_WRITES", "2000"))
ROUTE: Final = "policies"
PLURALS: Final = {POLICY: "validatingadmissionpolicies", BINDING: "validatingadmissionpolicybindings"}
FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
COSTLY: Final = [f"${{pod}}_a{number:02}*" for number in range(25)]
"""As many templates as a policy may have of this length."""
LONGEST: Final = 4096
HEAD: Final = "apiVersion: lease-webhook/v1\n"
STAMPED: Final = f"{HEAD}stamps: [{{suffix: 5f3a9c1e7b20d486, namespaces: [unlabeled]}}]\n"
FILE: Final = """\
apiVersion: lease-webhook/v1
preset: {preset}
bindings:
{bindings}
exempt:
- {{owner: o, reason: r, users: ['x"y\\{{}}'], groups: [backup], rules: [takeover-before-expiry, transitions-jump]}}
- {{owner: o, reason: r, service_accounts: [policies/op], operations: [CREATE], leases: ["lease-5*"]}}
- {{owner: o, reason: r, groups: [people], rules: [identity-binding], leases: ["op-0_*"]}}
overrides:
- namespaces: ["pol?cies"]
  leases: ["lease-2*"]
  rules: {{duration-too-long: {{mode: warn, deny_above_seconds: 100000}}, ping-time-writer: {{mode: warn}}}}
- leases: ["*-3-*"]
  operations: [UPDATE]
  rules: {{takeover-before-expiry: {{mode: audit}}, transitions-decrease: {{mode: deny}}}}
"""


def run(world: World) -> Iterator[Row]:
    """Check that policies are accepted, equal, and harmless."""
    namespace = world.create_namespace("policies", route=ROUTE)
    elsewhere = world.create_namespace("policies-elsewhere", route=ROUTE)
    pods = {name: (place, name) for name, place in (("op-0", namespace), ("op-1", namespace), ("op-2", elsewhere))}
    actors = {name: world.create_account(place, "op", pod).client for name, (place, pod) in pods.items()}
    actors |= {
        "person": world.create_user("mallory")[0],
        "backup": world.plane.create_client("backup", "people", "backup"),
        "hostile": world.plane.create_client('x"y\\{}', "people"),
        "node": world.plane.create_client("system:node:n1", "system:nodes", "people"),
        "admin": world.admin,
    }
    keep: dict[str, tuple[int, bytes]] = {}
    with CountingWebhook(world.certs, keep) as webhook:
        world.register(ROUTE, webhook.port, renewals=True)
        policy = _make_policy("strict", namespace)
        yield _check_accepted(world, policy)
        world.settle()
        candidates = world.plane.binaries.candidate_versions[0]
        places = (namespace, namespace, elsewhere)
        writers = [RandomWrites(actors, places, seed, candidates) for seed in range(4)]
        begin = time.monotonic()
        replies = write_all(writers, WRITES if world.plane.binaries.version == VERSIONS[0] else WRITES // 10)
        seconds = time.monotonic() - begin
        yield from _check_equal(world, policy, keep, (namespace, elsewhere), f"{len(replies)} writes, {seconds:.0f} s")
        _remove(world)
    yield from _check_honest(world)


def _make_policy(preset: str, namespace: str, more: str = "") -> Policy:
    holder = """['${pod}_*', "${pod}", 'a"b*']"""
    bindings = [
        f"- {{namespace: {namespace}, lease: {lease}, holder: {holder}{more}, "
        f"writers: [{namespace}/op, 'user:x\"y\\{{}}']}}"
        for seed in range(4)
        for lease, more in ((f"lease-0-{seed}", ""), (f"lease-1-{seed}", ", require_pod: true"), (f"lease-{seed}", ""))
    ]
    bindings.append(f"- {{namespace: {namespace}, lease: costly, holder: {COSTLY}, writers: [{namespace}/op]}}")
    text = FILE.format(preset=preset, bindings="\n".join(dict.fromkeys(bindings)))
    return parse(text + more.removeprefix(HEAD))


def _export_objects(policy: Policy, actions: list[str] | None = None) -> list[dict[str, Any]]:
    documents = make_manifests(policy, 0, EXPRESSION, ["kube-system", "kube-public"])
    for document in documents:
        if document["kind"] == BINDING and actions:
            document["spec"]["validationActions"] = actions
    return documents


def _send(world: World, request: Mapping[str, Any]) -> Reply:
    path = f"/apis/admissionregistration.k8s.io/v1/{PLURALS[request['kind']]}/{request['metadata']['name']}"
    return world.admin.send("PATCH", path, dict(request), media=APPLY, fieldManager="e2e", force=True)


def _check_accepted(world: World, policy: Policy) -> Row:
    replies = [_send(world, one) for one in _export_objects(policy, ["Audit"])]
    bad = [reply.message for reply in replies if reply.status not in {200, 201}]
    warned = [text for reply in replies for text in reply.warnings]
    return Row(
        "accepted by the API server", "; ".join([*bad, *warned]) or f"{len(replies)} objects", not (bad or warned)
    )


def _remove(world: World) -> None:
    """Remove the rules, and what of stamps is of the same kinds."""
    stamps = {one["metadata"]["name"] for one in make_stamp_policies(parse(STAMPED), 0)}
    for kind in (BINDING, POLICY):
        for name in sorted(list_names() | stamps):
            world.admin.send("DELETE", f"/apis/admissionregistration.k8s.io/v1/{PLURALS[kind]}/{name}")


class _Comparison:
    """The findings of policies about each write, beside those of the engine and the CEL library about its review."""

    def __init__(self, policy: Policy, *, whole: bool) -> None:
        """Set up the comparison.

        An API server before 1.37 records the first failed validation of a write, and not the `whole`.
        """
        self._policy, self._whole = policy, whole
        self._exported = ExportedPolicies(policy)
        self._rules = {
            (one["metadata"]["name"], index): validation["message"].split()[3].removesuffix(":")
            for one in _export_objects(policy)
            if one["kind"] == POLICY
            for index, validation in enumerate(one["spec"]["validations"])
        }
        self.counts: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.texts: Counter[str] = Counter()
        self.from_engine: list[str] = []
        self.from_library: list[str] = []

    def add(self, received: int, body: bytes, failures: Sequence[Mapping[str, Any]]) -> None:
        """Add one write: the time of its review, the review, and the failed validations of the audit log."""
        request = json.loads(body)["request"]
        broken = [Broken(*self._find_rule(one), one["message"]) for one in failures]
        verdict = compared.verdict_of(body, self._policy, received)
        expected = compared.expected(verdict, request)
        findings = compared.found({(one.mode, one.rule) for one in broken}, request)
        self.counts.update({"reviews": 1, "with findings": bool(expected)})
        self.rules.update(rule for _, rule in expected)
        # The one failure that an API server before 1.37 records may be one of which the table says nothing.
        if not (expected == findings if self._whole else findings <= expected and bool(broken) >= bool(expected)):
            differs = f"engine {sorted(expected - findings)} policies {sorted(findings - expected)}"
            self.from_engine.append(f"{differs} {_show(request)}")
        texts = compared.texts(verdict)
        self.texts.update(
            f"{one.rule} {'as ours' if one.text == texts[one.rule] else 'other'}"
            for one in broken
            if one.mode == "deny" and one.rule in texts
        )
        # The library ends a text at a null character.
        if b"\\u0000" not in body:
            self.counts["in process"] += 1
            if not self._is_same(set(in_process := self._exported.broken(request)), set(broken)):
                self.from_library.append(f"{in_process} {broken}")

    def _is_same(self, expected: AbstractSet[Any], findings: AbstractSet[Any]) -> bool:
        return expected == findings if self._whole else findings <= expected and bool(findings) == bool(expected)

    def _find_rule(self, failure: Mapping[str, Any]) -> tuple[str, str]:
        name: str = failure["policy"]
        return name.rpartition("-")[2], self._rules[name, int(failure["expressionIndex"])]


def _check_equal(
    world: World, policy: Policy, keep: Mapping[str, tuple[int, bytes]], namespaces: tuple[str, ...], writes: str
) -> Iterator[Row]:
    comparison = _Comparison(policy, whole=world.plane.binaries.minor >= 37)
    for event in (event for namespace in namespaces for event in world.read_audit_events(namespace)):
        annotations = event.get("annotations", {})
        if review := keep.get(annotations.get(f"{WEBHOOK}/uid", "")):
            comparison.add(*review, json.loads(annotations.get(FAILURES, "[]")))
    counts, wrong, other = comparison.counts, comparison.from_engine, comparison.from_library
    print(json.dumps([counts, comparison.rules, comparison.texts], sort_keys=True), file=sys.stderr)
    print("\n".join([*wrong[:10], *other[:5]]), file=sys.stderr)
    summary = (
        f"{counts['reviews']} of {writes}; {counts['with findings']} have findings, of {len(comparison.rules)} rules"
    )
    yield Row(
        "as the engine says of the reviews",
        f"{len(wrong)} differ: {wrong[0][:300]}" if wrong else summary,
        not wrong,
    )
    same = f"{counts['in process']} have the same rules and texts"
    yield Row("as the CEL library says", f"{len(other)} differ" if other else same, not other)


def _show(request: Mapping[str, Any]) -> str:
    new, old = (request.get(name) or {} for name in ("object", "oldObject"))
    some = {"user": request["userInfo"]["username"], "operation": request["operation"], "name": request.get("name")}
    fields = [{"spec": one.get("spec"), "entries": one.get("metadata", {}).get("managedFields")} for one in (old, new)]
    return json.dumps([some, fields])


def _install(world: World, policy: Policy, *, settle: bool = True) -> None:
    for document in _export_objects(policy):
        _send(world, document).expect()
    if settle:
        world.settle()


def _check_honest(world: World) -> Iterator[Row]:
    """Run elections under the policies alone, beside the webhook, and while both come and go; and try a theft."""
    alone, both = (
        world.create_namespace("policies-alone"),
        world.create_namespace("policies-both", route="policies-both"),
    )
    policy = _make_policy("strict", alone)
    with ExitStack() as stack:
        server = stack.enter_context(WebhookServer(world.directory, world.certs, policy="strict"))
        world.register("policies-both", server.port, failure_policy="Fail")
        _install(world, policy)
        for place, name in ((alone, "policies only"), (both, "with the webhook")):
            for which, observation in elect_each(world, stack, place):
                yield Row(f"{name}: {which}", observation, passed=True)
        refusals = [event for place in (alone, both) for event in _list_refused(world, place)]
        yield Row("nobody of them refused", "; ".join(refusals) or "nobody", not refusals)
        yield _check_denial_text(world, alone)
        yield _check_longest_holder(world, alone)
        yield _check_odd_writes(world, alone)
        if world.plane.binaries.minor >= 36:  # an older API server may end then: docs/policies-only.md
            _remove(world)
            yield _check_two_managers(world, alone)
            _install(world, policy)
            yield _check_coming_and_going(world, alone, policy)
        yield _measure_cost(world)
        _remove(world)


def _list_refused(world: World, namespace: str) -> Iterator[str]:
    for event in world.read_audit_events(namespace):
        status = event.get("responseStatus", {})
        if status.get("code", 0) in {400, 403, 422, 500}:
            yield f"{event['user']['username']} {event['verb']}: {status.get('message', '')[:300]}"


def _check_denial_text(world: World, namespace: str) -> Row:
    """Check that the text of a denial names the rule, the holder and the time that is left."""
    keeper, thief = (world.create_account(namespace, name).client for name in ("keeper", "thief"))
    mine, theirs = (OneLease(client, namespace, "held") for client in (keeper, thief))
    mine.create(holderIdentity="keeper_1", leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    reply = theirs.put(
        holderIdentity="thief_1", renewTime=format_micro_time(), acquireTime=format_micro_time(), leaseTransitions=2
    )
    words = ("lease-webhook-rules-leases-deny", 'is held by "keeper_1"', "rule takeover-before-expiry", "retry in ")
    good = reply.status in {403, 422} and all(word in reply.message for word in words)
    return Row("what a thief sees", reply.message, good)


def _check_longest_holder(world: World, namespace: str) -> Row:
    """Check that no length of names makes the comparison with many templates cost more than an API server spends."""
    # A pod's name may have 253 characters, but a file has this name, too.
    client = world.create_account(namespace, "op", "p" * 225).client
    reply = OneLease(client, namespace, "costly").create(holderIdentity="x" * LONGEST, renewTime=format_micro_time())
    good = reply.status == 403 and "rule identity-binding" in reply.message
    text = f"{len(COSTLY)} templates, a holder of {LONGEST} characters: HTTP {reply.status} {reply.message[-60:]}"
    return Row("the longest holder that is compared", text, good)


def _check_two_managers(world: World, namespace: str) -> Row:
    """Change and end rules that another field manager made, by the commands of docs/policies-only.md."""
    first = _make_policy("strict", namespace, STAMPED)
    other = _make_policy("strict", "elsewhere", STAMPED)
    warning = parse(f"{STAMPED}rules: {{foreign-writer: {{mode: warn}}}}\n")
    off = parse(f'{STAMPED}mode: "off"\nexempt: [{{owner: o, reason: r, users: [mallory]}}]\n')
    keeper, thief = (world.create_account(namespace, name).client for name in ("owner", "robber"))
    lease = OneLease(keeper, namespace, "of-two")
    lease.create(holderIdentity="owner_1", leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    steal = {"holderIdentity": "robber_1", "renewTime": format_micro_time(), "leaseTransitions": 1}
    problems: list[str] = []

    kept = Counter[str]()

    def change(policy: Policy, *command: str, is_whole: bool = True) -> None:
        objects = _export_objects(policy) + [one for one in make_stamp_policies(policy, 0) if one["kind"] in PLURALS]
        done = world.kubectl.run(*command, "-f", "-", manifest={"apiVersion": "v1", "kind": "List", "items": objects})
        for document in objects:
            difference = _compare_stored(world, document)
            # Variables of another manager may stay, and have a policy refused: never a binding, and never the guard.
            if difference and not is_whole and _has_variables_of_a_file(document):
                kept["policies that kept variables"] += 1
            elif difference:
                problems.append(f"{command[0]}: {difference}")
        if done.status and is_whole:
            problems.append(f"{command[0]}: {done.stderr[-300:]}")
        elif done.status:
            kept["refused applies"] += 1

    def try_steal(*expected: int) -> None:
        world.settle()
        reply = OneLease(thief, namespace, "of-two").patch({"spec": steal}, dryRun="All")
        if reply.status not in expected:
            problems.append(f"a steal: HTTP {reply.status} {reply.message[-200:]}")

    apply = ("apply", "--server-side", "--force-conflicts")
    try:
        change(first, "create")
        try_steal(403, 422)
        change(other, *apply, is_whole=False)
        change(off, *apply)
        try_steal(200)
        change(warning, *apply, is_whole=False)
        change(warning, "replace")
        change(first, *apply, is_whole=False)
        change(first, "replace")
        try_steal(403, 422)
    finally:
        _remove(world)
    if not kept:
        problems.append("an apply alone left nothing, so replacements were not tried")
    observation = ", ".join(f"{number} {what}" for what, number in sorted(kept.items()))
    return Row("changed and ended, made by another", "; ".join(problems) or f"ended; {observation}", not problems)


def _has_variables_of_a_file(document: Mapping[str, Any]) -> bool:
    name: str = document["metadata"]["name"]
    return document["kind"] == POLICY and name.startswith(RULE_POLICIES)


def _compare_stored(world: World, document: Mapping[str, Any]) -> str:
    """Return how what is stored differs from an object, "" if it does not."""
    path = f"/apis/admissionregistration.k8s.io/v1/{PLURALS[document['kind']]}/{document['metadata']['name']}"
    spec = dict(document["spec"])
    if document["kind"] == POLICY:
        # The shipped guard leaves them to the API server.
        defaults = {"matchPolicy": "Equivalent", "objectSelector": {}, "namespaceSelector": {}}
        spec["matchConstraints"] = defaults | spec["matchConstraints"]
    difference = find_difference(spec, world.admin.get(path)["spec"])
    return difference and f"{document['kind']} {document['metadata']['name']}: {difference[:200]}"


def _check_odd_writes(world: World, namespace: str) -> Row:
    """Send renewals of leases that are odd in one way: none may be refused."""
    client = world.create_account(namespace, "odd").client
    plants: dict[str, dict[str, Any]] = {
        "no-times": {"renewTime": ..., "acquireTime": ...},
        "no-duration": {"leaseDurationSeconds": ...},
        "nothing": dict.fromkeys(("holderIdentity", "renewTime", "acquireTime", "leaseDurationSeconds"), ...),
        "nulls": dict.fromkeys(("renewTime", "acquireTime", "leaseTransitions"), None),
        "zero-time": {"acquireTime": "0001-01-01T00:00:00.000000Z"},
        "unicode": {"holderIdentity": "caf\u00e9"},
        "quotes": {"holderIdentity": "a\"b'\\${pod}{}"},
    }
    problems = []
    for name, spec in plants.items():
        lease = OneLease(client, namespace, f"odd-{name}")
        lease.create(**({"renewTime": format_micro_time()} | spec)).expect(201)
        holder = str(spec.get("holderIdentity", "a") or "a").replace("Ellipsis", "a")
        ways: dict[str, Callable[[], Reply]] = {
            "put": lambda: lease.put(renewTime=format_micro_time()),  # noqa: B023 - called below
            "patch": lambda: lease.renew_by_patch(renewTime=format_micro_time()),  # noqa: B023
            "protobuf": lambda: lease.put_protobuf(renewTime=format_micro_time()),  # noqa: B023
            "apply": lambda: lease.apply(renewTime=format_micro_time(), holderIdentity=holder),  # noqa: B023
            "label": lambda: lease.label("a", "b"),  # noqa: B023
        }
        for how, renew in ways.items():
            reply = renew()
            if reply.status != 200:
                problems.append(f"{name} by {how}: HTTP {reply.status} {reply.message[-300:]}")
    return Row(
        "renewals of odd leases", "; ".join(problems) or f"{5 * len(plants)} of {len(plants)} leases", not problems
    )


def _check_coming_and_going(world: World, namespace: str, policy: Policy) -> Row:
    """Renew as a holder while the policies are removed and applied, again and again."""
    client = world.create_account(namespace, "busy").client
    lease = OneLease(client, namespace, "busy")
    lease.create(holderIdentity="busy_1", renewTime=format_micro_time()).expect(201)
    problems, renewals = list[str](), 0

    def remove_and_apply() -> None:
        for _ in range(4):
            _remove(world)
            time.sleep(1)
            _install(world, policy, settle=False)
            time.sleep(2)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        changes = pool.submit(remove_and_apply)
        while not changes.done():
            labeled = {"labels": {"n": str(renewals)}}
            for reply in (
                lease.put(renewTime=format_micro_time()),
                lease.renew_by_patch(labeled, renewTime=format_micro_time()),
            ):
                renewals += 1
                if reply.status != 200:
                    problems.append(f"HTTP {reply.status} {reply.message[-300:]}")
    error = changes.exception()
    if error:
        problems.append(f"removed and applied: {type(error).__name__}: {error}")
    return Row("installed and removed under traffic", "; ".join(problems) or f"{renewals} renewals", not problems)


def _measure_cost(world: World) -> Row:
    """Measure milliseconds of plain renewals, and of ones with a label, in turns: nothing, policies, both."""
    world.create_namespace("policies-cost")
    world.create_namespace("policies-cost-webhook", route="policies-both")
    world.settle()
    places = {"nothing": "kube-public", "policies": "policies-cost", "policies and webhook": "policies-cost-webhook"}
    client = world.create_user("cost")[0]
    times: dict[tuple[str, str], list[float]] = {}
    leases = {what: OneLease(client, place, "cost") for what, place in places.items()}
    for lease in leases.values():
        lease.create(renewTime=format_micro_time()).expect(201)
    for number in range(200):
        for what, lease in leases.items():
            for kind, metadata in (("renewal", None), ("renewal with a label", {"labels": {"n": str(number)}})):
                reply = lease.put(metadata, renewTime=format_micro_time())
                reply.expect(200)
                times.setdefault((what, kind), []).append(reply.milliseconds)
    cells = (f"{kind} {what} {find_quantile(samples, 0.5):.2f}" for (what, kind), samples in sorted(times.items()))
    return Row("ms, p50 of 200 in turns", ", ".join(cells), passed=True)
