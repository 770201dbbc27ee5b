"""Compares the rules that are policies of the API server in a cluster with the policy file."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import PolicyError
from webhook.admission.rules.mode import Mode
from webhook.api_server.doctor.checks import KILL_SWITCH, Report
from webhook.api_server.doctor.documents import ClusterObject, Documents, find_difference, report_danger
from webhook.api_server.rule_policies import RULE_POLICIES, make_shipped_manifests
from webhook.findings import ReportFinding
from webhook.text.commands import quote_name
from webhook.text.quoting import truncate

_EXPORT: Final = (
    "with the options of the installation: lease-webhook install --policies-only --policy {} | kubectl apply"
    " --server-side --force-conflicts -f -"
)
_MAX_SHOWN: Final = 200
"""Characters of a difference that are shown: a list of variables has up to 100,000."""


def examine_rules(documents: Documents, policy: Policy, file: str, now: int) -> Iterator[Report]:
    """Yield a report about the rules that are policies, if the documents have one of them.

    Namespaces are not compared: the policy file does not say them. `now` is in microseconds since 1970.
    """
    there = [one for one in documents.fence_objects if one.metadata.name.startswith(RULE_POLICIES)]
    if there:
        yield Report("rules as policies", "", tuple(_check_rules(there, documents, policy, file, now)))


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
        elif difference := find_difference(_drop_namespaces(manifest["spec"]), _drop_namespaces(applied.spec)):
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
            export,
        )
    known = {one["metadata"]["name"] for one in manifests}
    for one in there:
        if one.metadata.name not in known:
            yield report_danger(
                "rules-left-over",
                f"{one.kind} {one.metadata.name}",
                "this version does not make it, so it stays as it is whatever the policy file says.",
                f"kubectl delete {one.kind.lower()} {quote_name(one.metadata.name)}",
            )


def _drop_namespaces(spec: Mapping[str, Any]) -> dict[str, Any]:
    constraints = spec.get("matchConstraints")
    if not isinstance(constraints, dict):
        return {**spec}
    return {**spec, "matchConstraints": {key: one for key, one in constraints.items() if key != "namespaceSelector"}}


def _count(found: list[str]) -> str:
    first = truncate(found[0], _MAX_SHOWN)
    return f"{first}, and {len(found) - 1} more" if found[1:] else first
