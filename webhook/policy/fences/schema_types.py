"""One fence as a policy file contains it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?(?!\s)$",
        description="a name of at most 57 lower case letters, digits and -, which begins and ends with a letter or "
        "digit",
    ),
]
LeaseReference = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(?!\s)$",
        description="a lease as namespace/name, no wildcards",
    ),
]
FencedWriter = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(?!\s)$",
        description="a service account as namespace/name, no wildcards; a user has no pod and cannot be fenced",
    ),
]
Namespace = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(?!\s)$", description="the exact name of a namespace, no wildcards"
    ),
]
HolderTemplate = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description="a holder identity with `${pod}` or `${node}`, such as `${pod}_*`, of at most 256 characters",
    ),
]
FencedResource = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=400,
        description="a resource such as configmaps, deployments.apps or deployments.apps/scale, "
        "of at most 400 characters",
    ),
]
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
FenceMode = Literal["audit", "warn", "deny"]
Choice = Literal["allow", "deny"]

OPERATIONS: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE")
DEFAULT_HOLDER = "${pod}_*"


class FenceSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Which writes only the holder of a lease may make; `lease-webhook export fence` renders it for the API server.

    Only the writers are fenced. `namespaces` are those of the objects that are written (without a list: all).
    """

    name: Name
    lease: LeaseReference
    writers: Annotated[list[FencedWriter], Meta(min_length=1, max_length=32)]
    resources: Annotated[list[FencedResource], Meta(min_length=1, max_length=128)]
    holder: Annotated[list[HolderTemplate], Meta(min_length=1, max_length=8)] = field(
        default_factory=lambda: [DEFAULT_HOLDER]
    )
    operations: Annotated[list[Operation], Meta(min_length=1, max_length=4)] = field(
        default_factory=lambda: [*OPERATIONS]
    )
    namespaces: Annotated[list[Namespace], Meta(max_length=128)] = []
    mode: FenceMode = "deny"
    when_unheld: Choice = "allow"
    missing_lease: Choice = "deny"
