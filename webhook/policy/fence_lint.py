"""What is legal in a fence and yet may not be what its writer meant."""

from collections.abc import Collection, Iterator, Sequence

from webhook.policy.fences import Fence, overlaps


def fence_notes(fences: Sequence[Fence], bound: Collection[tuple[str, str]]) -> Iterator[str]:
    """Sentences with the path that each is about; `bound` are the leases that have a binding."""
    for position, fence in enumerate(fences):
        path = f"fences[{position}] ({fence.name})"
        if (fence.namespace, fence.lease) not in bound:
            yield (
                f"{path}: lease {fence.lease_text} has no binding: whoever may write it can move the fence; "
                "add it to bindings"
            )
        if any(template.claim == "node" for template in fence.holders):
            yield f"{path}.holder: ${{node}} cannot hold back one of two pods on the same node"
        if fence.mode != "deny" and fence.missing_lease == "deny":
            yield f"{path}: mode {fence.mode} refuses nothing, also where the lease does not exist"
    for earlier, later in overlaps(fences):
        yield (
            f"fences[{earlier}] and fences[{later}] hold the same writes back for two leases: "
            "a pod must hold both to write"
        )
