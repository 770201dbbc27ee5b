"""Another lease of the name of one that does not exist, and who asked for that: a person may look in the wrong place.

An elector asks for its lease again and again under a service account, or as a component of Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.words import describe_writer, format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import UserInfo

_COMPONENT: Final = "system:"
"""How the users of service accounts and components begin."""


class Namesake(Struct, frozen=True):
    """A held lease of the same name in another namespace; `renewer` is who renewed it last, None if that is not known.

    `renewed` is when that was, in microseconds since 1970.
    """

    namespace: str
    name: str
    renewer: Writer | None
    renewed: int

    def describe(self, now: int) -> str:
        """`Lease kube-system/db exists, and shop/db from pod db-0 renewed it at 12:00:02Z`."""
        lease = f"Lease {format_name(self.namespace)}/{format_name(self.name)} exists"
        at = format_clock(self.renewed, now)
        if self.renewer is None:
            return f"{lease}, and was renewed at {at}"
        return f"{lease}, and {describe_writer(self.renewer)} renewed it at {at}"


def find_namesake(histories: ClusterHistory, history: LeaseHistory) -> Namesake | None:
    """Return the lease that may be meant instead of one that does not exist: first one that its namespace renews.

    Where an elector asks for it, one that other namespaces renew is of others.
    """
    if not history.requests.absent or history.lease is not None or history.tenures:
        return None
    found = list(_find_namesakes(histories, history))
    own = [one for one in found if _is_renewed_from(one, history.namespace)]
    likely = own or (found if find_askers_without_elector(history) else [])
    return max(likely, key=lambda one: one.renewed, default=None)


def _find_namesakes(histories: ClusterHistory, history: LeaseHistory) -> Iterator[Namesake]:
    for other in histories.index.list_namesakes(history):
        tenure = other.current_tenure
        if tenure is not None:
            yield Namesake(other.namespace, other.name, tenure.find_renewer(tenure.last_renewal), tenure.last_renewal)


def _is_renewed_from(lease: Namesake, namespace: str) -> bool:
    account = UserInfo(lease.renewer.user).service_account if lease.renewer is not None else None
    return account is not None and account[0] == namespace


def find_askers_without_elector(history: LeaseHistory) -> tuple[str, ...]:
    """Return who asked for a lease that does not exist, if no one of them may be an elector; else nobody."""
    waiting = history.requests.waiting
    askers = [one for one in waiting.asking if one.user]
    is_known = waiting.is_whole and len(askers) == len(waiting.asking)
    if not is_known or any(one.user.startswith(_COMPONENT) and not one.impersonator for one in askers):
        return ()
    return tuple(dict.fromkeys(describe_writer(one) for one in askers))
