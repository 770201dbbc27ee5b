"""Leases that one client alone wrote, under several names, and that no one renewed: nobody elects by such a lease."""

from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer


def find_sole_writer(history: LeaseHistory) -> Writer | None:
    """Return who alone asked for a lease, and wrote each of its holders; None if any was renewed, or is not shown."""
    tenures = history.tenures
    takers = {one.processes.taken_by.process if one.processes.taken_by else None for one in tenures}
    only = takers.pop() if len(takers) == 1 else None
    heard = history.requests.heard
    if only is None or not only.user or heard.has_forgotten or not all(map(only.is_same, heard.times)):
        return None
    is_whole = history.has_reads_of_holders and not history.is_partial
    return only if len(tenures) > 1 and is_whole and all(_is_ended_by(one, only) for one in tenures) else None


def _is_ended_by(tenure: Tenure, only: Writer) -> bool:
    """Return whether a holder was never renewed, and only this writer removed it or deleted the lease."""
    enders = (tenure.removal.writer, tenure.deletion.by)
    is_ended = all(one is None or only.is_same(one) for one in enders)
    is_known = not tenure.is_deleted or tenure.deletion.by is not None
    return is_ended and is_known and not (tenure.processes.renewals or tenure.processes.others)


def find_sole_manager(history: LeaseHistory) -> str:
    """Return the field manager under which each holder was written, if none was renewed; "" if there is none.

    Clients choose their field managers, so that is a hint, and of use where no log shows who wrote.
    """
    if history.requests.is_logged:
        return ""
    managers = {one.beginning.manager for one in history.tenures}
    is_renewed = any(one.processes.renewals or one.processes.others for one in history.tenures)
    return managers.pop() if len(managers) == 1 and len(history.tenures) > 1 and not is_renewed else ""
