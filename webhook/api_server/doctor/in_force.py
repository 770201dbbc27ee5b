"""Says whether lease-webhook is in force: by a write that the API server tried, and by what cluster and pods show."""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, ValidationError, convert

from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.api_server.doctor.certificate import SOON, bundle_end
from webhook.api_server.doctor.checks import examine
from webhook.api_server.doctor.documents import NAMESPACE_NAME, VALIDATING, ClusterObject, Documents, may_select
from webhook.api_server.fence.objects import BINDING, KINDS, MUTATING_BINDING, POLICY
from webhook.api_server.rule_policies import RULE_POLICIES
from webhook.kubernetes.selectors import Selector, is_met, requirements

PROOF: Final = json.dumps(
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lease-webhook-proof"},
        # In UTC this is in the year 10000, which JSON clients cannot decode.
        "spec": {
            "holderIdentity": "nobody",
            "leaseDurationSeconds": 15,
            "renewTime": "9999-12-31T23:59:59.999999-01:00",
        },
    }
).encode()
"""A lease that only we refuse, whoever sends it."""
NAME: Final = "lease-webhook"
"""The name of the Deployment, the value of its pods' label, and the prefix of the names of policies."""

_RULE: Final = "time-unreadable"
_STAMPED: Final = 'parsing time "10000-'
"""What an API server answers where policies that change leases come first: it does not decode such a time again."""
_ELSEWHERE: Final = "status -n NAMESPACE tries another one"
_SAMPLE: Final = re.compile(r"^lease_webhook_(\w+?)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


class Fact(Struct, frozen=True, rename="camel"):
    """A fact about one subject, or why it is not known; `is_wrong`: something should be changed."""

    subject: str
    text: str
    is_wrong: bool = False


class Sample(Struct, frozen=True):
    """One value of a metric, whose name is without `lease_webhook_`, in one pod."""

    pod: str
    name: str
    labels: Mapping[str, str]
    value: float


def samples(pod: str, text: str) -> list[Sample]:
    """Return our metrics in a text in Prometheus' format."""
    found = _SAMPLE.findall(text)
    return [Sample(pod, name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in found]


def interpret_proof(*, is_created: bool, said: str, out_of_scope: str = "") -> tuple[bool | None, str]:
    """Return whether writes are reviewed, None if that is not known, by what the API server said to PROOF.

    `out_of_scope` is why the namespace of the proof is, if it is.
    """
    if _RULE in said:
        by = "a policy of the API server" if "ValidatingAdmissionPolicy" in said else "the webhook"
        how = "warned of, and did not refuse," if is_created else "refused"
        return True, f"{by} {how} a lease that nothing else refuses (a dry run)"
    if is_created and out_of_scope:
        return False, f"{out_of_scope}; {_ELSEWHERE}"
    if is_created:
        return False, "the API server would store a lease that the webhook refuses (a dry run)"
    if _STAMPED in said:
        return None, f"an API server that stamps fails on the lease of the dry run; {_ELSEWHERE}, without stamps"
    return (False if "failed calling webhook" in said else None), said.rpartition("\n")[2]


def out_of_scope(found: Documents, namespace: str) -> str:
    """Return by which selectors a namespace is left out of every webhook and policy for leases.

    "" if one of them may select it, or there is none.
    """
    labels = {NAMESPACE_NAME: namespace}
    one = found.find_by_name("Namespace").get(namespace)
    known = None if one is None else one.metadata.labels or {}
    selectors = {entry.webhook.name: entry.webhook.namespace_selector for entry in found.dedicated}
    selectors |= dict(_rule_policies(found))
    if not selectors or any(may_select(selector, namespace, known) for selector in selectors.values()):
        return ""
    labels |= {key: value or "" for key, value in (known or {}).items()}
    unmet: dict[str, list[str]] = {}
    for name, selector in selectors.items():
        requirement = next(one for one in requirements(selector) if not is_met(one, labels))
        unmet.setdefault(str(requirement), []).append(name)
    parts = (
        f"{names[0]} {f'and {len(names) - 1} more select' if names[1:] else 'selects'} namespaces with {requirement}"
        for requirement, names in unmet.items()
    )
    return f"namespace {namespace} is out of scope: {'; '.join(parts)}"


def _rule_policies(found: Documents) -> Iterator[tuple[str, Selector | None]]:
    """Yield the rules that are policies with what they select; one that cannot be read selects everything."""
    bound = {one.spec.get("policyName") for one in found.find_all(BINDING)}
    for name, policy in found.find_by_name(POLICY).items():
        if name.startswith(RULE_POLICIES) and name in bound:
            constraints = policy.spec.get("matchConstraints")
            chosen = constraints.get("namespaceSelector") if isinstance(constraints, dict) else None
            try:
                yield name, convert(chosen, Selector | None)
            except ValidationError:
                yield name, None


def facts(found: Documents, metrics: Sequence[Sample], now: dt.datetime) -> Iterator[Fact]:
    """Yield what the objects of a cluster and the metrics of the pods show, in the order of a write's path."""
    policy: Policy | None = None
    try:
        stored = found.policy_text(one.metadata.namespace for one in found.find_all("Deployment"))
        policy = None if stored is None else parse(stored)
    except PolicyError as error:
        yield Fact("policy", f"the ConfigMap is refused: {error}", is_wrong=True)
    bindings = [*found.find_all(BINDING), *found.find_all(MUTATING_BINDING)]
    has_rules = any(one.metadata.name.startswith(RULE_POLICIES) for one in bindings)
    if VALIDATING not in found.unread and (found.dedicated or not has_rules):
        yield from _describe_configuration(found, policy, now)
    for one in (*found.find_all("Deployment"), *found.find_all("StatefulSet")):
        if subject := {NAME: "pods", "lease-recorder": "recorder"}.get(one.metadata.name):
            ready, wanted = one.status.get("readyReplicas", 0), one.spec.get("replicas", 1)
            yield Fact(subject, f"{ready} of {wanted} ready", is_wrong=ready != wanted)
    if ends := [one.value for one in metrics if one.name == "certificate_not_after_seconds"]:
        end = dt.datetime.fromtimestamp(min(ends), dt.UTC)
        yield Fact("certificate", f"until {end:%Y-%m-%d %H:%M}Z", is_wrong=end < now + SOON)
    yield from (_compare_pod(one, policy) for one in metrics if one.name == "policy_info")
    yield from _describe_policies(found, bindings)
    if metrics:
        yield _count_reviews(metrics)


def _describe_policies(found: Documents, bindings: Sequence[ClusterObject]) -> Iterator[Fact]:
    inactive = {f"{NAME}-stamp{end}" for end in ("", "-bounds", "-guard")}
    for one in bindings:
        if one.is_of_a_fence or one.metadata.name.startswith(NAME):
            actions = ", ".join(map(str, one.spec.get("validationActions", ["mutates"])))
            is_alone = one.spec.get("policyName") not in found.find_by_name(one.kind.removesuffix("Binding"))
            text = f"{one.metadata.name}: {'its policy does not exist' if is_alone else actions}"
            yield Fact("fence" if one.is_of_a_fence else "API server's policy", text, is_wrong=is_alone)
            if not is_alone and actions.startswith(("Deny", "mutates")):
                inactive.discard(one.metadata.name)
    namespaces = sorted(found.find_by_name("Namespace").items())
    stamped = [name for name, one in namespaces if (one.metadata.labels or {}).get(f"{NAME}/stamp") == "required"]
    if stamped and found.unread.isdisjoint(KINDS):
        text = f"not in force: {', '.join(sorted(inactive))}" if inactive else "in force; they need no webhook"
        yield Fact("stamps", f"{', '.join(stamped)}: {text}", is_wrong=bool(inactive))


def _describe_configuration(found: Documents, policy: Policy | None, now: dt.datetime) -> Iterator[Fact]:
    names = {""}
    for entry in found.dedicated:
        webhook = entry.webhook
        names.add(webhook.name)
        end = bundle_end(webhook.client_config)
        failure = "Fail" if webhook.fails_closed else "Ignore"
        text = f"failurePolicy {failure}, {webhook.timeout} s, {f'CA until {end:%Y-%m-%d}' if end else 'no CA'}"
        yield Fact("configuration", f"{entry.configuration.metadata.name or '(no name)'}: {webhook.name}, {text}")
    for report in examine(found, policy, now):
        for finding in report.findings if report.webhook in names else ():
            yield Fact("configuration", f"{finding.check}: {finding.place}", is_wrong=True)


def _compare_pod(one: Sample, stored: Policy | None) -> Fact:
    """Compare the policy in force in a pod with the ConfigMap, by their hash: a pod may have refused the file."""
    text = f"{one.labels.get('preset')} {one.labels.get('hash')} in {one.pod}"
    if one.labels.get("mode") == "off":
        return Fact("policy", f"{text}: mode off, so every write is allowed", is_wrong=True)
    if stored is None:
        return Fact("policy", f"{text}; what the ConfigMap has is not known")
    if one.labels.get("hash") == stored.digest:
        return Fact("policy", f"{text}, as in the ConfigMap")
    late = "a change takes up to a minute and a half, and one that a pod refuses is in its log"
    return Fact("policy", f"{text}; the ConfigMap has {stored.preset} {stored.digest}: {late}", is_wrong=True)


def _count_reviews(metrics: Sequence[Sample]) -> Fact:
    counted = Counter[tuple[str, str]]()
    for one in metrics:
        counted[one.name, one.labels.get("verdict") or one.labels.get("rule", "")] += int(one.value)
    verdicts = ", ".join(f"{counted['reviews_total', name]:,} {name}" for name in ("allowed", "warned", "denied"))
    rules = [
        f"{rule} {number:,}" for (name, rule), number in counted.most_common() if name == "findings_total" and number
    ]
    return Fact("verdicts", f"{verdicts} since the pods started{'; ' if rules else ''}{', '.join(rules[:5])}")
