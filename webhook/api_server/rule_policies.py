"""The rules of a policy file as ValidatingAdmissionPolicies, which an API server evaluates without a webhook.

There is a policy for each mode, of Leases, of bound Leases and of LeaseCandidates. Each rule is a validation of its
own: an expression that errs allows the write and silences no other rule. Every text of a policy file enters an
expression as a quoted literal. An API server evaluates messages of allowed writes, too, so each begins with the
variable of its rule, which is evaluated once.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml

from webhook import __version__
from webhook.admission.policy import schema
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import BOUND
from webhook.admission.policy.schema import ANYWHERE, MODE, PolicyError
from webhook.admission.rules import holders
from webhook.admission.rules.change import Condition, Event
from webhook.admission.rules.holders import POD, Binding
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import EXEMPTIBLE, RULES
from webhook.admission.rules.rule import Rule
from webhook.api_server.fence.objects import ACTIONS, API_VERSION, BINDING, MADE_BY, POLICY, make_literal, make_pair
from webhook.api_server.install.objects import CERTIFICATES, make_pieces, make_stamp_objects
from webhook.kubernetes.formats import MAX_NAME
from webhook.kubernetes.request import GROUP, VERSIONS_OF, Operation
from webhook.text.quoting import quote

_LEASES, _BINDINGS, _CANDIDATES = "leases", "bindings", "candidates"
_RESOURCES: Final = {_LEASES: "leases", _BINDINGS: "leases", _CANDIDATES: "leasecandidates"}
_OPERATIONS: Final = {
    _LEASES: ["CREATE", "UPDATE"],
    _BINDINGS: ["CREATE", "UPDATE", "DELETE"],
    _CANDIDATES: ["CREATE", "UPDATE", "DELETE"],
}
_MODES: Final = (Mode.DENY, Mode.WARN, Mode.AUDIT)
_NO_OPERATIONS: Final = ["CONNECT"]
"""Of a policy that is never evaluated: nobody connects to a lease."""
_NO_VALIDATION: Final = {
    "expression": "true",
    "message": "lease webhook: no rule of the policy file leads to this mode",
}
"""A policy must have one."""
RULE_POLICIES: Final = "lease-webhook-rules-"
"""Prefix of the names of the rules' policies and their bindings."""
_UNUSED: Final = f"{RULE_POLICIES}unused"
_UNUSED_STAMP: Final = "lease-webhook-stamp-unused"
"""The names of policies that are never evaluated, to which the bindings of unused modes lead."""
STAMP_RULE: Final = "foreign-writer"
"""The rule that the guard of stamps says."""
GUARD: Final = "lease-webhook-stamp-guard"
"""The name of the policy of deploy/stamp that refuses, and of its binding that denies."""
_MAX_EXPRESSION: Final = 90_000
"""Characters of bindings, which are one expression; CEL takes 100,000."""
_MAX_COST: Final = 950_000
"""Of the templates of one binding, which are one expression: an API server ends one at 1,000,000 (PerCallLimit)."""
_LONGEST_HOLDER: Final = 4096
"""Characters of a holder that is compared with templates: `fits` of `identity-binding`."""
_MAX_LAYERS: Final = 100
"""Overrides of one setting: each nests one level deeper, and CEL takes 250."""
_NO_LIMIT: Final = "the webhook has no such limit"
_PLACE: Final = re.compile(r"([^{]*)\{(!?)((?:[^{}']|'(?:[^'\\]|\\.)*'|\{[^{}]*\})*)\}")
_NUMBER: Final = re.compile(r"\$([a-z]\w*)")
_VARIABLE: Final = re.compile(r"variables\.(\w+)")

Manifest = dict[str, Any]


@cache
def _load_variables() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(files("webhook.api_server").joinpath("variables.yaml").read_text())
    return found


def _find_name() -> str:
    """Return the name of the object that is written, for an expression without variables."""
    name: str = _load_variables()["objects"]["name"]
    return name


def is_refused_upstream(rule: Rule) -> bool:
    """True if an API server refuses the same itself, before it evaluates a policy or calls a webhook."""
    return rule.parity and not rule.in_cel.is_said


def make_manifests(policy: Policy, now: int, condition: str, excluded: Sequence[str]) -> list[Manifest]:
    """Return the policies and their bindings, for all namespaces but those that are excluded.

    The bindings are always the same ones. That of a mode that no rule has leads to a policy that is never evaluated,
    so that nothing of an earlier file stays in force. Only `policyName` says so: a forced apply always replaces it,
    and never removes the variables that another field manager wrote into a policy.
    `condition` is the match condition of the webhook, by which no plain renewal of a Lease is evaluated; bindings of
    leases are evaluated on those, too. An exemption that ended before `now`, in microseconds since 1970, is left out.
    Raises PolicyError for what no expression can hold.
    """
    file = _PolicyInCel(policy, now)
    is_bound = _match_any(f'request.namespace + "/" + {_find_name()}', map("/".join, policy.bindings))
    found = [_make_unused(_make_metadata(_UNUSED), excluded)]
    for kind, text in {_LEASES: condition, _BINDINGS: is_bound, _CANDIDATES: ""}.items():
        # An API server leaves out an empty list.
        conditions = {"matchConditions": [{"name": "is-evaluated", "expression": text}]} if text else {}
        for mode in _MODES:
            metadata, binding = _make_metadata(_name_policy(kind, mode)), {"validationActions": ACTIONS[mode.word]}
            validations = [one for rule in _list_rules(kind) for one in file.make_validations(rule, mode)]
            if validations and (kind != _BINDINGS or policy.bindings):
                variables = file.make_variables(kind, validations).items()
                spec = {
                    **_match_writes(_RESOURCES[kind], _OPERATIONS[kind], excluded),
                    **conditions,
                    "variables": [{"name": name, "expression": text} for name, text in variables],
                    "validations": validations,
                }
                found += make_pair(metadata, spec, binding)
            else:
                found.append(_bind(metadata, _UNUSED, binding))
    return found


def make_shipped_manifests(policy: Policy, now: int, included: Collection[str] = ()) -> list[Manifest]:
    """Return the policies for the writes that the shipped webhook reviews, and for the `included` namespaces.

    Raises PolicyError as `make_manifests` does.
    """
    entry = make_pieces(CERTIFICATES[0])[""][-1]["webhooks"][0]
    excluded = [one for one in entry["namespaceSelector"]["matchExpressions"][0]["values"] if one not in included]
    return make_manifests(policy, now, entry["matchConditions"][0]["expression"], excluded)


def list_names() -> set[str]:
    """Return the names of all rules' policies and bindings, whatever a policy file says."""
    return {_UNUSED} | {_name_policy(kind, mode) for kind in _RESOURCES for mode in _MODES}


def is_never_evaluated(spec: Mapping[str, Any]) -> bool:
    """True if the spec of a policy, as it is in a cluster, is that of unused modes."""
    constraints = spec.get("matchConstraints")
    rules = constraints.get("resourceRules") if isinstance(constraints, dict) else None
    return isinstance(rules, list) and all(
        isinstance(one, dict) and one.get("operations") == _NO_OPERATIONS for one in rules
    )


def make_stamp_policies(policy: Policy, now: int) -> list[Manifest]:
    """Return the policies of `deploy/stamp` with the suffix of the file, and its mode and exemptions for the guard.

    The guard denies in every preset, unless the file itself sets the mode of `foreign-writer`, or a cap: a lease whose
    writer is known is taken by no one else by mistake. It has a binding for each mode, of which the unused ones lead to
    a policy that is never evaluated, as those of the rules. There are none without `stamps`. Raises PolicyError if they
    have several suffixes.
    """
    suffixes = {one.suffix for one in policy.stamps.values()}
    if len(suffixes) > 1:
        raise PolicyError("have several suffixes, and each would stamp every lease", "stamps")
    in_file = (STAMP_RULE, MODE) in schema.list_settings(policy.document.rules)
    mode = min(policy.mode, policy.default.modes[STAMP_RULE] if in_file else Mode.DENY)
    found = [one for suffix in suffixes for one in make_stamp_objects(suffix)]
    for manifest in found:
        if manifest["metadata"]["name"] != GUARD:
            continue
        spec = manifest["spec"]
        if manifest["kind"] == BINDING:
            spec |= {"policyName": GUARD if mode is Mode.DENY else _UNUSED_STAMP, "validationActions": ACTIONS["deny"]}
        else:
            # Always this one: an apply removes no condition that another field manager wrote, and replaces its text.
            by_file = next(one for one in spec["matchConditions"] if one["name"] == "not-exempt-by-file")
            entries = _PolicyInCel(policy, now).find_exemptions(STAMP_RULE).values()
            texts = [f"!({_match_exempt(entry, _find_name())})" for entry in entries]
            by_file["expression"] = " && ".join(texts) or by_file["expression"]
    if found:
        found.append(_make_unused({"name": _UNUSED_STAMP}, []))
        for other in (Mode.WARN, Mode.AUDIT):
            target = GUARD if mode is other else _UNUSED_STAMP
            found.append(_bind({"name": _name_guard(other)}, target, {"validationActions": ACTIONS[other.word]}))
    return found


def list_guards() -> set[str]:
    """Return the names of all bindings of the guard of stamps, whatever a policy file says."""
    return {GUARD, *map(_name_guard, (Mode.WARN, Mode.AUDIT))}


def _name_guard(mode: Mode) -> str:
    return f"{GUARD}-{mode.word}"


def list_unexported(policy: Policy, now: int) -> Iterator[str]:
    """Yield what of a policy file the objects do not say, and what they need, in sentences."""
    for number, exemption in enumerate(policy.document.exempt):
        if exemption.until and now < schema.find_end(exemption):
            yield f"exempt[{number}] ends after {exemption.until}, which no policy knows: make these objects again then"
    for namespace, stamps in policy.stamps.items():
        writer = " lease-webhook/stamp-writer=user" if stamps.by_user else ""
        yield (
            f"Kubernetes 1.36: kubectl label namespace {namespace} lease-webhook/stamp=pending{writer}, and then, when "
            "no lease has a stamp, lease-webhook/stamp=required: docs/stamp.md"
        )
    for rule in RULES.values():
        about = rule.in_cel
        if not (about.is_said or rule.parity or rule.id == STAMP_RULE) and policy.default.modes[rule.id]:
            yield f"{rule.id} is not enforced: {about.lacks.partition('. ')[0]}"


def _list_rules(kind: str) -> Iterator[Rule]:
    """Yield the rules of a policy; bindings of leases have one of their own, which is evaluated on each renewal."""
    for rule in RULES.values():
        is_bound = rule.only_if is Condition.BOUND and kind != _CANDIDATES
        if rule.in_cel.is_said and _RESOURCES[kind] in rule.resources and is_bound == (kind == _BINDINGS):
            yield rule


def _name_policy(kind: str, mode: Mode) -> str:
    return f"{RULE_POLICIES}{kind}-{mode.word}"


def _make_metadata(name: str) -> Manifest:
    return {
        "name": name,
        "labels": {"app.kubernetes.io/component": "rules", "app.kubernetes.io/managed-by": "lease-webhook"},
        "annotations": {MADE_BY: f"lease-webhook {__version__}, install --policies-only"},
    }


def _match_writes(resource: str, operations: Sequence[str], excluded: Sequence[str]) -> Manifest:
    """Return the beginning of the spec of a policy."""
    rule = {"apiGroups": [GROUP], "apiVersions": [*VERSIONS_OF[resource]], "resources": [resource]}
    namespaces = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*excluded]}
    return {
        "failurePolicy": "Ignore",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [namespaces]} if excluded else {},
            "objectSelector": {},
            "resourceRules": [rule | {"operations": [*operations], "scope": "Namespaced"}],
        },
    }


def _make_unused(metadata: Manifest, excluded: Sequence[str]) -> Manifest:
    spec = {**_match_writes(_RESOURCES[_LEASES], _NO_OPERATIONS, excluded), "validations": [_NO_VALIDATION]}
    return {"apiVersion": API_VERSION, "kind": POLICY, "metadata": metadata, "spec": spec}


def _bind(metadata: Manifest, policy: str, spec: Manifest) -> Manifest:
    """Return a binding to a policy of another name."""
    return {"apiVersion": API_VERSION, "kind": BINDING, "metadata": metadata, "spec": {"policyName": policy} | spec}


class _PolicyInCel:
    """The settings of a policy file as expressions."""

    def __init__(self, policy: Policy, now: int) -> None:
        self._policy = policy
        self._exemptions = {n: one for n, one in enumerate(policy.document.exempt) if now < schema.find_end(one)}
        self._rules: dict[str, str] = {}
        self._of_one_rule: dict[str, str] = {}
        self._bindings = ", ".join(map(_make_entry, policy.bindings.items()))
        suffixes = (f"{make_literal(name)}: {make_literal(one.suffix)}" for name, one in policy.stamps.items())
        by_user = (make_literal(name) for name, one in policy.stamps.items() if one.by_user)
        self._stamps = {"suffixes": f"{{{', '.join(suffixes)}}}", "byUser": f"[{', '.join(by_user)}]"}
        if len(self._bindings) > _MAX_EXPRESSION:
            raise PolicyError(f"are too many for a policy of the API server; {_NO_LIMIT}", "bindings")
        for number, binding in enumerate(policy.document.bindings):
            cost = sum(_find_cost(_make_pattern(one)) for one in binding.holder)
            if cost > _MAX_COST:
                problem = (
                    f"{len(binding.holder)} templates are too many for a policy of the API server: with the longest "
                    f"holder they would cost {cost}, and {_MAX_COST} is the most; {_NO_LIMIT}"
                )
                raise PolicyError(problem, f"bindings[{number}].holder")

    def find_exemptions(self, rule: str) -> dict[int, schema.Exemption]:
        """Return who is exempt from a rule, besides administrators, by the position in the file."""
        return {number: one for number, one in self._exemptions.items() if rule in (one.rules or EXEMPTIBLE)}

    def make_variables(self, kind: str, validations: Iterable[Manifest]) -> dict[str, str]:
        """Return the variables that validations use, each after those that it uses."""
        data, overrides = _load_variables(), self._policy.document.overrides
        lookup = 'variables.bindings[?request.namespace + "/" + variables.lease]'
        found: dict[str, str] = data["writer"] | data["objects"]
        found |= {f"exempt{n}": _match_exempt(one, "variables.keptLease") for n, one in self._exemptions.items()}
        places = (_match_place(one, "variables.lease") for one in overrides)
        found |= {f"override{number}": _join_with_and(*place) for number, place in enumerate(places)}
        found |= {"bindings": f"{{{self._bindings}}}"} | data[_CANDIDATES if kind == _CANDIDATES else _LEASES]
        has_stamps = self._policy.stamps and kind != _CANDIDATES
        found |= self._stamps if has_stamps else {"isStampedWriter": "false", "stampedAt": '""'}
        found["bound"] = f"[{lookup}].filter(b, b.hasValue()).map(b, b.value())" if self._bindings else "[]"
        found |= data["binding"] | {name: _make_message(text) for name, text in data["phrases"].items()}
        found |= self._of_one_rule | self._rules
        used = _order_by_use(found, _VARIABLE.findall(str(validations)))
        # Once more, from the first on: whatever needs no other order keeps that of the file.
        return _order_by_use(found, (name for name in found if name in used))

    def make_validations(self, rule: Rule, mode: Mode) -> Iterator[Manifest]:
        """Yield the validations of a rule that lead to exactly this mode."""
        about = rule.in_cel
        numbers = {name: self._find_setting(rule.id, name) for name in self._policy.default.numbers(rule.id)}
        texts = (about.broken, about.warned, about.message, about.warning or about.message)
        broken, warned, message, warning = (_NUMBER.sub(lambda found: numbers[found[1]], text) for text in texts)
        own = {**about.variables, **{name: _make_message(text) for name, text in about.phrases.items()}}
        for name, text in own.items():
            self._of_one_rule[name] = _NUMBER.sub(lambda found: numbers[found[1]], text)
        exempt = ["variables.administrator", *(f"variables.exempt{number}" for number in self.find_exemptions(rule.id))]
        when = (_make_occasion(rule), f"!({' || '.join(exempt)})" if rule.id in EXEMPTIBLE else "")
        tiers = [("", broken, message, Mode.DENY)] if broken else []
        if warned:
            not_denied = f"!({broken})" if broken else ""
            tiers.append(("Warned", _join_with_and(not_denied, warned), warning, Mode.WARN))
        for suffix, condition, text, tier in tiers:
            reached = self._find_condition(rule.id, mode, tier)
            if reached is None:
                continue
            name = re.sub("-(.)", lambda found: found[1].upper(), rule.id) + suffix
            self._rules[name] = _join_with_and(*when, reached, condition)
            full = _make_message(f"{text} (lease webhook, rule {rule.id}{self._policy.end_with_page(rule.id)})")
            yield {
                "expression": f"!variables.{name}",
                "message": f"lease webhook, rule {rule.id}: {rule.summary}",
                "messageExpression": f'variables.{name} ? {full} : ""',
                "reason": "Forbidden" if ": Forbidden: " in _insert_phrases(about) else "Invalid",
            }

    def _find_condition(self, rule: str, mode: Mode, tier: Mode) -> str | None:
        """Return when a finding of this tier has exactly this mode, "" for always and None for never."""
        setting = self._find_setting(rule, MODE)
        if mode > tier:
            return None
        if not setting.isdecimal():
            return f"{setting} {'>=' if mode is tier else '=='} {int(mode)}"
        return "" if min(int(setting), tier) == mode else None

    def _find_setting(self, rule: str, name: str) -> str:
        """Return the value that counts for a lease: that of the last override, of its binding, else of the file."""
        policy, setting = self._policy, (rule, name)
        cap: int = policy.mode if name == MODE else 1 << 63
        default = policy.default.modes[rule] if name == MODE else policy.default.numbers(rule)[name]
        text = str(min(int(default), cap))
        if setting in BOUND and policy.bindings and (bound := policy.bound.modes[rule]) != default:
            text = f"(variables.isBound ? {min(int(bound), cap)} : {text})"
        layers = [(n, schema.list_settings(one.rules).get(setting)) for n, one in enumerate(policy.document.overrides)]
        for number, value in layers:
            if value is not None:
                text = f"(variables.override{number} ? {min(int(value), cap)} : {text})"
        if text.count("?") > _MAX_LAYERS:
            raise PolicyError(f"more than {_MAX_LAYERS} of them set {rule}, which no expression can hold", "overrides")
        return text


def _order_by_use(found: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
    """Return the wanted variables and those that they use, each after those that it uses."""
    ordered: dict[str, str] = {}

    def add(names: Iterable[str]) -> None:
        for name in names:
            if name in found and name not in ordered:
                add(_VARIABLE.findall(found[name]))
                ordered[name] = found[name]

    add(wanted)
    return ordered


def _make_occasion(rule: Rule) -> str:
    """Return on what a rule is evaluated; a takeover and a steal are one event."""
    events = {"change" if one in (Event.TAKEOVER, Event.STEAL) else one.value for one in rule.events}
    operations = [one.value for one in Operation if one in rule.operations]
    return _join_with_and(_match_any("request.operation", operations), _match_any("variables.event", sorted(events)))


def _make_message(text: str) -> str:
    """Return a text with places as an expression."""
    parts: list[str] = []
    for before, mark, place in _PLACE.findall(f"{text}{{}}"):
        parts += [make_literal(before), _quote_in_cel(place) if mark else f"string({place})"]
    return " + ".join(one for one in parts if one not in {'""', "string()"})


def _insert_phrases(about: RuleInCel) -> str:
    """Return the message of a rule with its phrases, and those of several rules, in their places."""
    phrases = {**_load_variables()["phrases"], **about.phrases}
    return _VARIABLE.sub(lambda found: phrases.get(found[1], found[0]), about.message or about.warning)


def _quote_in_cel(expression: str) -> str:
    """Return a name in quotes, as verdicts quote it; one that is not printable ASCII is not shown."""
    short = f'[{expression}].map(t, size(t) <= 128 ? t : t.substring(0, 128) + "...")'
    return f'{short}.map(t, t.matches("^[ -~]*$") ? strings.quote(t) : "(a name that cannot be shown)")[0]'


def _join_with_and(*terms: str) -> str:
    return " && ".join(f"({one})" if "||" in one or "?" in one else one for one in terms if one) or "true"


def _match_any(what: str, values: Iterable[str]) -> str:
    listed = ", ".join(map(make_literal, values))
    return f"{what} in [{listed}]" if listed else ""


def _match_exempt(entry: schema.Exemption, lease: str) -> str:
    return _join_with_and(_match_writer(entry), *_match_place(entry, lease))


def _match_writer(entry: schema.Exemption) -> str:
    groups = _match_any("g", entry.groups)
    of_group = f"request.userInfo.?groups.orValue([]).exists(g, {groups})" if groups else ""
    return " || ".join(filter(None, (_match_any("request.userInfo.username", schema.list_users(entry)), of_group)))


def _match_place(entry: schema.Exemption | schema.Override, lease: str) -> tuple[str, str, str]:
    """Return what an entry says of operations, namespaces and leases; `lease` is an expression that has its name."""
    operations = _match_any("request.operation", entry.operations or ())
    return operations, _match_globs("request.namespace", entry.namespaces), _match_globs(lease, entry.leases)


def _match_globs(what: str, globs: Sequence[str]) -> str:
    if ANYWHERE in globs:
        return ""
    names = _match_any(what, filter(holders.is_literal, globs))
    patterns = [f"{what}.matches({make_literal(_make_pattern(one))})" for one in globs if not holders.is_literal(one)]
    return " || ".join(filter(None, (names, *patterns)))


def _make_pattern(glob: str) -> str:
    """Return a glob as a pattern of RE2; `${pod}` in it stays as it is."""
    wild = {"*": ".*", "?": "."}
    parts = (re.sub("[^a-zA-Z0-9]", lambda c: wild.get(c[0], f"\\x{{{ord(c[0]):x}}}"), one) for one in glob.split(POD))
    return f"^(?s){POD.join(parts)}$"


def _find_cost(pattern: str) -> int:
    """Return what it costs an API server to compare the longest holder with a template, for the longest name of a pod.

    CEL charges a tenth of the text times a quarter of the pattern (`matches` in cel-go). Names longer than a host name
    are compared twice.
    """
    pods = pattern.count(POD)
    added = [len(r"\Q\E") + size - len(POD) for size in ((MAX_NAME, holders.MAX_HOSTNAME) if pods else ())]
    lengths = [len(pattern) + pods * one for one in added] or [len(pattern)]
    return sum(math.ceil((_LONGEST_HOLDER + 1) / 10) * math.ceil(one / 4) for one in lengths)


def _make_entry(item: tuple[tuple[str, str], Binding]) -> str:
    """Return one binding as an entry of a map."""
    lease, binding = item
    accounts = (f"system:serviceaccount:{':'.join(account)}" for account in sorted(binding.service_accounts))
    lists = {
        "writers": [*accounts, *sorted(binding.users)],
        "holders": map(_make_pattern, binding.holders),
        "needs": ["pod"] if binding.require_pod else [],
        "shown": [", ".join(map(quote, binding.holders))],
    }
    parts = (f'"{name}": [{", ".join(map(make_literal, texts))}]' for name, texts in lists.items())
    return f"{make_literal('/'.join(lease))}: {{{', '.join(parts)}}}"
