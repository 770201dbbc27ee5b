"""Says whether lease-webhook is in force: by a write that the API server tried, and by what cluster and pods show."""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, ValidationError, convert

from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import ALL_RULES
from webhook.api_server.doctor.bindings import examine_bindings
from webhook.api_server.doctor.certificate import SOON, check_bundle, find_end_of_bundle, refuse
from webhook.api_server.doctor.checks import check_form, examine
from webhook.api_server.doctor.documents import (
    NAMESPACE_NAME,
    VALIDATING,
    ClusterObject,
    Documents,
    MatchRule,
    WebhookEntry,
    may_select,
)
from webhook.api_server.doctor.service import check_service, report_closed_port
from webhook.api_server.fence.objects import BINDING, KINDS, MUTATING_BINDING
from webhook.api_server.rule_policies import is_never_evaluated
from webhook.findings import ReportFinding
from webhook.kubernetes.request import Operation, UserInfo
from webhook.kubernetes.selectors import is_met, list_requirements

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

RULE: Final = "time-unreadable"
"""The rule that refuses PROOF."""
_STAMP_ERROR: Final = 'parsing time "10000-'
"""What an API server answers where policies that change leases come first: it does not decode such a time again."""
_ELSEWHERE: Final = "status -n NAMESPACE tries another one"
_UNLISTED: Final = (
    "not listed under `stamps` in the webhook's policy, which so sees no renewal recorded there "
    "and only warns of a steal: docs/stamp.md#with-the-webhook"
)
_NO_RIGHT: Final = 'cannot create resource "leases"'
"""What an API server says to who may not send the dry run; other refusals are called Forbidden, too."""
_NEEDED: Final = (
    "the dry run needs the right to create leases: try -n NAMESPACE, for one in which you have it, or --as USER"
)
_MASTERS: Final = "system:masters"
_NO_CAUSE: Final = (
    "why is not known. An API server may not reach the pods (NetworkPolicy, firewall), or may not have read the"
    " configuration yet; docs/operate.md says where to look"
)
_NOT_BY_POLICIES: Final = (
    "no webhook is registered for leases, and the policies of the API server that have its rules did not refuse it."
    " `lease-webhook doctor --policy FILE` compares them with the policy file; a change takes the API server some"
    " seconds"
)
_DECISIVE: Final = frozenset(
    {
        *("ca-bundle-unreadable", "ca-bundle-expired", "certificate-untrusted", "path-unknown", "url-invalid"),
        *("service-missing", "service-port-missing", "no-ready-endpoint", "target-port-missing", "target-port-closed"),
    }
)
"""Checks of what no API server gets a verdict without."""
_SAMPLE: Final = re.compile(r"^lease_webhook_(\w+?)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


class Fact(Struct, frozen=True, rename="camel"):
    """A fact about one subject, or why it is not known; `is_wrong`: something should be changed.

    One that `doctor` finds too has the id of its `check`, and what it says of the `risk` and the `fix`.
    """

    subject: str
    text: str
    is_wrong: bool = False
    check: str = ""
    risk: str = ""
    fix: str = ""


class Handshake(Struct, frozen=True):
    """How a Service answered a TLS client that trusts what an entry's caBundle has, and why it did not."""

    entry: WebhookEntry
    outcome: Literal["trusted", "untrusted", "closed", "unknown"]
    reason: str = ""

    @property
    def findings(self) -> Sequence[ReportFinding]:
        """What is wrong for sure."""
        config = self.entry.webhook.client_config
        if config.service is None or self.outcome not in {"untrusted", "closed"}:
            return ()
        if self.outcome == "closed":
            return (report_closed_port(config.service),)
        return (refuse(f"what Service {config.service.place} serves", self.reason, config),)


class Sample(Struct, frozen=True):
    """One value of a metric, whose name is without `lease_webhook_`, in one pod."""

    pod: str
    name: str
    labels: Mapping[str, str]
    value: float


def parse_samples(pod: str, text: str) -> list[Sample]:
    """Return our metrics in a text in Prometheus' format."""
    found = _SAMPLE.findall(text)
    return [Sample(pod, name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in found]


def interpret_proof(
    *, is_created: bool, said: str, out_of_scope: str = "", silence: str = "", cause: str = ""
) -> tuple[bool | None, str]:
    """Return whether writes are reviewed, None if that is not known, by what the API server said to PROOF.

    The others are "" or why PROOF is not refused: its namespace is `out_of_scope`, the `silence` of the policy, or the
    `cause` that `find_cause` returns.
    """
    if RULE in said:
        by = "a policy of the API server" if "ValidatingAdmissionPolicy" in said else "the webhook"
        how = "warned of, and did not refuse," if is_created else "refused"
        return True, f"{by} {how} a lease that nothing else refuses (a dry run)"
    if is_created and out_of_scope:
        return False, f"{out_of_scope}; {_ELSEWHERE}"
    if is_created and silence:
        return None, silence
    if is_created:
        return False, f"the API server would store a lease that the webhook refuses (a dry run): {cause or _NO_CAUSE}"
    if _STAMP_ERROR in said:
        return None, f"an API server that stamps fails on the lease of the dry run; {_ELSEWHERE}, without stamps"
    last = said.rpartition("\n")[2]
    if _NO_RIGHT in last:
        return None, f"{last}; {_NEEDED}"
    return (False if "failed calling webhook" in said else None), last


def find_stored_policy(found: Documents) -> Policy | None:
    """Return the policy of the ConfigMap beside our Deployment; None if there is none. Raises PolicyError."""
    text = found.find_policy_text(one.metadata.namespace for one in found.find_all("Deployment"))
    return None if text is None else parse(text)


def explain_silence(policy: Policy, namespace: str) -> str:
    """Return why a policy says nothing of PROOF, although it allows not everything; "" if it does say something."""
    mode = policy.resolve(namespace, "lease-webhook-proof", Operation.CREATE).modes[RULE]
    if policy.mode is Mode.OFF or min(mode, policy.mode) >= Mode.WARN:
        return ""
    return f"the policy has {RULE} in mode {mode.word}, so whether writes are reviewed cannot be tried"


def find_cause(
    found: Documents, policy: Policy | None, namespace: str, handshakes: Sequence[Handshake], now: dt.datetime
) -> str:
    """Return why writes to a namespace cannot be reviewed, or are not refused; "" if no such cause is known."""
    if policy and policy.mode is Mode.OFF:
        return "the policy has mode off, so every write is allowed"
    if not found.dedicated:
        if VALIDATING in found.unread:
            return ""
        return _NOT_BY_POLICIES if found.rule_policies else "no webhook is registered for leases"
    namespace_object = found.find_by_name("Namespace").get(namespace)
    labels = None if namespace_object is None else namespace_object.metadata.labels or {}
    first = ""
    for entry in found.dedicated:
        if may_select(entry.webhook.namespace_selector, namespace, labels):
            problems = [*check_bundle(entry, now), *check_form(entry), *check_service(entry, found)]
            problems += [one for shake in handshakes if shake.entry == entry for one in shake.findings]
            decisive = [f"{one.check}: {one.place}" for one in problems if one.check in _DECISIVE]
            if not decisive:
                return ""
            first = first or decisive[0]
    return first


def find_entries_to_try(found: Documents, now: dt.datetime) -> Iterator[WebhookEntry]:
    """Yield the entries of which no object says that their Service cannot answer, or cannot be trusted."""
    for entry in found.dedicated:
        end = find_end_of_bundle(entry.webhook.client_config)
        if entry.webhook.client_config.service and end and end > now and not [*check_service(entry, found)]:
            yield entry


def describe_own_exemption(
    policy: Policy | None, user: str, groups: Sequence[str], namespace: str, now: int
) -> Iterator[Fact]:
    """Yield that a person is exempt, whose own writes then prove less than they seem; `now` in microseconds.

    Without a known policy, by what holds under each.
    """
    writer = UserInfo(user, tuple(groups))
    exempt = (policy or parse("apiVersion: lease-webhook/v1")).find_exempt_rules(
        writer, namespace, "", Operation.UPDATE, now
    )
    if exempt:
        why = f"in {_MASTERS}, which every policy exempts" if _MASTERS in groups else "exempt by the policy"
        yield Fact(
            "you",
            f"{user} is {why}: {len(exempt)} of {len(ALL_RULES)} rules never deny this user's writes. To see a denial,"
            f" write as another: kubectl --as system:serviceaccount:{namespace}:default",
        )


def describe_exclusion(found: Documents, namespace: str) -> str:
    """Return by which selectors a namespace is left out of every webhook and policy that would refuse PROOF.

    "" if one of them may select it, or there is none.
    """
    labels = {NAMESPACE_NAME: namespace}
    namespace_object = found.find_by_name("Namespace").get(namespace)
    known = None if namespace_object is None else namespace_object.metadata.labels or {}
    selectors = {entry.webhook.name: entry.webhook.namespace_selector for entry in found.dedicated}
    selectors |= {one.metadata.name: one.namespace_selector for one in found.rule_policies if _says_rule(one)}
    if not selectors or any(may_select(selector, namespace, known) for selector in selectors.values()):
        return ""
    labels |= {key: value or "" for key, value in (known or {}).items()}
    unmet: dict[str, list[str]] = {}
    for name, selector in selectors.items():
        requirement = next(one for one in list_requirements(selector) if not is_met(one, labels))
        unmet.setdefault(str(requirement), []).append(name)
    parts = (
        f"{names[0]} {f'and {len(names) - 1} more select' if names[1:] else 'selects'} namespaces with {requirement}"
        for requirement, names in unmet.items()
    )
    return f"namespace {namespace} is out of scope: {'; '.join(parts)}"


def _says_rule(policy: ClusterObject) -> bool:
    """True if an admission policy has RULE for the creation of a lease, as far as its spec can be read."""
    constraints = policy.spec.get("matchConstraints")
    rules = constraints.get("resourceRules") if isinstance(constraints, dict) else None
    try:
        found = convert(rules or (), tuple[MatchRule, ...])
    except ValidationError:
        return True
    return any(one.matches("leases") for one in found) and RULE in json.dumps(policy.spec.get("validations"))


def find_facts(
    found: Documents, metrics: Sequence[Sample], now: dt.datetime, handshakes: Sequence[Handshake] = ()
) -> Iterator[Fact]:
    """Yield what objects of a cluster, metrics of the pods and handshakes show, in the order of a write's path."""
    policy: Policy | None = None
    try:
        policy = find_stored_policy(found)
    except PolicyError as error:
        yield Fact("policy", f"the ConfigMap is refused: {error}", is_wrong=True)
    bindings = [*found.find_all(BINDING), *found.find_all(MUTATING_BINDING)]
    if VALIDATING not in found.unread:
        yield from _describe_configuration(found, policy, now)
        for handshake in handshakes:
            yield from _describe_handshake(handshake)
    for workload in (*found.find_all("Deployment"), *found.find_all("StatefulSet")):
        if subject := {NAME: "pods", "lease-recorder": "recorder"}.get(workload.metadata.name):
            ready, wanted = workload.status.get("readyReplicas", 0), workload.spec.get("replicas", 1)
            # With maxSurge, an update has more.
            yield Fact(subject, f"{ready} of {wanted} ready", is_wrong=ready < wanted)
    if ends := [one.value for one in metrics if one.name == "certificate_not_after_seconds"]:
        end = dt.datetime.fromtimestamp(min(ends), dt.UTC)
        yield Fact("certificate", f"until {end:%Y-%m-%d %H:%M}Z", is_wrong=end < now + SOON)
    yield from (_compare_pod(one, policy) for one in metrics if one.name == "policy_info")
    yield from _describe_policies(found, bindings, policy)
    if metrics:
        yield _count_reviews(metrics)


def _describe_policies(found: Documents, bindings: Sequence[ClusterObject], policy: Policy | None) -> Iterator[Fact]:
    inactive = {f"{NAME}-stamp{end}" for end in ("", "-bounds", "-guard")}
    for binding in bindings:
        if binding.is_of_a_fence or binding.metadata.name.startswith(NAME):
            actions = ", ".join(map(str, binding.spec.get("validationActions", ["mutates"])))
            policies = found.find_by_name(binding.kind.removesuffix("Binding"))
            bound = policies.get(str(binding.spec.get("policyName")))
            is_alone = bound is None
            if bound and is_never_evaluated(bound.spec):
                continue
            text = f"{binding.metadata.name}: {'its policy does not exist' if is_alone else actions}"
            yield Fact("fence" if binding.is_of_a_fence else "API server's policy", text, is_wrong=is_alone)
            if not is_alone and actions.startswith(("Deny", "mutates")):
                inactive.discard(binding.metadata.name)
    for report in examine_bindings(found, ()):
        yield from (_make_fact("API server's policy", finding) for finding in report.findings)
    namespaces = sorted(found.find_by_name("Namespace").items())
    stamped = [name for name, one in namespaces if (one.metadata.labels or {}).get(f"{NAME}/stamp") == "required"]
    if stamped and found.unread.isdisjoint(KINDS):
        text = (
            f"not in force: {', '.join(sorted(inactive))}" if inactive else f"in force{_add_to_stamps(found, policy)}"
        )
        yield Fact("stamps", f"{', '.join(stamped)}: {text}", is_wrong=bool(inactive))
        unlisted = [name for name in stamped if policy and name not in policy.stamps]
        if unlisted and found.dedicated and f"{NAME}-stamp" not in inactive:
            yield Fact("stamps", f"{', '.join(unlisted)}: {_UNLISTED}", is_wrong=True)


def _add_to_stamps(found: Documents, policy: Policy | None) -> str:
    """Return what else counts where writers are stamped, unless the policy of a webhook is known."""
    if not found.dedicated:
        return "; they need no webhook"
    return "" if policy else "; the webhook's policy file must list these namespaces under `stamps`: docs/stamp.md"


def _describe_configuration(found: Documents, policy: Policy | None, now: dt.datetime) -> Iterator[Fact]:
    names = {""}
    for entry in found.dedicated:
        webhook = entry.webhook
        names.add(webhook.name)
        end = find_end_of_bundle(webhook.client_config)
        failure = "Fail" if webhook.fails_closed else "Ignore"
        text = f"failurePolicy {failure}, {webhook.timeout} s, {f'CA until {end:%Y-%m-%d}' if end else 'no CA'}"
        yield Fact("configuration", f"{entry.configuration.metadata.name or '(no name)'}: {webhook.name}, {text}")
    for report in examine(found, policy, now):
        for finding in report.findings if report.webhook in names else ():
            yield _make_fact(report.about, finding)


def _make_fact(subject: str, finding: ReportFinding) -> Fact:
    text = f"{finding.check}: {finding.place}"
    return Fact(subject, text, is_wrong=True, check=finding.check, risk=finding.message, fix=finding.fix)


def _describe_handshake(handshake: Handshake) -> Iterator[Fact]:
    yield from (_make_fact("service", finding) for finding in handshake.findings)
    service = handshake.entry.webhook.client_config.service
    if service and handshake.outcome == "trusted":
        yield Fact(
            "service", f"{service.place} serves a certificate that the caBundle vouches for (kubectl port-forward)"
        )
    if service and handshake.outcome == "unknown":
        yield Fact("not known", f"which certificate Service {service.place} serves: {handshake.reason}")


def _compare_pod(sample: Sample, stored: Policy | None) -> Fact:
    """Compare the policy in force in a pod with the ConfigMap, by their hash: a pod may have refused the file."""
    text = f"{sample.labels.get('preset')} {sample.labels.get('hash')} in {sample.pod}"
    if sample.labels.get("mode") == "off":
        return Fact("policy", f"{text}: mode off, so every write is allowed", is_wrong=True)
    if stored is None:
        return Fact("policy", f"{text}; what the ConfigMap has is not known")
    if sample.labels.get("hash") == stored.digest:
        return Fact("policy", f"{text}, as in the ConfigMap")
    late = "a change takes up to a minute and a half, and one that a pod refuses is in its log"
    return Fact("policy", f"{text}; the ConfigMap has {stored.preset} {stored.digest}: {late}", is_wrong=True)


def _count_reviews(metrics: Sequence[Sample]) -> Fact:
    counted = Counter[tuple[str, str]]()
    for sample in metrics:
        counted[sample.name, sample.labels.get("verdict") or sample.labels.get("rule", "")] += int(sample.value)
    verdicts = ", ".join(f"{counted['reviews_total', name]:,} {name}" for name in ("allowed", "warned", "denied"))
    rules = [
        f"{rule} {number:,}" for (name, rule), number in counted.most_common() if name == "findings_total" and number
    ]
    return Fact("verdicts", f"{verdicts} since the pods started{'; ' if rules else ''}{', '.join(rules[:5])}")
