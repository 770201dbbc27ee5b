"""Which resources to fence, suggested from what a service account may write, or from what it wrote."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import yaml
from msgspec import Struct, field

from webhook.api.text import escape
from webhook.policy.error import PolicyError
from webhook.policy.fences.resource import FencedResource, read, why_not
from webhook.policy.fences.schema_types import OPERATIONS

OPERATION_OF_VERB: Final[Mapping[str, str]] = {
    "create": "CREATE",
    "update": "UPDATE",
    "patch": "UPDATE",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""The verbs of RBAC and of audit events that write. A patch that is a server-side apply may create as well."""

_OWN_STATE: Final = {
    FencedResource("", "pods", "status"): "followers report the conditions of their own pods",
    FencedResource("", "nodes", "status"): "every node agent reports the state of its own node",
}


class Suggestion(Struct):
    """What was found: evidence for each resource, why others are left out, and what was not seen."""

    evidence: dict[FencedResource, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)


def reason_to_leave_out(resource: FencedResource) -> str:
    """Why a fence must not cover this resource although the writer writes it; "" if it may be suggested."""
    reason = _OWN_STATE.get(resource) or why_not(resource)
    if reason:
        return reason
    try:
        read(str(resource), "")
    except PolicyError as error:
        return error.problem
    return ""


def policy_text(name: str, lease: str, writer: str, found: Suggestion) -> str:
    """The fence as an entry of a policy file, with the evidence and what was left out as comments.

    Names come from a cluster, and one of RBAC may hold a line break: each line stays one line.
    """
    lines = ["fences:", f"- name: {_scalar(name)}", f"  lease: {_scalar(lease)}", f"  writers: [{_scalar(writer)}]"]
    lines.append("  mode: warn    # first; deny once nothing is warned about for a week")
    lines.append("  resources:")
    width = max(len(str(one)) for one in found.evidence)
    lines += [f"  - {one!s:<{width}}  # {found.evidence[one]}" for one in sorted(found.evidence)]
    lines += [f"# left out: {name}: {reason}" for name, reason in sorted(found.left_out.items())]
    lines += [f"# not seen: {text}" for text in found.unseen]
    return "".join(f"{escape(line.rstrip())}\n" for line in lines)


def operations_in_words(verbs: Iterable[str]) -> str:
    """Operations in the order of the API server's own list."""
    found = {OPERATION_OF_VERB[verb] for verb in verbs}
    return ", ".join(one for one in OPERATIONS if one in found)


def tally(counts: Mapping[str, int] | Counter[str]) -> str:
    """`3 by op-a, 1 by op-b`, the most frequent first, at most four of them."""
    shown: Sequence[tuple[str, int]] = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    text = ", ".join(f"{number} by {name}" for name, number in shown[:4])
    return text if len(shown) <= 4 else f"{text}, and {len(shown) - 4} more"


def _scalar(text: str) -> str:
    """One plain or quoted YAML scalar on one line."""
    return yaml.safe_dump(text, default_flow_style=True, width=1 << 30).removesuffix("...\n").strip()
