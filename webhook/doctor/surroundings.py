"""The other objects in the same documents as the configurations: certificates, policy files, namespaces."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from webhook.doctor.certificate import Served
from webhook.doctor.configuration import MUTATING, VALIDATING, Webhook
from webhook.doctor.documents import Document

KINDS: Final = (VALIDATING, MUTATING, "Secret", "ConfigMap", "Namespace")
"""Everything else is skipped."""


class _Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class ClusterObject(Struct, frozen=True, rename="camel"):
    """An object of any kind, as far as the doctor reads it; `spec` is not decoded, and empty if there is none."""

    kind: str
    api_version: str = ""
    metadata: _Metadata = _Metadata()
    spec_or_none: dict[str, Any] | None = field(default=None, name="spec")
    data: Mapping[str, str] | None = None
    type: str = ""

    @property
    def spec(self) -> dict[str, Any]:
        """`spec`, empty if the document has none."""
        return self.spec_or_none or {}

    @property
    def place(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.metadata.namespace, self.metadata.name)


def served_in(found: Iterable[Document], webhook: Webhook) -> Served | None:
    """The certificate in the one TLS Secret of the Service's namespace; None if there is none, or several."""
    service = webhook.client_config.service
    if service is None:
        return None
    secrets = [one for one in of_kinds(found, "Secret") if one.metadata.namespace == service.namespace]
    chains = [(one.metadata.name, chain) for one in secrets if (chain := _decoded(one.data, "tls.crt")) is not None]
    if len(chains) != 1:
        return None
    name, chain = chains[0]
    return Served(chain, f"Secret {service.namespace}/{name}")


def policy_text(found: Iterable[Document], namespaces: Iterable[str]) -> str | None:
    """The policy in the one ConfigMap of the webhooks' namespaces that has a policy.yaml."""
    own = frozenset(namespaces)
    texts = [
        one.data["policy.yaml"]
        for one in of_kinds(found, "ConfigMap")
        if one.metadata.namespace in own and one.data and "policy.yaml" in one.data
    ]
    return texts[0] if len(texts) == 1 else None


def namespace_labels(found: Iterable[Document]) -> dict[str, Mapping[str, str]]:
    """The labels of the namespaces among them, by name."""
    return {one.metadata.name: one.metadata.labels or {} for one in of_kinds(found, "Namespace")}


def of_kinds(found: Iterable[Document], *kinds: str) -> Iterator[ClusterObject]:
    """The objects of these kinds; one that does not have the form of its kind is skipped: no API server returns it."""
    for one in found:
        if one.get("kind") in kinds:
            with suppress(msgspec.ValidationError):
                yield msgspec.convert(one, ClusterObject)


def _decoded(data: Mapping[str, str] | None, key: str) -> bytes | None:
    try:
        return base64.b64decode("".join((data or {})[key].split()), validate=True)
    except (KeyError, binascii.Error, ValueError):
        return None
