"""A live lease is released by another writer than its holder."""

from collections.abc import Iterable
from typing import Final

from webhook.admission.rules.change import Event, LeaseChange
from webhook.admission.rules.expiry import EXPIRY_FIELDS
from webhook.admission.rules.finding import NO_FINDINGS, Finding
from webhook.admission.rules.holders import names_pod
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.loss import report_loss
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import LEASES, UPDATE
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.texts import Texts
from webhook.text.quoting import quote

_DATED_BY_STAMPS: Final = (
    "As for `takeover-before-expiry`; and a holder that is removed, and not emptied, has no stamp."
)


def foreign_release(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may be released only by the pod that its holder identity names.

    Not evaluated if the writer's token has no pod name, nor for the [stamped writer](../stamp.md) of the lease. After
    the pod's name only a character that no pod's name has, such as `_`, or a uuid may follow. Holder identities are
    free text, so this is a hint and not a proof.
    """
    pod = change.user.pod_name
    if not pod or change.expiry.is_expired or names_pod(change.old_holder, pod) or change.is_by_stamped_writer:
        return NO_FINDINGS
    return _report_release(change, f"pod {quote(pod)}")


FOREIGN_RELEASE: Final = Rule(
    check=foreign_release,
    resources=LEASES,
    operations=UPDATE,
    events=frozenset({Event.RELEASE}),
    about_writer=True,
    standard=Mode.AUDIT,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: client-go's default identity is the pod's host name, `_` and a uuid",
        why="Releasing the lease of another pod is the first step of a steal in two writes.",
        who="Electors whose holder identity does not begin with the pod's name, such as kube-vip and host-network "
        "pods, or continues it with `-` or `.` and no UUID, as the name of another pod does. client-go with "
        "`ReleaseOnCancel`: a leader that was paused may release the lease of its successor, and is rightly denied.",
        fix="Delete the pod instead, or wait until its lease expires. Set the elector's identity to the pod's name, "
        "alone or with an underscore and a UUID.",
        attack="released a lease for its holder",
    ),
    reads=(*EXPIRY_FIELDS,),
    in_cel=RuleInCel(
        broken="""
        variables.live && variables.pod != '' && size(variables.oldHolder) <= 4096 && !variables.namesPod &&
        !variables.isStampedWriter
        """,
        message="{variables.released} pod {!variables.pod}; {variables.wait}",
        lacks=f"{_DATED_BY_STAMPS} A holder of more than 4096 characters is not compared.",
        variables={
            # What follows the pod's name, for each of its names with which the old holder begins.
            "oldRests": """
            [variables.pod, variables.host]
            .filter(n, n != "" && variables.oldHolder.startsWith(n))
            .map(n, variables.oldHolder.substring(size(n))).filter(r, !r.matches("^[0-9A-Za-z]"))
            """,
            # No other pod has a name that begins with this one's and continues so.
            "namesPod": """
            variables.oldRests.exists(r, !r.matches("^[-.]+[0-9a-z]")
            || r.matches("^[-.]+[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))
            """,
        },
    ),
)


def foreign_release_across_namespaces(change: LeaseChange) -> Iterable[Finding]:
    """A live lease may not be released by a service account of another namespace.

    Not evaluated for the [stamped writer](../stamp.md) of the lease.
    """
    account = change.user.service_account
    if account is None or account[0] == change.request.namespace or change.expiry.is_expired:
        return NO_FINDINGS
    if change.is_by_stamped_writer:
        return NO_FINDINGS
    return _report_release(change, f"{quote(change.user.username)} of another namespace")


FOREIGN_RELEASE_ACROSS_NAMESPACES: Final = Rule(
    check=foreign_release_across_namespaces,
    resources=LEASES,
    operations=UPDATE,
    events=frozenset({Event.RELEASE}),
    about_writer=True,
    standard=Mode.WARN,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: no known client releases a lease of another namespace than its own service account's",
        why="As for `foreign-release`. A pod in another namespace can have the same name.",
        who="No known client releases a lease outside of its service account's namespace.",
        fix="Release from the holder itself.",
        attack="released a lease for its holder",
    ),
    reads=(*EXPIRY_FIELDS, "metadata.namespace"),
    in_cel=RuleInCel(
        broken="variables.live && variables.elsewhere && !variables.isStampedWriter",
        message="{variables.released} {!variables.user} of another namespace; {variables.wait}",
        lacks=_DATED_BY_STAMPS,
    ),
)


def _report_release(change: LeaseChange, who: str) -> tuple[Finding, ...]:
    holder = quote(change.old_holder)
    detail = (
        f"this write clears the holder of a live lease, which only {holder} may do, not {who}; "
        f"delete the pod of {holder}, or wait {change.expiry.seconds_left} s"
    )
    return report_loss(
        change,
        "spec.holderIdentity",
        detail=detail,
        happened="{0} was released on behalf of {1}",
        fact=Event.RELEASE,
    )
