"""How a live holder loses its lease: it is taken, released, shortened or deleted by another writer."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from webhook.admission.rules.change import CLEANUP_CONTROLLERS, NODE_LEASES, NODES, Event, LeaseChange
from webhook.admission.rules.expiry import Expiry
from webhook.admission.rules.holders import names_pod
from webhook.admission.rules.rule import NO_FINDINGS, Finding, Mode, Statement, texts
from webhook.admission.rules.stamps import is_same_pod, is_writer
from webhook.kubernetes.field import forbidden
from webhook.kubernetes.times import SECOND, canonical_seconds
from webhook.text.quoting import LazyText, quote

_FIELD: Final = "metadata.managedFields"
_FIX: Final = (
    "`kubectl apply --server-side` of apiVersion, kind, name, namespace and a label brings a record back "
    "(it stamps now, so a takeover waits one duration)"
)


@texts(
    source="ours: without stamps only the holder's own clock says when a lease expired, and a denial weakens",
    why="Without a stamp only the holder's own clock says whether the lease is live, and it may be wrong.",
    who="Leases that were created with a name only, and those whose managedFields were emptied before the webhook was "
    "installed, or removed by the API server because the lease was too large for etcd. The writer did nothing wrong.",
    fix="Restore the stamps: `kubectl apply --server-side` of apiVersion, kind, name, namespace and a label. That "
    "stamps the lease at that moment, so a takeover waits one duration.",
    attack="took a lease without a record of its renewal",
)
def lease_without_stamps(change: LeaseChange) -> Iterable[Finding]:
    """A lease that changes hands must carry the API server's stamps of its last renewal and of its new holder."""
    if change.event is Event.CLAIM:
        if change.new_entries or change.old_entries:
            return NO_FINDINGS
        unknown = "the API server keeps no record of this lease, so one write can take it from its new holder"
        happened = Statement("the API server keeps no record of this lease: one write can take it; fix: {page}")
    elif change.expiry.from_stamps:
        return NO_FINDINGS
    else:
        unknown = "the API server has no record of the last renewal of this lease, so its holder's own clock decides"
        happened = Statement("no API server record of the last renewal: the holder's own clock decided; repair: {page}")
    return (Finding(forbidden(_FIELD, f"{unknown}; {_FIX}"), happened=happened),)


@texts(
    source="ours: apimachinery's skipNonAppliedManager tracks no update of an object that has no managedFields",
    why="The API server keeps managedFields for an object only if it is created with a field, or applied server-side "
    "later. Without them nothing proves that the lease is renewed, and one write takes it from a live holder, in "
    "`strict` too.",
    who="Manifests of leases that are created beforehand, so that RBAC can name them, and contain nothing but a name. "
    "No known elector.",
    fix="Add a label to the manifest. If the lease exists, apply the manifest with `kubectl apply --server-side`; "
    "neither `kubectl label` nor an apply of the name alone makes the API server keep managedFields.",
)
def lease_created_empty(change: LeaseChange) -> Iterable[Finding]:
    """A lease may not be created with a name only: the API server then never keeps managedFields for it."""
    if change.was_set or change.new_entries:
        return NO_FINDINGS
    detail = (
        "the API server keeps no record of the renewals of a lease that is created empty, so one write could take it "
        "from a live holder; create it with a label"
    )
    happened = Statement("a lease was created empty: no renewal of it will have an API server's stamp; fix: {page}")
    return (Finding(forbidden(_FIELD, detail), happened=happened),)


@texts(
    source="ours: client-go, fabric8, client-java and Python retry and win after expiry, so a denial only delays",
    why="Two processes believe that they lead until the old leader notices, twelve seconds with the defaults of "
    "client-go.",
    who="Electors that compare `renewTime` with their own clock while it runs ahead; Apache Camel, which takes over as "
    "soon as the leader's pod is gone; Istio's default revision; two programs that share one lease.",
    fix="Wait until the lease has expired and retry, as client-go does, or ask the holder to release it. Keep clocks "
    "synchronized. Give each program a lease of its own.",
    attack="took a lease that its holder still had",
)
def takeover_before_expiry(change: LeaseChange) -> Iterable[Finding]:
    """The holder of a live lease may not be replaced before the lease expires.

    Expiry follows from API servers' stamps: the renewal was seen, then leaseDurationSeconds passed. A pod that is the
    stamped writer of the lease may name another holder.
    """
    return _report_takeover(change, "")


@texts(
    source="ours: the writer is the pod and the user of an authenticated token, which no client chooses",
    why="The holder is a text that any client may write, so a client that writes in the holder's name looks like the "
    "holder. The stamp does not.",
    who="A new pod of a StatefulSet that resumes its predecessor's identity; replicas that write as one user, unless "
    "`writer: user` is set; people who repair a lease by hand.",
    fix="Wait until the lease has expired, or ask the holder to release it. If the replicas of one user are one "
    "writer, set `writer: user` in the policy, and label the namespace `lease-webhook/stamp-writer=user`.",
    attack="wrote a lease that another writer held",
)
def foreign_writer(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may be written only by the writer that the API server stamped on it.

    Evaluated in namespaces that the policy file lists under `stamps`: takeovers, renewals and releases for the holder,
    other changes of spec, deletions, and changes of owners. Anyone may change labels and other annotations; the writers
    of a binding may change owners. The garbage collector and the namespace controller are exempt.
    """
    stamps = change.stamps
    if stamps is None or (stamp := change.old_stamp) is None or not stamp.writer or not change.old_holder:
        return NO_FINDINGS
    user, after = change.user, change.new_stamp
    if change.event is Event.UNTOUCHED and (
        change.new_metadata.owner_references == change.old_metadata.owner_references or change.is_by_listed_writer
    ):
        return NO_FINDINGS
    # Only the sender can omit the time, so our clock, which may be wrong, must not replace it.
    is_undated = after is not None and after.written is None and bool(change.request.new)
    is_expired = change.expiry.expired and not is_undated
    if is_writer(user, stamp, stamps) or user.username in CLEANUP_CONTROLLERS or is_expired:
        return NO_FINDINGS
    wait = "without managedFields" if is_undated else f"in {change.expiry.seconds_left} s"
    detail = (
        f"the lease is held by {quote(change.old_holder)} and was last written by {quote(stamp.writer)}, which this "
        f"writer is not; retry {wait}, or ask the holder to release it"
    )
    fact = change.event if change.event in (Event.STEAL, Event.RELEASE) else ""
    what = {Event.STEAL: "taken from {1}", Event.DELETE: "deleted, held by {1},"}
    happened = what.get(change.event, "written by another writer than that of {1}")
    return _report_loss(change, "spec" if change.request.new else "metadata", detail, f"{{0}} was {happened}", fact)


@texts(
    source="ours: a node reaches only its own lease, and the kubelet never changes the holder",
    why="A kubelet's credentials reach leases only to report that the node is alive. One compromised node must not "
    "take a controller's lease.",
    who="No known client.",
    fix="Run the elector under a service account instead of the node's credentials.",
    attack="took a lease that its holder still had",
)
def takeover_by_node(change: LeaseChange) -> Iterable[Finding]:
    """A node may not take a live lease from its holder.

    In kube-node-lease a node may put its own name back, which repairs a foreign write. A pod that is the [stamped
    writer](../stamp.md) of the lease may name another holder.
    """
    if NODES not in change.user.groups:
        return NO_FINDINGS
    if change.request.namespace == NODE_LEASES and change.new_holder == change.request.name:
        return NO_FINDINGS
    return _report_takeover(change, ", and {} is a node")


@texts(
    source="ours: known clients steal, where they do, inside their own namespace only",
    why="A service account with a broad role can take the lease of any controller in the cluster.",
    who="Operators that elect in a namespace other than their own (cert-manager in kube-system), but only if they take "
    "a live lease; this rule never denies a takeover after expiry.",
    fix="Wait until the lease has expired. If two installations share the lease, give each its own.",
    attack="took a lease that its holder still had",
)
def takeover_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A service account of another namespace may not take a live lease from its holder.

    A pod that is the [stamped writer](../stamp.md) of the lease may name another holder.
    """
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace:
        return NO_FINDINGS
    return _report_takeover(change, ", and {} belongs to another namespace")


def _report_takeover(change: LeaseChange, addition: str) -> tuple[Finding, ...]:
    """`addition` is the end of a clause about the writer, `{}`."""
    if _is_by_the_stamped_pod(change):
        return NO_FINDINGS
    return _report_loss(
        change, "spec.holderIdentity", partial(_detail, change, addition), "{0} was taken from {1}", Event.STEAL
    )


def _report_loss(
    change: LeaseChange, field: str, detail: LazyText, what: str, fact: str = "", *, tier: Mode = Mode.DENY
) -> tuple[Finding, ...]:
    """`what` is a clause about the lease, `{0}`, and its holder, `{1}`."""
    lease = f"{change.request.namespace}/{change.request.name}"
    happened = Statement(partial(_describe_expiry, change.expiry, what), (lease, change.old_holder))
    return (
        Finding(
            forbidden(field, detail),
            tier=tier,
            without_stamps=not change.expiry.from_stamps,
            happened=happened,
            fact=fact,
        ),
    )


def _describe_expiry(expiry: Expiry, what: str) -> str:
    return f"lease {what} {expiry.seconds_left} s before expiry{expiry.whose_clock}: there may be two leaders"


def _detail(change: LeaseChange, addition: str) -> str:
    expiry = change.expiry
    assert expiry.duration_seconds is not None
    assert expiry.seen_at is not None
    age = max(0, expiry.written_at - expiry.seen_at) // SECOND
    clock = canonical_seconds(expiry.seen_at)[11:]
    whose = "API server clock" if expiry.from_stamps else "the holder's clock"
    writer = addition.format(quote(change.user.username)) if addition else ""
    lease = f"{change.request.namespace}/{change.request.name}"
    return (
        f"lease {quote(lease)} is held by {quote(change.old_holder)}, last renewed {age} s ago ({clock}, {whose}), "
        f"duration {expiry.duration_seconds} s{writer}; "
        f"retry in {expiry.seconds_left} s, or ask the holder to release it"
    )


@texts(
    source="ours: client-go's default identity is the pod's host name, `_` and a uuid",
    why="Releasing the lease of another pod is the first step of a steal in two writes.",
    who="Electors whose holder identity does not begin with the pod's name, such as kube-vip and host-network pods, or "
    "continues it with `-` or `.` and no UUID, as the name of another pod does.",
    fix="Delete the pod instead, or wait until its lease expires. Set the elector's identity to the pod's name, alone "
    "or with an underscore and a UUID.",
    attack="released a lease for its holder",
)
def foreign_release(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may be released only by the pod that its holder identity names.

    Not evaluated if the writer's token has no pod name, nor for the [stamped writer](../stamp.md) of the lease. After
    the pod's name only a character that no pod's name has, such as `_`, or a uuid may follow. Holder identities are
    free text, so this is a hint and not a proof.
    """
    pod = change.user.pod_name
    if not pod or change.expiry.expired or names_pod(change.old_holder, pod) or change.is_by_stamped_writer:
        return NO_FINDINGS
    return _report_release(change, f"pod {quote(pod)}")


@texts(
    source="ours: no known client releases a lease of another namespace than its own service account's",
    why="As for `foreign-release`. A pod in another namespace can have the same name.",
    who="No known client releases a lease outside of its service account's namespace.",
    fix="Release from the holder itself.",
    attack="released a lease for its holder",
)
def foreign_release_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be released by a service account of another namespace.

    Not evaluated for the [stamped writer](../stamp.md) of the lease.
    """
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace or change.expiry.expired:
        return NO_FINDINGS
    if change.is_by_stamped_writer:
        return NO_FINDINGS
    return _report_release(change, f"{quote(change.user.username)} of another namespace")


def _report_release(change: LeaseChange, who: str) -> tuple[Finding, ...]:
    holder = quote(change.old_holder)
    detail = (
        f"this write clears the holder of a live lease, which only {holder} may do, not {who}; "
        f"delete the pod of {holder}, or wait {change.expiry.seconds_left} s"
    )
    return _report_loss(change, "spec.holderIdentity", detail, "{0} was released on behalf of {1}", Event.RELEASE)


@texts(
    source="ours: no known client does it, and it makes a live lease count as expired",
    why="Cutting the duration, or removing `renewTime`, makes a live lease count as expired, the first step of a "
    "steal.",
    who="People who repair a lease by hand. No known client.",
    fix="Renew in the same write (a renewal that lowers the duration is allowed), or release the lease instead.",
    attack="cut a lease that another held",
)
def duration_shortened(change: LeaseChange) -> Iterable[Finding]:
    """The duration or renewTime of a held lease may not be cut without renewing it.

    It only warns of a write that sets another `renewTime` or `acquireTime` and removes the duration or the `renewTime`:
    an elector that sets none does so whenever others set one. Not evaluated for the [stamped writer](../stamp.md) of
    the lease.
    """
    if not change.old_holder or change.new_holder != change.old_holder or change.is_by_stamped_writer:
        return NO_FINDINGS
    new, old = change.new_spec.lease_duration_seconds, change.old_spec.lease_duration_seconds
    tier = Mode.WARN if change.is_of_an_elector else Mode.DENY
    if old is not None and new is None:
        return _report_shortening(change, "leaseDurationSeconds", tier=tier)
    if change.new_renew_time is None and change.old_renew_time is not None:
        return _report_shortening(change, "renewTime", tier=tier)
    if old is not None and new is not None and new < old and change.new_renew_time == change.old_renew_time:
        may_not = f"may not be decreased from {old} to {new} without a new renewTime"
        return _report_shortening(change, "leaseDurationSeconds", may_not, f"decreased from {old} to {new}")
    return NO_FINDINGS


def _report_shortening(
    change: LeaseChange,
    name: str,
    may_not: str = "may not be removed",
    was: str = "was removed",
    *,
    tier: Mode = Mode.DENY,
) -> tuple[Finding, ...]:
    left = change.expiry.seconds_left
    remaining = f" ({left} s left)" if left else ""
    detail = f"{may_not} while {quote(change.old_holder)} holds the lease{remaining}; renew or release instead"
    lost = f"{name} {was} while {{0}} holds the lease: there may be two leaders"
    happened = Statement(lost, (change.old_holder,))
    return (Finding(forbidden(f"spec.{name}", detail), tier=tier, happened=happened),)


@texts(
    source="ours: kube-apiserver, konnectivity and medik8s delete their own leases, so only audited by default",
    why="After a live lease is deleted, another process can create it and lead at the same time as the old leader.",
    who="`helm uninstall` and `kubectl delete` while the program runs; konnectivity and medik8s, which delete their "
    "own leases; a controller that removes its finalizer from a deleted lease that is held again.",
    fix="Stop the holder first, and delete when its lease has expired or was released.",
    attack="deleted a lease that was held",
)
def live_lease_deleted(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be deleted, except by the garbage collector and the namespace controller.

    An UPDATE that removes the last finalizer of a lease which was deleted before deletes it as well. It only warns of
    one that renews the lease or releases it: an elector that writes the whole lease without finalizers removes those of
    others each time. Not evaluated for the [stamped writer](../stamp.md) of the lease.
    """
    if change.expiry.expired or change.user.username in CLEANUP_CONTROLLERS or change.is_by_stamped_writer:
        return NO_FINDINGS
    expiry = change.expiry
    detail = (
        f"the lease is held by {quote(change.old_holder)} for another {expiry.seconds_left} s{expiry.whose_clock}; "
        "stop its holder first, or delete the lease after that"
    )
    of_its_elector = change.request.new and change.new_holder in ("", change.old_holder) and change.is_of_an_elector
    return _report_loss(
        change, "metadata", detail, "{0} of {1} was deleted", tier=Mode.WARN if of_its_elector else Mode.DENY
    )


def _is_by_the_stamped_pod(change: LeaseChange) -> bool:
    """True if the API server stamped the pod that writes: several replicas may be one user, and are not one pod."""
    stamp = None if change.stamps is None else change.old_stamp
    return stamp is not None and is_same_pod(change.user, stamp)
