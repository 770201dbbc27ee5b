"""Compares the stamps in a cluster with what the policy file says of them, as far as the documents show it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from webhook.api.managed_fields import entries_of
from webhook.api.text import quote
from webhook.api.times import stamp_of
from webhook.doctor.checks import Report
from webhook.doctor.documents import ClusterObject, Documents, MatchRule, danger, difference
from webhook.fence import BINDING, MUTATING_BINDING, MUTATING_POLICY
from webhook.findings import Finding, word
from webhook.install import stamp_objects
from webhook.policies import RULE_POLICIES, stamp_policies
from webhook.policy.model import Policy
from webhook.policy.schema import PolicyError
from webhook.rules.change import NODE_LEASES
from webhook.rules.stamps import NAMES, Stamps, stamp_in

_LABEL: Final = f"{NAMES}stamp"
_BY_USER: Final = f"{NAMES}stamp-writer"
_APPLY: Final = "apply the component `stamp` with the suffix of the policy file: docs/stamp.md."
_NEW_SUFFIX: Final = "install the component `stamp` with a new suffix, and name that in the policy file."
_DEFAULTS: Final[Mapping[str, Any]] = {"matchPolicy": "Equivalent", "objectSelector": {}, "namespaceSelector": {}}
"""What an API server adds to matchConstraints."""


def examine_stamps(documents: Documents, policy: Policy, now: int) -> Iterator[Report]:
    """Yield a report about the namespaces that the policy file lists under `stamps`, and about those that are labeled.

    Nothing is said of policies unless the documents have one, of any kind; `now` is in microseconds since 1970.
    """
    stamps = policy.stamps
    findings = [*_of_namespaces(documents, stamps)]
    if stamps and documents.shows_policies:
        made = _made_without_webhook(documents, policy, now)
        for suffix in sorted({one.suffix for one in stamps.values()}):
            findings += _of_policies(documents, suffix, made)
        findings += _of_others(documents)
    findings += [found for lease in documents.of("Lease") for found in _of_lease(lease, documents, stamps)]
    if stamps or findings:
        yield Report("stamps", "", tuple(findings))


def _made_without_webhook(documents: Documents, policy: Policy, now: int) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the specs that are as good where the rules are policies too: their guard has the file's mode."""
    made: Sequence[Mapping[str, Any]] = ()
    if any(name.startswith(RULE_POLICIES) for name in documents.named(BINDING)):
        with suppress(PolicyError):  # of several suffixes none are made
            made = stamp_policies(policy, now)
    return {(one["kind"], one["metadata"]["name"]): one["spec"] for one in made}


def _of_policies(
    documents: Documents, suffix: str, made: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[Finding]:
    for one in (one for one in stamp_objects(suffix) if one["kind"] not in documents.unread):
        kind, name = one["kind"], one["metadata"]["name"]
        applied, instead = documents.named(kind).get(name), made.get((kind, name))
        if applied is None and made and instead is None:
            continue  # the file has no guard
        if applied is None:
            is_new = kind in (MUTATING_POLICY, MUTATING_BINDING)
            yield danger(
                "stamp-not-applied",
                f"{kind} {name}",
                "the policy file says that writers are stamped, but this object does not exist"
                f"{'; API servers older than 1.36 do not serve its kind' if is_new else ''}. Without all of them the"
                " writers of live leases are not recorded, or not kept from each other.",
                _APPLY,
            )
        elif (changed := _changed(one["spec"], applied)) and (instead is None or _changed(instead, applied)):
            yield danger(
                "stamp-drift",
                f"{kind} {name}: {changed}",
                "it differs from what was verified with every kind of write: a client may be able to write the stamps,"
                " or an honest write may be refused.",
                _APPLY,
            )


def _changed(spec: Mapping[str, Any], applied: ClusterObject) -> str:
    return difference(_with_defaults(spec), _with_defaults(applied.spec))


def _with_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    constraints = spec.get("matchConstraints")
    return {**spec, "matchConstraints": {**_DEFAULTS, **constraints}} if isinstance(constraints, dict) else {**spec}


def _of_namespaces(documents: Documents, stamps: Mapping[str, Stamps]) -> Iterator[Finding]:
    for name, namespace in sorted(documents.named("Namespace").items()):
        labels, listed = namespace.metadata.labels or {}, stamps.get(name)
        value = labels.get(_LABEL, "")
        place = f"Namespace {name}: {_LABEL}={value}"
        is_labeled = value == "required" and name != NODE_LEASES
        if listed is None and is_labeled:
            yield danger(
                "stamp-namespace-not-listed",
                place,
                "the API server replaces managedFields there, and the webhook does not read the stamps: for its rules"
                " no renewal is recorded, so a steal is only a warning unless the guard refuses it.",
                "list the namespace under `stamps` in the policy file.",
            )
        elif listed is not None and not is_labeled:
            yield danger(
                "stamp-namespace-not-labeled",
                place,
                "the policy file says that writers are stamped there, and they are not: the rules read managedFields.",
                "kube-node-lease is never stamped: remove it from `stamps`."
                if name == NODE_LEASES
                else f"remove it from `stamps`, or: kubectl label namespace {word(name)} {_LABEL}=required",
            )
        elif listed is not None and listed.by_user != (labels.get(_BY_USER) == "user"):
            yield danger(
                "stamp-writer-differs",
                f"Namespace {name}: {_BY_USER}={labels.get(_BY_USER, '')}",
                "the policy file and the label disagree about whether all pods of a user are one writer, so the guard"
                " or the webhook refuses what the other allows.",
                f"{'add' if listed.by_user else 'remove'} the label {_BY_USER}=user, or change `writer` in the policy.",
            )


def _of_others(documents: Documents) -> Iterator[Finding]:
    for one in documents.of(MUTATING_POLICY):
        constraints = one.spec.get("matchConstraints")
        try:
            rules = msgspec.convert((constraints or {}).get("resourceRules") or (), tuple[MatchRule, ...])
        except msgspec.ValidationError:
            continue  # the API server refuses it
        if one.metadata.name != "lease-webhook-stamp" and any(rule.matches("leases") for rule in rules):
            yield danger(
                "stamp-may-be-changed",
                f"{MUTATING_POLICY} {one.metadata.name}",
                "it may change a lease after it was stamped, and the stamps with it.",
                "leave the group coordination.k8s.io out of its matchConstraints.",
            )


def _of_lease(lease: ClusterObject, documents: Documents, stamps: Mapping[str, Stamps]) -> Iterator[Finding]:
    """Check that the stamps of a lease were written by the policies that are there."""
    here, listed = stamps.get(lease.metadata.namespace), lease.metadata.managed_fields
    if here is None or not listed:
        return
    entries = entries_of(msgspec.Raw(msgspec.json.encode(listed)))
    stamp = stamp_in(here, lease.metadata.annotations, entries)
    policy = documents.named(MUTATING_POLICY).get("lease-webhook-stamp")
    since = stamp_of(policy.metadata.creation_timestamp) if policy else None
    place = f"Lease {lease.place}"
    annotated = [name for name in lease.metadata.annotations or {} if name.endswith(f"-{here.suffix}")]
    if (stamp is None and annotated) or (stamp and since and stamp.written and stamp.written < since):
        yield danger(
            "stamp-planted",
            f"{place}: {', '.join(quote(name) for name in annotated)}",
            "it was written before the policies that stamp were there, or while they were off, so any client may have"
            " written it.",
            _NEW_SUFFIX,
        )
