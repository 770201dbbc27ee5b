"""The examined objects: webhook configurations and their selectors, and what shows how they and fences work.

A configuration is decoded as the API server reads it: its defaults are applied, everything else is unchanged.
Source of the defaults: kubernetes `pkg/apis/admissionregistration/v1/defaults.go`.
"""

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from webhook.api_server.fence import objects as fence
from webhook.api_server.rule_policies import RULE_POLICIES, is_never_evaluated
from webhook.certificates.files import LEAF_CERTIFICATE, LEAF_KEY, MAX_FILE, Pair
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.request import GROUP, Resource
from webhook.kubernetes.selectors import Selector, is_met, list_requirements

VALIDATING: Final = "ValidatingWebhookConfiguration"
MUTATING: Final = "MutatingWebhookConfiguration"

ELSE_REPLACE: Final = (
    "where that is refused or this stays, another field manager wrote it too: then give the same to "
    "kubectl replace -f -"
)
"""What always works: an apply never removes from a list what another field manager put there."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The API server sets this label on every namespace, and it cannot be changed."""


class MatchRule(Struct, frozen=True, rename="camel"):
    """The requests that are sent to an entry."""

    api_groups: tuple[str, ...] | None = None
    api_versions: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    scope: Literal["*", "Cluster", "Namespaced"] | None = None

    def matches(self, resource: str) -> bool:
        """True if requests for this resource of our group match, in any version and operation."""
        names_group = {GROUP, "*"} & set(self.api_groups or ())
        names_resource = {resource, "*", "*/*"} & set(self.resources or ())
        return bool(names_group and names_resource) and self.scope != "Cluster"

    @property
    def is_wild(self) -> bool:
        """True if it matches our kinds by a wildcard in group or resource."""
        return "*" in (self.api_groups or ()) or bool({"*", "*/*"} & set(self.resources or ()))


class ServiceReference(Struct, frozen=True):
    """The Service to call."""

    namespace: str
    name: str
    path: str | None = None
    port: int | None = None

    @property
    def place(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def number(self) -> int:
        """The port of the Service, by default 443."""
        return 443 if self.port is None else self.port


class ClientConfig(Struct, frozen=True, rename="camel"):
    """The address to call and the roots to trust."""

    service: ServiceReference | None = None
    url: str | None = None
    ca_bundle: str | None = None

    @property
    def path(self) -> str:
        """The path that the API server calls; raises ValueError for a broken URL."""
        if self.service:
            return self.service.path or "/"
        return urlsplit(self.url or "").path or "/"

    @property
    def has_broken_url(self) -> bool:
        """True if a URL is given, and it does not say which host and port to call."""
        if self.service or self.url is None:
            return False
        try:
            address = urlsplit(self.url)
            has_port = address.port != 0
        except ValueError:
            return True
        return not (address.hostname and has_port)

    @property
    def server_name(self) -> str:
        """The name that the served certificate must have; "" if the document contains none."""
        if self.service:
            return f"{self.service.name}.{self.service.namespace}.svc"
        try:
            return urlsplit(self.url or "").hostname or ""
        except ValueError:
            return ""

    @property
    def roots(self) -> bytes:
        """The PEM of the caBundle; empty if it is absent, not base64, or too long to be parsed."""
        try:
            # Go's decoder ignores line breaks.
            pem = base64.b64decode("".join((self.ca_bundle or "").splitlines()), validate=True)
        except ValueError:
            return b""
        return pem if len(pem) <= MAX_FILE else b""


class MatchCondition(Struct, frozen=True):
    """A CEL expression that must be true for the webhook to be called."""

    name: str
    expression: str


class Metadata(Struct, frozen=True, rename="camel"):
    """The fields of an object's metadata that are used."""

    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[object] | None = None
    managed_fields: list[object] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class Webhook(Struct, frozen=True, rename="camel"):
    """One entry of a configuration."""

    name: str
    client_config: ClientConfig
    rules: tuple[MatchRule, ...] | None = None
    failure_policy: Literal["Fail", "Ignore"] | None = None
    timeout_seconds: Annotated[int, Meta(ge=1, le=30)] | None = None
    match_policy: Literal["Equivalent", "Exact"] | None = None
    side_effects: Literal["None", "NoneOnDryRun"] | None = None
    namespace_selector: Selector | None = None
    object_selector: Selector | None = None
    match_conditions: tuple[MatchCondition, ...] | None = None

    @property
    def fails_closed(self) -> bool:
        """True if a failed call denies the write, which is the default."""
        return self.failure_policy != "Ignore"

    @property
    def timeout(self) -> int:
        """Seconds that a write may wait, by default ten."""
        return 10 if self.timeout_seconds is None else self.timeout_seconds

    def list_versions(self, resource: str) -> frozenset[str]:
        """Return the versions of a resource that the rules list."""
        return frozenset(one for rule in self._list_rules_for(resource) for one in rule.api_versions or ())

    def reviews(self, resource: str, operation: str) -> bool:
        """True if a rule matches this operation on this resource."""
        return any({operation, "*"} & set(rule.operations or ()) for rule in self._list_rules_for(resource))

    @property
    def is_about_leases(self) -> bool:
        """True if any lease or candidate can reach it."""
        return any(map(self._list_rules_for, Resource))

    @property
    def is_dedicated(self) -> bool:
        """True if it names our group, rather than catching leases with everything else."""
        return any(GROUP in (rule.api_groups or ()) for rule in self.rules or ())

    def _list_rules_for(self, resource: str) -> list[MatchRule]:
        return [rule for rule in self.rules or () if rule.matches(resource)]


class Configuration(Struct, frozen=True, rename="camel"):
    """A ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""

    kind: str
    metadata: Metadata = Metadata()
    webhooks: tuple[Webhook, ...] | None = None

    @property
    def entries(self) -> list["WebhookEntry"]:
        """The webhooks with their places."""
        return [WebhookEntry(self, position, webhook) for position, webhook in enumerate(self.webhooks or ())]


class WebhookEntry(Struct, frozen=True):
    """One webhook and its place in a configuration."""

    configuration: Configuration
    position: int
    webhook: Webhook

    def report(self, check: str, place: str, risk: str, fix: str) -> ReportFinding:
        """Return a finding about a field of the webhook, which `place` begins with."""
        return report_danger(check, f"webhooks[{self.position}].{place}", risk, fix)

    def has_chosen(self, choice: str) -> bool:
        """True if the configuration declares that this is intended."""
        return (self.configuration.metadata.annotations or {}).get(f"lease-webhook/{choice}") == "reviewed"


def report_danger(check: str, place: str, risk: str, fix: str) -> ReportFinding:
    """Return a finding: a place with the value found there, the risk, and the fix, each in one or two sentences."""
    return ReportFinding(check, Severity.ERROR, risk, fix, place)


def may_select(selector: Selector | None, namespace: str, labels: Mapping[str, str] | None = None) -> bool:
    """True if a namespace with just these labels is selected; if they are not known, or can be changed, by its name."""
    known = {**(labels or {}), NAMESPACE_NAME: namespace}
    asked = (one for one in list_requirements(selector) if labels is not None or one.key == NAMESPACE_NAME)
    return all(is_met(one, known) for one in asked)


def can_select(selector: Selector | None) -> bool:
    """True if some namespace could meet all requirements at once."""
    requirements = list_requirements(selector)
    for key in {one.key for one in requirements}:
        asked = [one for one in requirements if one.key == key]
        named = {value for one in asked for value in one.values or ()}
        labels: list[Mapping[str, str]] = [{key: value} for value in (*named, _UNLISTED_VALUE)]
        labels += [] if key == NAMESPACE_NAME else [{}]
        if not any(all(is_met(one, each) for one in asked) for each in labels):
            return False
    return True


def is_opt_in(selector: Selector | None) -> bool:
    """True if a new namespace is not selected until it is added, by name or by label."""
    # Every namespace has a name, so to ask whether it has one selects all.
    chosen = (one for one in list_requirements(selector) if (one.key, one.operator) != (NAMESPACE_NAME, "Exists"))
    return any(one.operator in {"In", "Exists"} for one in chosen)


KINDS: Final = (
    *fence.KINDS,
    *("Secret", "ConfigMap", "Namespace", "Lease", "Pod", "Deployment", "StatefulSet", "Service", "EndpointSlice"),
)
LISTED_KINDS: Final = {
    "validatingadmissionpolicies,validatingadmissionpolicybindings": (fence.POLICY, fence.BINDING),
    "mutatingadmissionpolicies,mutatingadmissionpolicybindings": (fence.MUTATING_POLICY, fence.MUTATING_BINDING),
    "namespaces": ("Namespace",),
}
"""The resources that kubectl lists of a cluster, and their kinds."""
LISTED_BESIDE: Final = {"services,endpointslices": ("Service", "EndpointSlice")}
"""The resources that kubectl lists of the namespaces of webhooks, and their kinds."""

_UNLISTED_VALUE: Final = "\0"
"""Stands for any value of a label that a selector does not list."""
_MAX_TEXT: Final = 100
"""Characters of a text that are shown whole; of a longer one where it differs."""


class _Conditions(Struct, frozen=True):
    ready: bool | None = None


class Endpoint(Struct, frozen=True):
    """Where a Service may lead to."""

    conditions: _Conditions | None = None

    @property
    def is_ready(self) -> bool:
        """True if it takes connections, or that is not known, which counts as ready."""
        return self.conditions is None or self.conditions.ready is not False


class EndpointPort(Struct, frozen=True):
    """A port that all endpoints of one EndpointSlice have."""

    name: str | None = None


class ClusterObject(Struct, frozen=True, rename="camel"):
    """An object of any kind, as far as the doctor reads it; `spec` is not decoded, and empty if there is none."""

    kind: str
    metadata: Metadata = Metadata()
    spec: dict[str, Any] = {}
    data: Mapping[str, str] = {}
    string_data: Mapping[str, str] = {}
    status: dict[str, Any] = {}
    type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()

    @property
    def place(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def namespace_selector(self) -> Selector | None:
        """What an admission policy selects; None, which is everything, if that cannot be read."""
        constraints = self.spec.get("matchConstraints")
        chosen = constraints.get("namespaceSelector") if isinstance(constraints, dict) else None
        with suppress(msgspec.ValidationError):
            return msgspec.convert(chosen, Selector | None)
        return None

    @property
    def pair(self) -> Pair | None:
        """The certificate of a Secret, and its key, if it is there too; None if it has no certificate."""
        if LEAF_CERTIFICATE not in self.data and LEAF_CERTIFICATE not in self.string_data:
            return None
        return Pair(self._decode(LEAF_CERTIFICATE), self._decode(LEAF_KEY))

    def _decode(self, key: str) -> bytes:
        """Return the bytes of a key of a Secret; what is not base64 stays as it is, as no API server accepts it."""
        if key in self.string_data:
            return self.string_data[key].encode()
        text = self.data.get(key, "")
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except ValueError:
            return text.encode()

    @property
    def is_of_a_fence(self) -> bool:
        """True if lease-webhook made it for a fence."""
        labels = self.metadata.labels or {}
        return self.kind in fence.KINDS and all(labels.get(key) == value for key, value in fence.LABELS.items())


class Documents:
    """The documents by kind; one without the form of its kind is skipped: no API server returns it."""

    def __init__(self, found: Iterable[Mapping[str, object]], unread: Collection[str] | None = None) -> None:
        """`unread` are kinds that could not be read; None for a file, which may leave them out."""
        self.configurations: list[Configuration] = []
        self.refused: list[tuple[str, msgspec.ValidationError]] = []
        """Kinds of configurations that an API server refuses, and why."""
        self._by_kind: dict[str, list[ClusterObject]] = {kind: [] for kind in KINDS}
        for document in found:
            kind = document.get("kind")
            if kind in (VALIDATING, MUTATING):
                try:
                    self.configurations.append(msgspec.convert(document, Configuration))
                except msgspec.ValidationError as error:
                    self.refused.append((str(kind), error))
            elif kind in KINDS:
                present = {key: value for key, value in document.items() if value is not None}
                with suppress(msgspec.ValidationError):
                    self._by_kind[str(kind)].append(msgspec.convert(present, ClusterObject))
        self.unread: Final = frozenset(unread or ())
        self.is_of_a_cluster: Final = unread is not None
        has_read_some = unread is not None and not self.unread.issuperset(fence.KINDS)
        self.shows_policies: Final = has_read_some or bool(self.fence_objects)

    def find_all(self, kind: str) -> list[ClusterObject]:
        """Return the objects of one of KINDS."""
        return self._by_kind[kind]

    def find_by_name(self, kind: str) -> dict[str, ClusterObject]:
        """Return the objects of a kind that no namespace contains, by name."""
        return {one.metadata.name: one for one in self.find_all(kind)}

    def find_in(self, kind: str, namespace: str, name: str) -> ClusterObject | None:
        """Return an object of a kind that namespaces contain."""
        place = (namespace, name)
        return next((one for one in self.find_all(kind) if (one.metadata.namespace, one.metadata.name) == place), None)

    def shows(self, kind: str, namespace: str) -> bool:
        """Return whether an object of this kind and namespace would be here if there were one.

        That is so in what was read of a cluster; of a file it is taken to be so if it has others.
        """
        has_others = any(one.metadata.namespace == namespace for one in self.find_all(kind))
        return has_others or (self.is_of_a_cluster and kind not in self.unread)

    @property
    def namespace_labels(self) -> dict[str, Mapping[str, str]]:
        """The labels of the known namespaces, by name."""
        return {name: one.metadata.labels or {} for name, one in self.find_by_name("Namespace").items()}

    def selects_any(self, selector: Selector | None) -> bool:
        """Return whether a selector selects a namespace of the cluster; of a file, which may lack some, if one can."""
        known = self.namespace_labels if self.is_of_a_cluster else {}
        return any(may_select(selector, *one) for one in known.items()) if known else can_select(selector)

    @property
    def fence_objects(self) -> list[ClusterObject]:
        """Every admission policy, and every binding of one."""
        return [one for kind in fence.KINDS for one in self.find_all(kind)]

    @property
    def dedicated(self) -> list[WebhookEntry]:
        """The webhooks that are about leases, rather than called for everything."""
        return [entry for one in self.configurations for entry in one.entries if entry.webhook.is_dedicated]

    @property
    def rule_policies(self) -> list[ClusterObject]:
        """The policies of the API server that have rules of ours, and are bound: others are not in force."""
        bindings = {one.spec.get("policyName") for one in self.find_all(fence.BINDING)}
        policies = self.find_by_name(fence.POLICY).items()
        named = (policy for name, policy in policies if name.startswith(RULE_POLICIES) and name in bindings)
        return [policy for policy in named if not is_never_evaluated(policy.spec)]

    @property
    def rule_selectors(self) -> dict[str, Selector | None]:
        """What the `rule_policies` select, by name; one that cannot be read selects everything."""
        return {one.metadata.name: one.namespace_selector for one in self.rule_policies}

    @property
    def namespaces(self) -> set[str]:
        """The namespaces of the Services of webhooks that are about leases."""
        configs = [entry.webhook.client_config for entry in self.dedicated]
        return {config.service.namespace for config in configs if config.service}

    def list_served_secrets(self, namespace: str) -> list[ClusterObject]:
        """Return the Secrets of a namespace that have a certificate: those that a Deployment mounts, if one does."""
        found = [one for one in self.find_all("Secret") if one.metadata.namespace == namespace and one.pair]
        deployments = [one for one in self.find_all("Deployment") if one.metadata.namespace == namespace]
        mounted = {name for one in deployments for name in _find_mounted_secrets(one.spec)}
        return [one for one in found if not mounted or one.metadata.name in mounted]

    def find_policy_text(self, namespaces: Iterable[str]) -> str | None:
        """Return the policy in the one ConfigMap of the webhooks' namespaces that has a policy.yaml."""
        own = frozenset(namespaces)
        maps = [one.data for one in self.find_all("ConfigMap") if one.metadata.namespace in own]
        texts = [data["policy.yaml"] for data in maps if "policy.yaml" in data]
        return texts[0] if len(texts) == 1 else None


def _find_mounted_secrets(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the Secrets that the pods of a Deployment mount."""
    with suppress(msgspec.ValidationError):
        for volume in msgspec.convert(spec, _Deployment).template.spec.volumes or ():
            if volume.secret:
                yield volume.secret.secret_name


class _SecretVolume(Struct, frozen=True, rename="camel"):
    secret_name: str = ""


class _Volume(Struct, frozen=True):
    secret: _SecretVolume | None = None


class _PodSpec(Struct, frozen=True):
    volumes: tuple[_Volume, ...] | None = None


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Deployment(Struct, frozen=True):
    template: _PodTemplate = _PodTemplate()


def find_difference(wanted: object, found: object, path: str = "spec") -> str:
    """Return the first place at which two values differ, with the value found there; "" if they are equal."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        pairs = [(f"{path}.{key}", wanted.get(key), found.get(key)) for key in sorted({*wanted, *found})]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [
            (f"{path}[{number}]", one, other) for number, (one, other) in enumerate(zip(wanted, found, strict=True))
        ]
    elif isinstance(wanted, str) and isinstance(found, str) and max(len(wanted), len(found)) > _MAX_TEXT:
        same = next((at for at, (one, other) in enumerate(zip(wanted, found, strict=False)) if one != other), 0)
        return "" if wanted == found else f"{path}: ...{found[max(0, same - 20) : same + 60]}..."
    else:
        return "" if wanted == found else f"{path}: {found}"
    return next(filter(None, (find_difference(one, other, inner) for inner, one, other in pairs)), "")
