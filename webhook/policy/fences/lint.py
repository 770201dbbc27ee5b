"""Fences that are valid and may still not do what their author meant."""

from collections.abc import Collection, Iterator, Sequence

from webhook.policy.fences.model import Fence


def fence_notes(fences: Sequence[Fence], bound: Collection[tuple[str, str]]) -> Iterator[str]:
    """Sentences that begin with the path they are about; `bound` are the leases that have a binding."""
    for position, fence in enumerate(fences):
        path = f"fences[{position}] ({fence.name})"
        if (fence.namespace, fence.lease) not in bound:
            yield (
                f"{path}: lease {fence.lease_text} has no binding: anyone with write access to it can move the fence; "
                "add it to bindings"
            )
        if any(template.claim == "node" for template in fence.holders):
            yield f"{path}.holder: ${{node}} cannot distinguish two pods on the same node"
        if fence.mode != "deny" and fence.missing_lease == "deny":
            yield f"{path}: mode {fence.mode} denies nothing, even if the lease does not exist"
    for earlier, later in overlaps(fences):
        yield (
            f"fences[{earlier}] and fences[{later}] cover the same writes for two leases: "
            "a pod must hold both leases to write"
        )


def overlaps(fences: Sequence[Fence]) -> Iterator[tuple[int, int]]:
    """Positions of two fences that cover one write for two leases."""
    for later, second in enumerate(fences):
        for earlier, one in enumerate(fences[:later]):
            apart = one.namespaces and second.namespaces and not {*one.namespaces} & {*second.namespaces}
            if (
                (one.namespace, one.lease) != (second.namespace, second.lease)
                and {*one.writers} & {*second.writers}
                and {*one.resources} & {*second.resources}
                and {*one.operations} & {*second.operations}
                and not apart
            ):
                yield earlier, later
