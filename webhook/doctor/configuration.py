"""A webhook configuration as the API server reads it: defaults applied, everything else unchanged.

Source of the defaults: kubernetes `pkg/apis/admissionregistration/v1/defaults.go`.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from webhook.api.request import GROUP, Resource

API_VERSION: Final = "admissionregistration.k8s.io/v1"
VALIDATING: Final = "ValidatingWebhookConfiguration"
MUTATING: Final = "MutatingWebhookConfiguration"

_CHOICE: Final = "lease-webhook/"


class SelectorRequirement(Struct, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class Selector(Struct, frozen=True, rename="camel"):
    """A label selector; an empty one selects everything."""

    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[SelectorRequirement, ...] | None = None

    @property
    def requirements(self) -> tuple[SelectorRequirement, ...]:
        """Labels and expressions in one form; all of them must hold."""
        labels = (SelectorRequirement(key, "In", (value,)) for key, value in (self.match_labels or {}).items())
        return (*labels, *(self.match_expressions or ()))


class MatchRule(Struct, frozen=True, rename="camel"):
    """Which requests are sent to an entry."""

    api_groups: tuple[str, ...] | None = None
    api_versions: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    scope: Literal["*", "Cluster", "Namespaced"] | None = None

    def matches(self, resource: str) -> bool:
        """Whether requests for this resource of our group match, whatever their version and operation."""
        names_group = {GROUP, "*"} & set(self.api_groups or ())
        names_resource = {resource, "*", "*/*"} & set(self.resources or ())
        return bool(names_group and names_resource) and self.scope != "Cluster"

    @property
    def is_wild(self) -> bool:
        """Whether it matches our kinds by a wildcard in group or resource."""
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
    side_effects: Literal["None", "NoneOnDryRun", "Some", "Unknown"] | None = None
    admission_review_versions: tuple[str, ...] | None = None
    namespace_selector: Selector | None = None
    object_selector: Selector | None = None
    match_conditions: tuple[MatchCondition, ...] | None = None

    @property
    def fails_closed(self) -> bool:
        """Whether a failed call denies the write, which is the default."""
        return self.failure_policy != "Ignore"

    @property
    def timeout(self) -> int:
        """Seconds that a write may wait, by default ten."""
        return 10 if self.timeout_seconds is None else self.timeout_seconds

    def versions(self, resource: str) -> frozenset[str]:
        """The versions of a resource that the rules list."""
        return frozenset(one for rule in self._rules_for(resource) for one in rule.api_versions or ())

    def operations(self, resource: str) -> frozenset[str]:
        """The operations on a resource that the rules list."""
        return frozenset(one for rule in self._rules_for(resource) for one in rule.operations or ())

    def reviews(self, resource: str, operation: str) -> bool:
        """Whether a rule matches this operation on this resource."""
        return bool({operation, "*"} & self.operations(resource))

    @property
    def is_about_leases(self) -> bool:
        """Whether any lease or candidate can reach it."""
        return any(map(self._rules_for, Resource))

    @property
    def is_dedicated(self) -> bool:
        """Whether it names our group, rather than catching leases with everything else."""
        return any(GROUP in (rule.api_groups or ()) for rule in self.rules or ())

    def _rules_for(self, resource: str) -> list[MatchRule]:
        return [rule for rule in self.rules or () if rule.matches(resource)]


class Configuration(Struct, frozen=True, rename="camel"):
    """A ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""

    kind: str
    api_version: str = API_VERSION
    metadata: Metadata = Metadata()
    webhooks: tuple[Webhook, ...] | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """What the configuration declares as intended: CHOICE of each annotation `lease-webhook/CHOICE: reviewed`."""
        annotations = self.metadata.annotations or {}
        return tuple(
            key.removeprefix(_CHOICE)
            for key, value in annotations.items()
            if key.startswith(_CHOICE) and value == "reviewed"
        )


class Entry(Struct, frozen=True):
    """One webhook and its place in a configuration."""

    configuration: Configuration
    position: int
    webhook: Webhook

    def place(self, field: str, value: object = "") -> str:
        """A path in the document, with the value found there."""
        path = f"webhooks[{self.position}].{field}"
        return f"{path}: {value}" if value != "" else path

    def has_chosen(self, choice: str) -> bool:
        """Whether the configuration declares that this is intended."""
        return choice in self.configuration.choices


def read(document: Mapping[str, object]) -> Configuration:
    """The configuration in a decoded document.

    Raises:
        msgspec.ValidationError: a field has a wrong type; the text has its path.

    """
    return msgspec.convert(document, Configuration)
