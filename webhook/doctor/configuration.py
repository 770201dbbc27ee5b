"""A webhook configuration as the API server reads it: defaults applied, everything else unchanged; and its selectors.

Source of the defaults: kubernetes `pkg/apis/admissionregistration/v1/defaults.go`.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from webhook.api.request import GROUP, Resource
from webhook.findings import Finding, Severity

VALIDATING: Final = "ValidatingWebhookConfiguration"
MUTATING: Final = "MutatingWebhookConfiguration"

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The API server sets this label on every namespace, and it cannot be changed."""


class SelectorRequirement(Struct, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class Selector(Struct, frozen=True, rename="camel"):
    """A label selector; an empty one selects everything."""

    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[SelectorRequirement, ...] | None = None


class MatchRule(Struct, frozen=True, rename="camel"):
    """The requests that are sent to an entry."""

    api_groups: tuple[str, ...] | None = None
    api_versions: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    scope: Literal["*", "Cluster", "Namespaced"] | None = None

    def matches(self, resource: str) -> bool:
        """True if requests for this resource of our group match, whatever their version and operation."""
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


class ClientConfig(Struct, frozen=True, rename="camel"):
    """The address to call and the roots to trust."""

    service: ServiceReference | None = None
    url: str | None = None
    ca_bundle: str | None = None

    @property
    def path(self) -> str:
        """The path that the API server calls."""
        if self.service:
            return self.service.path or "/"
        try:
            return urlsplit(self.url or "").path or "/"
        except ValueError:
            return self.url or "/"


class MatchCondition(Struct, frozen=True):
    """A CEL expression that must be true for the webhook to be called."""

    name: str
    expression: str


class Metadata(Struct, frozen=True):
    """The fields of an object's metadata that are used."""

    name: str = "(no name)"
    annotations: Mapping[str, str] | None = None


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

    def versions(self, resource: str) -> frozenset[str]:
        """Return the versions of a resource that the rules list."""
        return frozenset(one for rule in self._rules_for(resource) for one in rule.api_versions or ())

    def reviews(self, resource: str, operation: str) -> bool:
        """True if a rule matches this operation on this resource."""
        return any({operation, "*"} & set(rule.operations or ()) for rule in self._rules_for(resource))

    @property
    def is_about_leases(self) -> bool:
        """True if any lease or candidate can reach it."""
        return any(map(self._rules_for, Resource))

    @property
    def is_dedicated(self) -> bool:
        """True if it names our group, rather than catching leases with everything else."""
        return any(GROUP in (rule.api_groups or ()) for rule in self.rules or ())

    def _rules_for(self, resource: str) -> list[MatchRule]:
        return [rule for rule in self.rules or () if rule.matches(resource)]


class Configuration(Struct, frozen=True, rename="camel"):
    """A ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""

    kind: str
    metadata: Metadata = Metadata()
    webhooks: tuple[Webhook, ...] | None = None


class Entry(Struct, frozen=True):
    """One webhook and its place in a configuration."""

    configuration: Configuration
    position: int
    webhook: Webhook

    def place(self, field: str, value: object = "") -> str:
        """Return a path in the document, with the value found there."""
        path = f"webhooks[{self.position}].{field}"
        return f"{path}: {value}" if value != "" else path

    def finding(self, check: str, field: str, value: object, risk: str, fix: str) -> Finding:
        """Return a finding about a field."""
        return danger(check, self.place(field, value), risk, fix)

    def has_chosen(self, choice: str) -> bool:
        """True if the configuration declares that this is intended."""
        return (self.configuration.metadata.annotations or {}).get(f"lease-webhook/{choice}") == "reviewed"


def danger(check: str, place: str, risk: str, fix: str) -> Finding:
    """Return a finding: a place with the value found there, the risk, and the fix, each in one or two sentences."""
    return Finding(check, Severity.ERROR, risk, fix, place)


def may_select(selector: Selector | None, namespace: str, labels: Mapping[str, str] | None = None) -> bool:
    """True if a namespace with just these labels is selected; if they are not known, or can be changed, by its name."""
    known = {**(labels or {}), NAMESPACE_NAME: namespace}
    asked = (one for one in requirements(selector) if labels is not None or one.key == NAMESPACE_NAME)
    return all(_matches(one, known.get(one.key)) for one in asked)


def is_opt_in(selector: Selector | None) -> bool:
    """True if a new namespace is not selected until it is added, by name or by label."""
    # Every namespace has a name, so to ask whether it has one selects all.
    chosen = (one for one in requirements(selector) if (one.key, one.operator) != (NAMESPACE_NAME, "Exists"))
    return any(one.operator in {"In", "Exists"} for one in chosen)


def requirements(selector: Selector | None) -> tuple[SelectorRequirement, ...]:
    """Return labels and expressions in one form; all of them must hold."""
    if selector is None:
        return ()
    labels = (SelectorRequirement(key, "In", (value,)) for key, value in (selector.match_labels or {}).items())
    return (*labels, *(selector.match_expressions or ()))


def _matches(requirement: SelectorRequirement, value: str | None) -> bool:
    listed, is_there = value in (requirement.values or ()), value is not None
    return {"In": listed, "NotIn": not listed, "Exists": is_there, "DoesNotExist": not is_there}[requirement.operator]
