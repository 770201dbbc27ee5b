"""The reasons to doubt that a lease has expired: the input may lack renewals.

`why` and `audit` draw their conclusions from one such value, so that they cannot differ.
"""

from msgspec import Struct

from webhook.analysis.claims.evidence.contenders.askers import find_patient_reader
from webhook.analysis.claims.evidence.silent_holders.unlogged_renewals import Unlogged, describe_unlogged
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseStatus
from webhook.analysis.inputs.items import InputKind, Writer


class ExpiryDoubt(Struct, frozen=True):
    """The reasons to doubt that a lease has expired: none, by default."""

    is_log_leaky: bool = False
    """The latest state is by a log that is known to lack requests, if only those of other leases."""
    unlogged: Unlogged | None = None
    """What an input has not by which alone it has expired, so that it may lack its renewals."""
    patient_reader: Writer | None = None
    """Who could take it since it has expired by the log, and only reads it; None if no one does."""

    @property
    def may_lack_renewals(self) -> bool:
        """Whether an input may lack renewals by which the lease has not expired."""
        return self.is_log_leaky or self.unlogged is not None or self.patient_reader is not None


def find_expiry_doubt(
    histories: ClusterHistory, history: LeaseHistory, status: LeaseStatus | None, now: int
) -> ExpiryDoubt:
    """Return the reasons to doubt that a lease has expired at `now`, in microseconds since 1970."""
    unlogged = describe_unlogged(histories, history, status, now)
    return ExpiryDoubt(
        is_log_leaky=histories.bounds.is_log_leaky and history.kind is InputKind.AUDIT_LOG,
        unlogged=unlogged,
        patient_reader=None if unlogged else find_patient_reader(histories, history, status),
    )
