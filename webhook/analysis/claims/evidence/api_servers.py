"""What is said of a lease by which an API server shows that it runs, after its deletion: no one elects by it."""

from typing import Final

from webhook.admission.rules.change import IDENTITY_LABEL
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.handover_clauses import describe_address_of_end, describe_dating_of_end, describe_ending
from webhook.analysis.claims.words import describe_writer
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure
from webhook.analysis.history.lease import LeaseHistory

API_SERVERS: Final = f"kubectl -n kube-system get leases -l {IDENTITY_LABEL}"
"""Lists the leases of the API servers that run."""
_ENDS: Final = ", as API servers do when they end"


def describe_end(history: LeaseHistory, tenure: Tenure) -> str:
    """Say how a holder lost a lease, or how that of an API server was deleted, and how well that is dated."""
    is_of_server = tenure.is_deleted and is_identity_of_api_server(history.namespace, history.name)
    ending = _describe_deletion(tenure) if is_of_server else describe_ending(tenure)
    return f"{ending}{describe_address_of_end(tenure)}{describe_dating_of_end(tenure)}"


def _describe_deletion(tenure: Tenure) -> str:
    """`system:apiserver deleted the lease of an API server, as API servers do when they end`.

    Each API server is that user, and one deletes what others left behind. Which of them did is not known.
    """
    who = tenure.deletion.by
    if who is None:
        return "the lease of an API server was deleted"
    deleted = "deleted" if tenure.deletion.is_sure else "may have deleted"
    return f"{describe_writer(who)} {deleted} the lease of an API server{_ENDS if who.user == API_SERVER else ''}"


def advise_after_end_of_api_server(tenure: Tenure | None) -> Advice:
    """Return what to do: nothing for the lease, as each API server that runs has one."""
    is_own = tenure is not None and tenure.deletion.by is not None and tenure.deletion.by.user == API_SERVER
    sentence = "No one elects by the lease of an API server, which creates it again while it runs."
    if is_own:
        sentence = "No one elects by it, and an API server that ends deletes its own: nothing is missing if one ended."
    return Advice(f"{sentence} To see those that run:", API_SERVERS)
