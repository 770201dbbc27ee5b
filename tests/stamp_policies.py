"""What the three policies of deploy/stamp make of a write, by a CEL library; `make e2e` asks API servers.

A `Written` is a write as admission gets it: the object with the entry that the API server made for it.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct, field

from tests.cel_values import value, values
from tests.factories import Document

SUFFIX: Final = "x"
_TEXT: Final = (Path(__file__).parents[1] / "deploy" / "stamp" / "policies.yaml").read_text(encoding="utf-8")
SPECS: Final[Mapping[str, Document]] = {
    one["metadata"]["name"] + one["kind"]: one["spec"]
    for one in yaml.safe_load_all(_TEXT.replace("expression: SUFFIX", f"expression: \"'{SUFFIX}'\""))
}
STAMP: Final = SPECS["lease-webhook-stampMutatingAdmissionPolicy"]
GUARD: Final = SPECS["lease-webhook-stamp-guardValidatingAdmissionPolicy"]
BOUNDS: Final = SPECS["lease-webhook-stamp-boundsValidatingAdmissionPolicy"]
LABELS: Final[Mapping[str, str]] = {"lease-webhook/stamp": "required"}


class Written(Struct, frozen=True):
    """A write of a lease: None as `new` deletes it, None as `old` creates it.

    `labels` and `annotations` are those of the namespace.
    """

    user: Mapping[str, Any]
    new: Document | None
    old: Document | None
    labels: Mapping[str, str] = field(default_factory=lambda: LABELS)
    options: Mapping[str, Any] = {}
    annotations: Mapping[str, str] = {}

    @property
    def data(self) -> Document:
        """What the expressions see."""
        if self.new is None:
            operation = "DELETE"
        else:
            operation = "CREATE" if self.old is None else "UPDATE"
        request = {"operation": operation, "userInfo": self.user, "options": self.options}
        namespace = {"metadata": {"labels": self.labels, "annotations": self.annotations}}
        return {"request": request, "object": self.new, "oldObject": self.old, "namespaceObject": namespace}


def stamped(write: Written) -> Document | None:
    """Return the object as the mutating policy leaves it; raises ValueError if an expression errs."""
    if write.new is None:
        return None
    return mutated(STAMP, write.data)


def mutated(policy: Document, data: Mapping[str, Any]) -> Document:
    """Return the object as a mutating policy leaves it; raises ValueError if its expression errs."""
    (mutation,) = policy["mutations"]
    document: Document = copy.deepcopy(data["object"])
    for operation in value(policy, mutation["jsonPatch"]["expression"], data):
        _patch(document, operation)
    return document


def refusals(write: Written, *, are_exempt: bool = True) -> list[str]:
    """Return the messages of what refuses a write that is stamped already; an expression that errs refuses, too.

    `are_exempt`: the match conditions of the guard are evaluated.
    """
    data = write.data
    policies = [GUARD, BOUNDS] if write.new is not None else [GUARD]
    if are_exempt and not all(value(GUARD, one["expression"], data) for one in GUARD["matchConditions"]):
        policies.remove(GUARD)
    messages = []
    for policy in policies:
        validations = policy["validations"]
        results = values(policy, [one["expression"] for one in validations], data)
        messages += [one["message"] for one, result in zip(validations, results, strict=True) if result is not True]
    return messages


def stored(write: Written) -> tuple[Document | None, list[str]]:
    """Return the stamped object, and why it is refused."""
    new = stamped(write)
    after = Written(write.user, new, write.old, write.labels, write.options, write.annotations)
    return new, refusals(after)


def _patch(document: Document, operation: Mapping[str, Any]) -> None:
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:])
    place = document
    for name in path:
        place = place[name]
    if operation["op"] == "remove":
        del place[last]
    else:
        place[last] = operation["value"]
