"""The pod that deleted a lease, and was deleted itself: a hook of its end may have done that, and the pod is gone."""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import describe_by_writer, format_clock, format_name, name_deletion
from webhook.analysis.history.audit_log.deleted_pods import is_by_kubelet
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.items import PodDeletion, Writer
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE
from webhook.text.commands import make_kubectl_prefix, quote_for_shell

_WITHIN: Final = 10 * MINUTE
"""For how long a pod may take to end after its deletion was asked for."""


class EndedDeleter(Struct, frozen=True):
    """A pod that deleted a lease: `is_ending` says that somebody had `asked` before that for the end of the pod."""

    deleter: Writer
    asked: PodDeletion
    is_ending: bool

    def describe(self, now: int) -> str:
        """`that pod had been deleted at 12:00:02Z by alice, so a preStop hook of it may have done this`."""
        by, at = describe_by_writer(self.asked.writer), format_clock(self.asked.at, now)
        return f"that pod had been {name_deletion(self.asked)} at {at}{by}, so a preStop hook of it may have done this"

    def advise(self) -> Advice:
        """Return how to see what other pods of the account do when they end: this one has been deleted."""
        account = UserInfo(self.deleter.user).service_account
        assert account is not None  # the namespace of a pod that was deleted is that of its account
        where = make_kubectl_prefix(account[0])
        pods = f"{where} get pods --field-selector spec.serviceAccountName={quote_for_shell(account[1])} -o yaml"
        sentence = (
            f"Decide whether {format_name(self.deleter.name)} should delete leases. The pod that did it has been "
            "deleted. To see whether others of its account have a hook (preStop) that does the same:"
        )
        return Advice(sentence, pods)


def find_ended_deleter(histories: ClusterHistory, before: Tenure) -> EndedDeleter | None:
    """Return the pod that deleted the lease of a holder, if it was deleted about then; None if that is not known."""
    who, until = before.deletion.by, before.deletion.marked_at or before.until
    if who is None or until is None:
        return None
    known = histories.deleted_pods.list_deletions_by(who)
    near = [one for one in known if abs(one.at - until) <= _WITHIN and one.is_surely_not_dry_run]
    asked = next((one for one in near if not is_by_kubelet(one)), None)
    return EndedDeleter(who, asked, is_ending=asked.at <= until) if asked is not None else None
