"""What is wrong with the name, generateName and namespace of an object."""

from collections.abc import Iterator
from typing import Final

from webhook.api import formats
from webhook.api.field import FieldError, each_invalid, required
from webhook.api.formats import Format

NAME: Final = "metadata.name"
GENERATE_NAME: Final = "metadata.generateName"
NAMESPACE: Final = "metadata.namespace"


def wrong_names(name: str, base: str, form: Format, form_of_base: Format) -> Iterator[FieldError]:
    """What is wrong with a name and with the generateName beside it."""
    if base:
        yield from each_invalid(GENERATE_NAME, base, form_of_base(base))
    if name:
        yield from each_invalid(NAME, name, form(name))
    else:
        yield required(NAME, "name or generateName is required")


def wrong_namespace(namespace: str) -> Iterator[FieldError]:
    """What is wrong with a namespace; both resources live in one."""
    if namespace:
        yield from each_invalid(NAMESPACE, namespace, formats.dns_label(namespace))
    else:
        yield required(NAMESPACE)
