"""Releasing a live lease on behalf of its holder: the first of two ordinary-looking writes of a steal."""

from collections.abc import Iterable
from functools import partial

from webhook.api.field import forbidden
from webhook.api.text import quote
from webhook.rules.change import Event, LeaseChange
from webhook.rules.holders import names_pod
from webhook.rules.rule import LEASES, NO_FINDINGS, UPDATE, Attack, Finding, Mode, Rule, Statement


def live_lease_is_released_by_its_holder(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may be released only by the pod that its holder identity names.

    Not evaluated if the writer's token has no pod name. After the pod's name only a character that no pod's name has,
    such as `_`, or a uuid may follow. Holder identities are free text, so this is a hint and not a proof.
    """
    pod = change.user.pod_name
    if not pod or change.expiry.expired or names_pod(change.old_holder, pod):
        return NO_FINDINGS
    return _finding(change, f"pod {quote(pod)}")


def live_lease_is_not_released_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be released by a service account of another namespace.

    The name of its pod proves nothing there: a pod in another namespace can have the same name.
    """
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace or change.expiry.expired:
        return NO_FINDINGS
    return _finding(change, f"{quote(change.user.username)} of another namespace")


def _finding(change: LeaseChange, who: str) -> tuple[Finding, ...]:
    holder = quote(change.old_holder)
    detail = (
        f"this write clears the holder of a live lease, which only {holder} may do, not {who}; "
        f"delete the pod of {holder}, or wait {change.expiry.seconds_left} s"
    )
    lease = f"{change.request.namespace}/{change.request.name}"
    early = f"{change.expiry.seconds_left} s before expiry{change.expiry.whose_clock}"
    happened = Statement(
        f"lease {{0}} was released on behalf of {{1}} {early}: there may be two leaders", (lease, change.old_holder)
    )
    return (
        Finding(
            forbidden("spec.holderIdentity", detail),
            without_stamps=not change.expiry.from_stamps,
            happened=happened,
            fact=Event.RELEASE,
        ),
    )


_rule = partial(Rule, resources=LEASES, operations=UPDATE, events=frozenset({Event.RELEASE}), about_writer=True)
RULES = (
    _rule(
        id="foreign-release",
        check=live_lease_is_released_by_its_holder,
        standard=Mode.AUDIT,
        source="ours: client-go's default identity is the pod's host name, `_` and a uuid",
        why="Releasing the lease of another pod is the first step of a steal in two writes.",
        who="Electors whose holder identity does not begin with the pod's name, such as kube-vip and host-network "
        "pods, or continues it with `-` or `.` and no UUID, as the name of another pod does.",
        fix="Delete the pod instead, or wait until its lease expires. Set the elector's identity to the pod's "
        "name, alone or with an underscore and a UUID.",
        attack=Attack("released a lease for its holder"),
    ),
    _rule(
        id="foreign-release-across-namespaces",
        check=live_lease_is_not_released_across_namespaces,
        standard=Mode.WARN,
        source="ours: no known client releases a lease of another namespace than its own service account's",
        why="As for `foreign-release`; the name of the writer's pod proves nothing in another namespace.",
        who="No known client releases a lease outside of its service account's namespace.",
        fix="Release from the holder itself.",
        attack=Attack("released a lease for its holder"),
    ),
)
