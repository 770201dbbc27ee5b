"""Finds bindings of our policies that are not ours: the API server evaluates a policy once for each binding.

With another binding, what a policy file only warns of may be denied. kustomize makes one by a namePrefix or nameSuffix:
it renames the binding, and leaves alone what `policyName` says.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Final

from webhook.admission.policy.fences import Fence
from webhook.api_server.doctor.checks import Report
from webhook.api_server.doctor.documents import ClusterObject, Documents, report_danger
from webhook.api_server.fence.objects import BINDING, MUTATING_BINDING, make_fence_manifests
from webhook.api_server.install.objects import make_stamp_objects
from webhook.api_server.rule_policies import RULE_POLICIES, list_guards, list_names
from webhook.text.commands import quote_name

_DEPTH: Final = "lease-webhook-depth"
_BINDINGS: Final = (BINDING, MUTATING_BINDING)


@cache
def _list_shipped_names() -> frozenset[str]:
    """Return the names of the policies of rules, stamps and depth, which their bindings have, too."""
    stamps = {one["metadata"]["name"] for one in make_stamp_objects("any")}
    return frozenset({_DEPTH} | list_names() | list_guards() | stamps)


def examine_bindings(documents: Documents, fences: Sequence[Fence]) -> Iterator[Report]:
    """Yield a report if a policy of rules, stamps or depth, or one of a fence, has a binding that we do not make."""
    fenced = {one["metadata"]["name"] for fence in fences for one in make_fence_manifests(fence)}
    fenced |= {one.metadata.name for one in documents.fence_objects if one.is_of_a_fence and one.kind not in _BINDINGS}
    ours = _list_shipped_names() | fenced
    findings = tuple(
        report_danger(
            "policy-bound-again",
            f"{one.kind} {one.metadata.name}: policyName: {one.spec['policyName']}",
            "the API server evaluates the policy for this binding too, and does what this one says: what the policy"
            " file only warns of may be denied.",
            f"kubectl delete {one.kind.lower()} {quote_name(one.metadata.name)}",
        )
        for kind in _BINDINGS
        for one in documents.find_all(kind)
        if is_other_binding(one, ours)
    )
    if findings:
        yield Report("bindings", "", findings)


def is_other_binding(one: ClusterObject, ours: Collection[str]) -> bool:
    """True for a binding of one of our policies under a name that none of our bindings has.

    A policy of rules is ours whatever else its name is: an earlier version made it.
    """
    bound = str(one.spec.get("policyName"))
    is_of_ours = bound in ours or bound.startswith(RULE_POLICIES)
    return one.kind in _BINDINGS and is_of_ours and one.metadata.name not in ours and one.metadata.name != bound
