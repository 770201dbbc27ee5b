"""A webhook configuration as the API server reads it: defaults applied, everything else left as it stands.

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


class Requirement(Struct, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class Selector(Struct, frozen=True, rename="camel"):
    """A label selector; an empty one selects everything."""

    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Labels and expressions in one form; all of them must hold."""
        labels = (Requirement(key, "In", (value,)) for key, value in (self.match_labels or {}).items())
        return (*labels, *(self.match_expressions or ()))


class Rule(Struct, frozen=True, rename="camel"):
    """Which requests an entry is asked about."""

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
    """Whom to call and which roots to trust."""

    service: ServiceReference | None = None
    url: str | None = None
    ca_bundle: str | None = None


class MatchCondition(Struct, frozen=True):
    """A CEL expression that must be true for the webhook to be called."""

    name: str
    expression: str


class Metadata(Struct, frozen=True):
    """What matters of an object's metadata."""

    name: str = "(no name)"
    annotations: Mapping[str, str] | None = None


class Webhook(Struct, frozen=True, rename="camel"):
    """One entry of a configuration."""

    name: str
    client_config: ClientConfig
    rules: tuple[Rule, ...] | None = None
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
        """Whether a failed call refuses the write; so it is unless the document says otherwise."""
        return self.failure_policy != "Ignore"

    @property
    def timeout(self) -> int:
        """Seconds that a write may wait; ten unless the document says otherwise."""
        return 10 if self.timeout_seconds is None else self.timeout_seconds

    def versions(self, resource: str) -> frozenset[str]:
        """The versions of a resource that the rules list."""
        return self._union(resource, "api_versions")

    def operations(self, resource: str) -> frozenset[str]:
        """The operations on a resource that the rules list."""
        return self._union(resource, "operations")

    def reviews(self, resource: str, operation: str) -> bool:
        """Whether some rule asks about this operation on this resource."""
        return bool({operation, "*"} & self.operations(resource))

    @property
    def is_about_leases(self) -> bool:
        """Whether any lease or candidate can reach it."""
        return any(rule.matches(resource) for rule in self.rules or () for resource in Resource)

    @property
    def is_dedicated(self) -> bool:
        """Whether it names our group, rather than catching leases with everything else."""
        return any(GROUP in (rule.api_groups or ()) for rule in self.rules or ())

    def _union(self, resource: str, field: str) -> frozenset[str]:
        listed: set[str] = set()
        for rule in self.rules or ():
            if rule.matches(resource):
                listed.update(getattr(rule, field) or ())
        return frozenset(listed)


class Configuration(Struct, frozen=True, rename="camel"):
    """A ValidatingWebhookConfiguration or MutatingWebhookConfiguration."""

    kind: str
    api_version: str = API_VERSION
    metadata: Metadata = Metadata()
    webhooks: tuple[Webhook, ...] | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """What a person wrote down as meant: CHOICE of each annotation `lease-webhook/CHOICE: reviewed`."""
        written = self.metadata.annotations or {}
        return tuple(
            key.removeprefix(_CHOICE)
            for key, value in written.items()
            if key.startswith(_CHOICE) and value == "reviewed"
        )


class Entry(Struct, frozen=True):
    """One webhook where it stands."""

    configuration: Configuration
    position: int
    webhook: Webhook

    def place(self, field: str, value: object = "") -> str:
        """A path in the document, with the value found there."""
        path = f"webhooks[{self.position}].{field}"
        return f"{path}: {value}" if value != "" else path

    def has_chosen(self, choice: str) -> bool:
        """Whether a person wrote down that this is meant."""
        return choice in self.configuration.choices


def read(document: Mapping[str, object]) -> Configuration:
    """The configuration in a decoded document. Raises msgspec.ValidationError with the path of what does not fit."""
    return msgspec.convert(document, Configuration)
