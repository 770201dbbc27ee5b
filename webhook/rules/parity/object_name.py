"""The name and namespace of a new object."""

from collections.abc import Iterable
from typing import Final

from webhook.api import formats
from webhook.api.formats import Format
from webhook.api.request import Resource
from webhook.rules.change import Change
from webhook.rules.finding import Finding
from webhook.rules.object_names import wrong_names, wrong_namespace
from webhook.rules.rule import BOTH, CREATE, Rule

SUFFIX: Final = "xxxxx"
"""Stands for the five random characters of a generated name if no API server has generated them yet."""

LONGEST_BASE: Final = 58
"""Bytes of generateName that the API server keeps (k8s.io/apiserver `pkg/storage/names/generate.go`)."""

_FORMS: Final[dict[str, tuple[Format, Format]]] = {
    Resource.LEASES: (formats.dns_subdomain, formats.dns_subdomain_prefix),
    Resource.LEASECANDIDATES: (formats.config_map_key, formats.config_map_key),
}


def names_are_legal(change: Change) -> Iterable[Finding]:
    """metadata.name must be a legal name of its kind and metadata.namespace must be set."""
    metadata = change.new_metadata
    name, base = metadata.name or "", metadata.generate_name or ""
    form, form_of_base = _FORMS[change.request.resource]
    return tuple(
        Finding(error)
        for error in (
            *wrong_names(name or generated_name(base), base, form, form_of_base),
            *wrong_namespace(metadata.namespace or change.request.namespace),
        )
    )


def generated_name(base: str) -> str:
    """The name that the API server would make of a generateName, or "" without one."""
    return base.encode(errors="replace")[:LONGEST_BASE].decode(errors="replace") + SUFFIX if base else ""


RULES: Final = (
    Rule(
        id="object-name",
        check=names_are_legal,
        resources=BOTH,
        operations=CREATE,
        source="kubernetes/apimachinery pkg/api/validation/objectmeta.go, ValidateObjectMeta",
        parity=True,
    ),
)
