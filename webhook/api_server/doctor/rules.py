"""Compares the rules that are policies of the API server in a cluster with the policy file.

The namespaces that they select are those of `install --policies-only`, whatever the file says, so they are compared
without a file, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import combinations
from typing import Any, Final

import msgspec

from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.admission.rules.mode import Mode
from webhook.api_server.doctor.bindings import is_other_binding
from webhook.api_server.doctor.checks import CHOICES, KILL_SWITCH, Report, describe_selector, list_some
from webhook.api_server.doctor.documents import (
    ELSE_REPLACE,
    ClusterObject,
    Documents,
    find_difference,
    may_select,
    report_danger,
)
from webhook.api_server.fence.objects import BINDING, POLICY
from webhook.api_server.rule_policies import (
    RULE_POLICIES,
    is_never_evaluated,
    list_names,
    make_shipped_manifests,
)
from webhook.findings import ReportFinding
from webhook.kubernetes.selectors import Selector, list_requirements
from webhook.text.commands import quote_name
from webhook.text.quoting import truncate

_EXPORT: Final = (
    "with the options of the installation: lease-webhook install --policies-only --policy {} | kubectl apply"
    " --server-side --force-conflicts -f -"
)
_MAX_SHOWN: Final = 200
"""Characters of a difference that are shown: a list of variables has up to 100,000."""


_LABELS: Final = {"app.kubernetes.io/component": "rules", "app.kubernetes.io/managed-by": "lease-webhook"}
"""By which a copy under another name is found."""
_SELECTOR: Final = "namespaceSelector"

_Selectors = Mapping[tuple[str, str], Mapping[str, object]]
"""The selectors of namespaces by their places, for each object by its kind and name."""


def examine_rules(documents: Documents, policy: Policy | None, file: str, now: int) -> Iterator[Report]:
    """Yield a report about the rules that are policies, if the documents have one of them.

    Without a `policy` only the namespaces that they select are compared. `now` is in microseconds since 1970.
    """
    there = [one for one in documents.fence_objects if _is_of_rules(one)]
    if not there:
        return
    # A policy of a mode that the file no longer uses is not bound, so it does nothing.
    bound = {str(one.spec.get("policyName")) for one in there if one.kind == BINDING}
    compared = [one for one in there if one.kind == BINDING or one.metadata.name in bound]
    found = {(one.kind, one.metadata.name): _find_selectors(one.spec) for one in compared}
    # An operator chose them by options of `install`, and what most of the objects have says which.
    printed = max(
        _list_printed_selectors(), key=lambda one: sum(found.get(name) == wanted for name, wanted in one.items())
    )
    findings = [*_check_namespaces(documents, printed, found, _EXPORT.format(file))]
    if policy:
        findings += _check_rules(there, documents, policy, file, now)
    (left_out, *_) = filter(None, map(_list_values, printed.values()))
    note = f"the rules that are policies leave out, as `install --policies-only` has it: {list_some(left_out)}"
    yield Report("rules as policies", "", tuple(findings), note="" if findings else note)


def _is_of_rules(one: ClusterObject) -> bool:
    labels = one.metadata.labels or {}
    return one.metadata.name.startswith(RULE_POLICIES) or all(labels.get(key) == text for key, text in _LABELS.items())


@cache
def _list_printed_selectors() -> list[_Selectors]:
    """Return the selectors that `install --policies-only` prints, for each choice of components."""
    policy = parse("apiVersion: lease-webhook/v1")
    choices = [chosen for count in range(len(CHOICES) + 1) for chosen in combinations(CHOICES, count)]
    return [_list_selectors(make_shipped_manifests(policy, 0, chosen)) for chosen in choices]


def _list_selectors(manifests: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, object]]:
    """Return the selectors of all policies and bindings that a policy file may lead to: they are the same for each."""
    evaluated = (one for one in manifests if one["kind"] == POLICY and not is_never_evaluated(one["spec"]))
    of_policies = _find_selectors(next(evaluated)["spec"])
    of_kinds: dict[str, dict[str, object]] = {POLICY: of_policies, BINDING: {}}
    return {(kind, name): found for name in list_names() for kind, found in of_kinds.items()}


def _find_selectors(value: object, path: str = "spec") -> dict[str, object]:
    """Return the selectors of namespaces in a spec by their places; an empty one is as none."""
    found: dict[str, object] = {}
    for key, one in value.items() if isinstance(value, dict) else ():
        place = f"{path}.{key}"
        if key != _SELECTOR:
            found |= _find_selectors(one, place)
        elif one:
            found[place] = one
    return found


def _list_values(selectors: Mapping[str, object]) -> list[str]:
    return [name for one in selectors.values() for each in list_requirements(_read(one)) for name in each.values or ()]


def _read(selector: object) -> Selector | None:
    """Return a selector; None, which selects everything, if an API server would not take it."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(selector, Selector)
    return None


def _check_namespaces(
    documents: Documents, printed: _Selectors, found: _Selectors, export: str
) -> Iterator[ReportFinding]:
    """Check that all the objects select what `install` prints."""
    differing = {name: wanted for name, wanted in printed.items() if found.get(name, wanted) != wanted}
    if not differing:
        return
    known = documents.namespace_labels
    left_out = [
        namespace
        for namespace, labels in sorted(known.items())
        if any(
            _selects(wanted, namespace, labels) and not _selects(found[name], namespace, labels)
            for name, wanted in differing.items()
        )
    ]
    effect = "a namespace that this leaves out is without these rules, and in one that it adds they are in force."
    if left_out:
        count = f"{len(left_out)} of the {len(known)} namespaces that were read"
        effect = f"rules are not in force in {list_some(left_out)}, {count}."
    yield report_danger(
        "rules-namespaces",
        _count([f"{' '.join(name)}: {_describe(found[name])}" for name in differing]),
        f"{effect} `install --policies-only` prints something else, and the same for all policies.",
        export,
    )


def _selects(selectors: Mapping[str, object], namespace: str, labels: Mapping[str, str]) -> bool:
    return all(may_select(_read(one), namespace, labels) for one in selectors.values())


def _describe(selectors: Mapping[str, object]) -> str:
    texts = [f"{place}: {describe_selector(_read(one))}" for place, one in selectors.items()]
    return "; ".join(texts) or "no namespaceSelector, which selects every namespace"


def _check_rules(
    there: list[ClusterObject], documents: Documents, policy: Policy, file: str, now: int
) -> Iterator[ReportFinding]:
    export = _EXPORT.format(file)
    try:
        manifests = make_shipped_manifests(policy, now)
    except PolicyError as error:
        yield report_danger(
            "rules-not-exported",
            f"{file}: {error}",
            "policies of the API server cannot say this file, so those in the cluster are of another one.",
            "change the policy file, or install the webhook.",
        )
        return
    if policy.mode is Mode.OFF:
        yield KILL_SWITCH
    missing: list[str] = []
    changed: list[str] = []
    for manifest in (one for one in manifests if one["kind"] not in documents.unread):
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        applied = documents.find_by_name(kind).get(name)
        if applied is None:
            missing.append(f"{kind} {name}")
        elif difference := find_difference(_drop_selectors(manifest["spec"]), _drop_selectors(applied.spec)):
            changed.append(f"{kind} {name}: {difference}")
    if missing:
        yield report_danger(
            "rules-not-applied",
            _count(missing),
            "without it some rules of the policy file are not in force, or rules of an earlier file stay in force.",
            export,
        )
    if changed:
        yield report_danger(
            "rules-drift",
            _count(changed),
            "the rules in force are those of another policy file, of another version, or of an exemption that has"
            " ended.",
            f"{export}; {ELSE_REPLACE}",
        )
    known = list_names()
    for one in there:
        if one.metadata.name not in known and not is_other_binding(one, known):
            yield report_danger(
                "rules-left-over",
                f"{one.kind} {one.metadata.name}",
                "this version does not make it, so it stays as it is whatever the policy file says.",
                f"kubectl delete {one.kind.lower()} {quote_name(one.metadata.name)}",
            )


def _drop_selectors(value: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(value, dict):
        return value
    return {key: _drop_selectors(one) for key, one in value.items() if key != _SELECTOR}


def _count(found: list[str]) -> str:
    first = truncate(found[0], _MAX_SHOWN)
    return f"{first}, and {len(found) - 1} more" if found[1:] else first
