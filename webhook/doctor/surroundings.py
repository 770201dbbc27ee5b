"""The other objects in the same documents as the configurations: certificates, policy files, namespaces."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from webhook.doctor.certificate import Served
from webhook.doctor.configuration import MUTATING, VALIDATING, Webhook
from webhook.doctor.documents import Document

KINDS: Final = (VALIDATING, MUTATING, "Secret", "ConfigMap", "Namespace")
"""Everything else is skipped."""


class ObjectMeta(Struct, frozen=True):
    """Name and namespace of an object."""

    name: str = ""
    namespace: str = ""


class DataObject(Struct, frozen=True):
    """A Secret or a ConfigMap."""

    kind: str
    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] | None = None


def served_in(found: Iterable[Document], webhook: Webhook) -> Served | None:
    """The certificate in the one TLS Secret of the Service's namespace; None if there is none, or several."""
    service = webhook.client_config.service
    if service is None:
        return None
    secrets = [one for one in _data_objects(found, "Secret") if one.metadata.namespace == service.namespace]
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
        for one in _data_objects(found, "ConfigMap")
        if one.metadata.namespace in own and one.data and "policy.yaml" in one.data
    ]
    return texts[0] if len(texts) == 1 else None


class _LabeledMeta(Struct, frozen=True):
    name: str = ""
    labels: Mapping[str, str] | None = None


class _Labeled(Struct, frozen=True):
    metadata: _LabeledMeta = _LabeledMeta()


def namespace_labels(found: Iterable[Document]) -> dict[str, Mapping[str, str]]:
    """The labels of the namespaces among them, by name."""
    labels: dict[str, Mapping[str, str]] = {}
    for one in found:
        if one.get("kind") == "Namespace":
            try:
                metadata = msgspec.convert(one, _Labeled).metadata
            except msgspec.ValidationError:
                continue
            labels[metadata.name] = metadata.labels or {}
    return labels


def _data_objects(found: Iterable[Document], kind: str) -> Iterator[DataObject]:
    for one in found:
        if one.get("kind") != kind:
            continue
        try:
            yield msgspec.convert(one, DataObject)
        except msgspec.ValidationError:
            # Not a subject of the doctor; the API server reports what is wrong with it.
            continue


def _decoded(data: Mapping[str, str] | None, key: str) -> bytes | None:
    try:
        return base64.b64decode("".join((data or {})[key].split()), validate=True)
    except (KeyError, binascii.Error, ValueError):
        return None
