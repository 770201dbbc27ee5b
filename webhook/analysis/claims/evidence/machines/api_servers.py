"""What is said of a lease by which an API server shows that it runs, after its deletion: no one elects by it."""

from typing import Final

from webhook.admission.rules.change import IDENTITY_LABEL
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.handover_clauses import describe_address_of_end, describe_dating_of_end, describe_ending
from webhook.analysis.claims.words import describe_writer, format_clock, format_name
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND, format_length, parse_stamp

API_SERVERS: Final = f"kubectl -n kube-system get leases -l {IDENTITY_LABEL}"
"""Lists the leases of the API servers that run."""
_HOSTNAME: Final = "kubernetes.io/hostname"
API_SERVERS_BY_HOST: Final = f"{API_SERVERS} -L {_HOSTNAME}"
"""Lists them with the hosts that they name."""
_ENDS: Final = ", as API servers do when they end"
_STARTS: Final = ", as an API server that starts does with that of the process before it"
_MAX_START: Final = 2 * SECOND
"""An API server that starts deletes the lease of the process before it, and creates its own; no restart is as fast."""
_MISSED: Final = 2
"""So many usual intervals without a renewal are no delay: the API server had ended, or could not write any more."""


def describe_end(history: LeaseHistory, tenure: Tenure) -> str:
    """Say how a holder lost a lease, or how that of an API server was deleted, and how well that is dated."""
    is_of_server = tenure.is_deleted and is_identity_of_api_server(history.namespace, history.name)
    ending = _describe_deletion(history, tenure) if is_of_server else describe_ending(tenure)
    who = tenure.removal.writer
    is_open = tenure.removal.is_own is None and ending.endswith("released it, or was removed")
    by = f" ({describe_writer(who)} wrote that)" if is_open and who is not None and who.pod else ""
    return f"{ending}{by}{describe_address_of_end(tenure)}{describe_dating_of_end(tenure)}"


def _describe_deletion(history: LeaseHistory, tenure: Tenure) -> str:
    """`system:apiserver deleted the lease of an API server, as API servers do when they end`.

    Each API server is that user, and one deletes what others left behind. Which of them did is not known.
    """
    who = tenure.deletion.by
    if who is None:
        return "the lease of an API server was deleted"
    deleted = "deleted" if tenure.deletion.is_sure else "may have deleted"
    reason = _find_reason(history, tenure) if who.user == API_SERVER else ""
    return f"{describe_writer(who)} {deleted} the lease of an API server{reason}"


def _find_reason(history: LeaseHistory, tenure: Tenure) -> str:
    """Return why an API server may have deleted the lease of one, as the end of a clause; "" if nothing shows it."""
    until = tenure.until or tenure.kept_until
    after = next((one for one in history.tenures if one.since >= until), None)
    if after is not None and after.since - until <= _MAX_START:
        # Each process has a name of its own: under the old one, the process before goes on.
        return "" if after.holder == tenure.holder else _STARTS
    silence, usual = until - tenure.kept_until, history.renewals.usual
    is_shown = not any(one.end > tenure.kept_until and one.start < until for one in history.renewals.unseen)
    if usual is None or not is_shown or tenure.is_claimed:
        return ""
    is_silent = silence > _MISSED * usual
    return f", {format_length(silence)} after its last renewal" if is_silent else _ENDS


def advise_after_end_of_api_server(tenure: Tenure | None) -> Advice:
    """Return what to do: nothing for the lease, as each API server that runs has one."""
    is_own = tenure is not None and tenure.deletion.by is not None and tenure.deletion.by.user == API_SERVER
    sentence = "No one elects by the lease of an API server, which creates it again while it runs."
    if is_own:
        sentence = "No one elects by it, and an API server that ends deletes its own: nothing is missing if one ended."
    return Advice(f"{sentence} To see those that run:", API_SERVERS)


def advise_on_silent_server(histories: ClusterHistory, history: LeaseHistory, last: int, now: int) -> Advice:
    """Return what to do if an API server does not renew its lease since `last`: it may have another name now."""
    sentence = describe_server(history)
    later = find_later_servers(histories, history, last)
    if later:
        newest = later[-1]
        name, at = format_name(newest.name), format_clock(newest.tenures[0].since, now)
        sentence += (
            f" Another one, {name}{_describe_host(newest)}, was created at {at}: perhaps the same machine under "
            "another name; the old lease is then not renewed any more."
        )
    return Advice(f"{sentence} To see all:", API_SERVERS_BY_HOST)


def describe_server(history: LeaseHistory) -> str:
    """Return what the lease of an API server is, with the host that it names, as a sentence."""
    return f"This is the lease of an API server{_describe_host(history)}, by which no one elects."


def find_later_servers(histories: ClusterHistory, history: LeaseHistory, last: int) -> list[LeaseHistory]:
    """Return the leases of other API servers that were created after an instant and are renewed, the newest last."""
    others = histories.index.list_of_namespace(history.namespace)
    found = [
        one
        for one in others
        if one is not history and is_identity_of_api_server(one.namespace, one.name) and _is_created_after(one, last)
    ]
    return sorted(found, key=lambda one: one.tenures[0].since)


def _is_created_after(history: LeaseHistory, last: int) -> bool:
    if not history.tenures or history.lease is None or history.renewals.count < 1 or history.is_deleted:
        return False
    first = history.tenures[0]
    created = parse_stamp(history.lease.metadata.creation_timestamp)
    is_created = first.began is Handover.CREATED if created is None else created + SECOND > last
    return first.since > last and is_created


def _describe_host(history: LeaseHistory) -> str:
    """` (host cp-1)`, by the label that API servers write; "" without one."""
    host = ((history.lease.metadata.labels or {}) if history.lease else {}).get(_HOSTNAME)
    return f" (host {format_name(host)})" if host else ""
