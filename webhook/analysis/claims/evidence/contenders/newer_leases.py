"""A newer lease that may have come in place of one that expired: a release may elect by another name.

An audit log shows whether processes of the account of the last holder write it, and ask for the old one no more. A
watch shows no accounts: there, a newer lease of the namespace is a lead, and no more.
"""

from collections.abc import Iterator

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.evidence.contenders.askers import SHORTEST, may_take
from webhook.analysis.claims.words import describe_user, format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND, parse_stamp


class NewerLease(Struct, frozen=True):
    """A lease of the same namespace that was `created` later, in microseconds since 1970, and is renewed.

    `renewer` is the pod that renews it under the account of the last holder; None if the input shows no accounts.
    """

    name: str
    created: int
    renewer: Writer | None = None
    shows_reads: bool = False
    """The log has reads of the lease that expired: without, it shows only who tried to write that."""

    def describe(self, now: int) -> str:
        """Say what is known of it, as a sentence without its end."""
        created = format_clock(self.created, now)
        if self.renewer is None:
            return (
                f"{self.name}, of the same namespace, was created at {created}, before the last renewal of this one, "
                "and is renewed"
            )
        what = "request for" if self.shows_reads else "write to"
        return (
            f"{self.name} was created at {created}, and pod {format_name(self.renewer.pod)} of "
            f"{describe_user(self.renewer)} renews it; the log has no {what} this one by a pod of that account "
            "since it expired"
        )

    def advise(self) -> str:
        """Return what that may mean, as a sentence."""
        if self.renewer is None:
            return f"This lease may be left over, if its workload elects by lease {self.name} now."
        return f"This lease may be left over: a new release may elect by lease {self.name}."


def find_newer_lease(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None, now: int
) -> NewerLease | None:
    """Return the latest one that may have come in place of an expired lease; None if none is known."""
    tenure = history.latest_tenure
    if status is None or status.state is not LeaseState.EXPIRED or status.takeable_at is None or tenure is None:
        return None
    if history.namespace == NODE_LEASES or history.is_heartbeat or history.is_list_only or tenure.is_claimed:
        return None
    own = tenure.processes.own
    found = (
        _find_leads(histories, history, tenure, now) if own is None else _find_by_account(histories, history, own, now)
    )
    if own is not None and not is_asked_for_no_more(histories, history, status.takeable_at):
        return None
    return max(found, key=lambda one: one.created, default=None)


def _find_leads(histories: ClusterHistory, history: LeaseHistory, tenure: Tenure, now: int) -> Iterator[NewerLease]:
    """Yield the leases of the namespace that were created before the last renewal of its holder, and are renewed."""
    for other in histories.index.list_of_namespace(history.namespace):
        created = _find_creation(other)
        if created is not None and tenure.since < created <= tenure.last_renewal and _is_renewed(other, now):
            yield NewerLease(_name(other), created)


def _find_by_account(histories: ClusterHistory, history: LeaseHistory, own: Writer, now: int) -> Iterator[NewerLease]:
    """Yield the leases of the namespace that other pods of the account of a holder have, which it did not have."""
    if UserInfo(own.user).service_account is None:
        return
    first, asked = history.tenures[0].since, set(history.requests.accounts.get(own.user, ()))
    asked.update(pod for one in history.tenures for pod in one.processes.pods)
    for other, tenure in histories.index.find_tenures_of_user(own.user):
        created, renewer = _find_creation(other), tenure.processes.own
        is_present = other.namespace == history.namespace and tenure is other.current_tenure
        if not is_present or created is None or created <= first or renewer is None or not _is_renewed(other, now):
            continue
        # Who asked for both leases has several on purpose.
        if renewer.pod and renewer.pod not in asked:
            yield NewerLease(_name(other), created, renewer, history.has_reads_of_holders)


def is_asked_for_no_more(histories: ClusterHistory, history: LeaseHistory, expired: int) -> bool:
    """Return whether a log shows that no one who may want a lease asked for it since it expired."""
    waiting, until = history.requests.waiting, histories.bounds.logged_until
    since = max(waiting.since, expired)
    if until - since < SHORTEST or not waiting.is_whole or histories.bounds.has_hole(since, until):
        return False
    if history.is_partial or history.requests.is_watched or histories.lacks_requests(history):
        return False
    return not any(may_take(history, who) for who, _ in waiting.find_others(None, since))


def _find_creation(other: LeaseHistory) -> int | None:
    """Return when a lease was created, which an API server writes; None if that is not known, or it is a heartbeat."""
    if other.lease is None or other.is_heartbeat or other.is_as_sent:
        return None
    return parse_stamp(other.lease.metadata.creation_timestamp)


def _is_renewed(other: LeaseHistory, now: int) -> bool:
    status, tenure = other.find_status(now), other.current_tenure
    is_live = status is not None and status.state is LeaseState.LIVE
    return is_live and tenure is not None and tenure.last_renewal > tenure.since + SECOND


def _name(other: LeaseHistory) -> str:
    return format_name(f"{other.namespace}/{other.name}")
