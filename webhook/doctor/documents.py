"""The objects in the examined documents, also inside Lists, and the webhook configurations among them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from webhook.doctor.configuration import MUTATING, VALIDATING

DEEPEST_LIST: Final = 3
"""A List contains objects; one List inside another is already unusual."""

Document = Mapping[str, object]


def objects(documents: Iterable[object], depth: int = 0) -> Iterator[Document]:
    """Every object, also inside a List of any kind; what is not a mapping is skipped."""
    for document in documents:
        if not isinstance(document, Mapping):
            continue
        items = document.get("items")
        if str(document.get("kind")).endswith("List") and isinstance(items, list) and depth < DEEPEST_LIST:
            kind = str(document.get("kind")).removesuffix("List")
            inner = {"apiVersion": document.get("apiVersion"), "kind": kind} if kind else {}
            yield from objects(({**inner, **one} if isinstance(one, Mapping) else one for one in items), depth + 1)
        else:
            yield document


def webhook_configurations(found: Iterable[Document]) -> list[Document]:
    """The webhook configurations among them."""
    return [one for one in found if one.get("kind") in (VALIDATING, MUTATING)]
