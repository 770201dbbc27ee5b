"""A live holder is replaced by another one."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from webhook.admission.rules.change import NODE_LEASES, NODES, Event, LeaseChange
from webhook.admission.rules.expiry import EXPIRY_FIELDS
from webhook.admission.rules.finding import NO_FINDINGS, Finding
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.loss import report_loss
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.stamps import is_same_pod
from webhook.admission.rules.texts import Texts
from webhook.kubernetes.times import SECOND, format_time
from webhook.text.quoting import quote

_DATED_BY_STAMPS: Final = """
A takeover is dated by managedFields, if one entry of at most 50 owns the new holder. Nothing is said if such a
stamp is missing, and nothing protects them from a forgery. Where [stamps](stamp.md) replace them, their guard
refuses the takeover.
"""


def takeover_before_expiry(change: LeaseChange) -> Iterable[Finding]:
    """The holder of a live lease may not be replaced before the lease expires.

    Expiry follows from API servers' stamps: the renewal was seen, then leaseDurationSeconds passed. A pod that is the
    stamped writer of the lease may name another holder.
    """
    if _is_by_the_stamped_pod(change):
        return NO_FINDINGS
    return _report_takeover(change)


TAKEOVER_BEFORE_EXPIRY: Final = Rule(
    check=takeover_before_expiry,
    resources=LEASES,
    operations=UPDATE,
    events=frozenset({Event.STEAL}),
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: client-go, fabric8, client-java and Python retry and win after expiry, so a denial only delays",
        why="Two processes believe that they lead until the old leader notices, twelve seconds with the defaults of "
        "client-go.",
        who="Electors that compare `renewTime` with their own clock while it runs ahead; Apache Camel, which takes "
        "over as soon as the leader's pod is gone; Istio's default revision; two programs that share one lease.",
        fix="Wait until the lease has expired and retry, as client-go does, or ask the holder to release it. Keep "
        "clocks synchronized. Give each program a lease of its own.",
        attack="took a lease that its holder still had",
    ),
    reads=(*EXPIRY_FIELDS,),
    in_cel=RuleInCel(
        broken="variables.live",
        message="{variables.taken}; {variables.retry}",
        lacks=_DATED_BY_STAMPS,
    ),
)


def takeover_by_node(change: LeaseChange) -> Iterable[Finding]:
    """A node may not take a live lease from its holder.

    In kube-node-lease a node may put its own name back, which repairs a foreign write. A pod that is the [stamped
    writer](../stamp.md) of the lease may name another holder.
    """
    if NODES not in change.user.groups or _is_by_the_stamped_pod(change):
        return NO_FINDINGS
    if change.request.namespace == NODE_LEASES and change.new_holder == change.request.name:
        return NO_FINDINGS
    return _report_takeover(change, about_writer="is a node")


TAKEOVER_BY_NODE: Final = Rule(
    check=takeover_by_node,
    resources=LEASES,
    operations=UPDATE,
    events=frozenset({Event.STEAL}),
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: a node reaches only its own lease, and the kubelet never changes the holder",
        why="A kubelet's credentials reach leases only to report that the node is alive. One compromised node must not "
        "take a controller's lease.",
        who="No known client.",
        fix="Run the elector under a service account instead of the node's credentials.",
        attack="took a lease that its holder still had",
    ),
    reads=(*EXPIRY_FIELDS,),
    in_cel=RuleInCel(
        broken="""
        variables.live && 'system:nodes' in variables.groups && !(request.namespace == 'kube-node-lease' &&
        variables.holder == variables.name)
        """,
        message="{variables.taken}, and {!variables.user} is a node; {variables.retry}",
        lacks=_DATED_BY_STAMPS,
    ),
)


def takeover_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A service account of another namespace may not take a live lease from its holder.

    A pod that is the [stamped writer](../stamp.md) of the lease may name another holder.
    """
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace or _is_by_the_stamped_pod(change):
        return NO_FINDINGS
    return _report_takeover(change, about_writer="belongs to another namespace")


TAKEOVER_ACROSS_NAMESPACES: Final = Rule(
    check=takeover_across_namespaces,
    resources=LEASES,
    operations=UPDATE,
    events=frozenset({Event.STEAL}),
    about_writer=True,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: known clients steal, where they do, inside their own namespace only",
        why="A service account with a broad role can take the lease of any controller in the cluster.",
        who="Operators that elect in a namespace other than their own (cert-manager in kube-system), but only if they "
        "take a live lease; this rule never denies a takeover after expiry.",
        fix="Wait until the lease has expired. If two installations share the lease, give each its own.",
        attack="took a lease that its holder still had",
    ),
    reads=(*EXPIRY_FIELDS, "metadata.namespace"),
    in_cel=RuleInCel(
        broken="variables.live && variables.elsewhere",
        message="{variables.taken}, and {!variables.user} belongs to another namespace; {variables.retry}",
        lacks=_DATED_BY_STAMPS,
    ),
)


def _report_takeover(change: LeaseChange, about_writer: str = "") -> tuple[Finding, ...]:
    """Report that a live lease was taken; `about_writer` is a predicate of the user, such as "is a node".

    Its rules are evaluated on Event.STEAL alone, so the lease is live.
    """
    return report_loss(
        change,
        "spec.holderIdentity",
        detail=partial(_describe_live_lease, change, about_writer),
        happened="{0} was taken from {1}",
        fact=Event.STEAL,
    )


def _describe_live_lease(change: LeaseChange, about_writer: str) -> str:
    expiry = change.expiry
    assert expiry.duration_seconds is not None
    assert expiry.last_renewal is not None
    age = max(0, expiry.written_at - expiry.last_renewal) // SECOND
    clock = format_time(expiry.last_renewal)[11:]
    whose = "API server clock" if expiry.from_stamps else "the holder's clock"
    writer = f", and {quote(change.user.username)} {about_writer}" if about_writer else ""
    lease = f"{change.request.namespace}/{change.request.name}"
    return (
        f"lease {quote(lease)} is held by {quote(change.old_holder)}, last renewed {age} s ago ({clock}, {whose}), "
        f"duration {expiry.duration_seconds} s{writer}; "
        f"retry in {expiry.seconds_left} s, or ask the holder to release it"
    )


def _is_by_the_stamped_pod(change: LeaseChange) -> bool:
    """True if the API server stamped the pod that writes: several replicas may be one user, and are not one pod."""
    stamp = None if change.stamps is None else change.old_stamp
    return stamp is not None and is_same_pod(change.user, stamp)
