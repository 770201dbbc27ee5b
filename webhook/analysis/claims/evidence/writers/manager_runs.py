"""Renewals under another field manager than the holder's, as a watch shows them; and what was put on the lease then."""

from collections.abc import Callable

from webhook.analysis.claims.words import format_clock, format_count, format_name
from webhook.analysis.history.holders.manager_run import ManagerRun
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.marks import MarkedLease
from webhook.kubernetes.managed_fields import OF_API_SERVERS


def find_manager_run(tenure: Tenure) -> ManagerRun | None:
    """Return the latest renewals of a holder under another field manager; None if an API server chose the holder.

    An API server that chooses a holder writes renewTime, too.
    """
    run = tenure.manager_run
    return None if run is None or OF_API_SERVERS in {run.manager, run.before} else run


def describe_manager_run(history: LeaseHistory, run: ManagerRun, now: int) -> str:
    """`until 12:00:42Z it was renewed 9 times under field manager x, which clients choose; before under y`."""
    times, when = format_count(run.count, "time"), "before and after" if run.is_over else "before"
    mark = describe_annotation(history, lambda one: one.writer is None and run.first <= one.at <= run.last)
    return (
        f"until {format_clock(run.last, now)} it was renewed {times} under field manager {format_name(run.manager)}, "
        f"which clients choose{mark}; {when} under {format_name(run.before)}"
    )


def describe_annotation(history: LeaseHistory, is_wanted: Callable[[MarkedLease], bool]) -> str:
    """Name the last of the annotations that another writer put on a lease, as the end of a clause; "" of none."""
    found = [one.mark for one in history.marks if one.mark.kind == "annotation" and is_wanted(one)]
    return f", with the annotation {format_name(f'{found[-1].key}={found[-1].value}')}" if found else ""
