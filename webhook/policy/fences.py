"""The fences of a policy file, checked beyond what one key says by itself."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.policy import fenced_resource, holder_template
from webhook.policy.error import PolicyError
from webhook.policy.fence_schema_types import Choice, FenceMode, FenceSetting
from webhook.policy.fenced_resource import FencedResource
from webhook.policy.holder_template import HolderTemplate

MOST_FENCES: Final = 256
"""Each is two objects that every API server evaluates; far more than one cluster has operators."""


class Fence(Struct, frozen=True):
    """Only the holder of the lease may make these writes, among the writers.

    `writers` are (namespace, name) of service accounts, all of one namespace.
    """

    name: str
    namespace: str
    lease: str
    writers: tuple[tuple[str, str], ...]
    holders: tuple[HolderTemplate, ...]
    resources: tuple[FencedResource, ...]
    operations: tuple[str, ...]
    namespaces: tuple[str, ...]
    mode: FenceMode
    when_unheld: Choice
    missing_lease: Choice

    @property
    def usernames(self) -> tuple[str, ...]:
        """The user names that the writers' tokens authenticate as."""
        return tuple(f"system:serviceaccount:{namespace}:{name}" for namespace, name in self.writers)

    @property
    def lease_text(self) -> str:
        """`namespace/name` of the lease."""
        return f"{self.namespace}/{self.lease}"


def fences_of(settings: Sequence[FenceSetting]) -> tuple[Fence, ...]:
    """What the `fences` of a policy file mean; raises PolicyError where a fence could not hold what it promises."""
    if len(settings) > MOST_FENCES:
        raise PolicyError(f"must have at most {MOST_FENCES} entries", "fences")
    first: dict[str, int] = {}
    for position, setting in enumerate(settings):
        if setting.name in first:
            raise PolicyError(f"fences[{first[setting.name]}] has this name already", f"fences[{position}].name")
        first[setting.name] = position
    return tuple(_fence(setting, f"fences[{position}]") for position, setting in enumerate(settings))


def overlaps(fences: Sequence[Fence]) -> Iterator[tuple[int, int]]:
    """Positions of fences that hold one write back for two leases."""
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


def _fence(setting: FenceSetting, path: str) -> Fence:
    namespace, _, lease = setting.lease.partition("/")
    resources = [
        fenced_resource.read(text, f"{path}.resources[{number}]") for number, text in enumerate(setting.resources)
    ]
    return Fence(
        name=setting.name,
        namespace=namespace,
        lease=lease,
        writers=_writers(setting.writers, f"{path}.writers"),
        holders=tuple(dict.fromkeys(holder_template.read(setting.holder, f"{path}.holder"))),
        resources=tuple(dict.fromkeys(resources)),
        operations=tuple(dict.fromkeys(setting.operations)),
        namespaces=tuple(dict.fromkeys(setting.namespaces)),
        mode=setting.mode,
        when_unheld=setting.when_unheld,
        missing_lease=setting.missing_lease,
    )


def _writers(texts: Sequence[str], path: str) -> tuple[tuple[str, str], ...]:
    writers = []
    for number, text in enumerate(dict.fromkeys(texts)):
        namespace, _, name = text.partition("/")
        writers.append((namespace, name))
        if namespace != writers[0][0]:
            problem = (
                "must be of the same namespace as the first writer: pods of two namespaces may have one name, and the "
                "holder identity does not say which of them it means"
            )
            raise PolicyError(problem, f"{path}[{number}]")
    return tuple(writers)
