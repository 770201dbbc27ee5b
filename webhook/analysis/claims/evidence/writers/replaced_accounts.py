"""The ServiceAccount that was deleted, and perhaps created again, just before credentials were no longer accepted.

A token of a pod is for the uid of its account: one that was created again has another. Source: kubernetes
`pkg/serviceaccount/claims.go`, `Validate`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.analysis.claims.diagnosis import ReplacedAccount
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import RelatedWrite
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND

_KIND: Final = "ServiceAccount"
_UNTIL_REFUSED: Final = 15 * SECOND
"""An API server remembers for ten seconds that a token was accepted."""


def find_replaced_account(
    writes: Iterable[RelatedWrite], history: LeaseHistory, unaccepted: Sequence[Refusal], skew: int
) -> ReplacedAccount | None:
    """Return the account whose deletion came just before requests that were `unaccepted`; None if there is none.

    It is that of all that were known from their addresses by their programs. `skew` is by how much clocks differ.
    """
    sources = {one.source for one in unaccepted if one.source}
    users = {who.user for source in sources for who in history.requests.sources.get(source, ())}
    account = UserInfo(users.pop()).service_account if len(users) == 1 else None
    if account is None:
        return None
    own = [one for one in writes if one.kind == _KIND and (one.namespace, one.name) == account]
    first = min(one.received for one in unaccepted)
    near = [one for one in own if one.verb == "deleted" and one.at - skew <= first <= one.at + _UNTIL_REFUSED]
    last = max(near, key=lambda one: one.at, default=None)
    if last is None or not last.is_surely_not_dry_run:
        return None
    return ReplacedAccount(last, is_back=any(one.verb == "created" and one.at >= last.at for one in own))
