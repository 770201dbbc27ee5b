"""The ServiceAccount that was deleted, and perhaps created again, just before credentials were no longer accepted.

A token of a pod is for the uid of its account: one that was created again has another. Source: kubernetes
`pkg/serviceaccount/claims.go`, `Validate`.
"""

from typing import Final

from webhook.analysis.claims.diagnosis import ReplacedAccount
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import SECOND

_KIND: Final = "ServiceAccount"
_UNTIL_REFUSED: Final = 15 * SECOND
"""An API server remembers for ten seconds that a token was accepted."""


def find_replaced_account(histories: ClusterHistory, history: LeaseHistory) -> ReplacedAccount | None:
    """Return the account whose deletion came just before requests without accepted credentials; None if there is none.

    It is the account of all that were accepted from the addresses and programs of these requests.
    """
    unaccepted = [one for one in history.requests.refusals if one.is_unknown_user]
    sources = {one.source for one in unaccepted if one.source}
    users = {who.user for source in sources for who in history.requests.sources.get(source, ())}
    account = UserInfo(users.pop()).service_account if len(users) == 1 else None
    if account is None:
        return None
    skew = histories.bounds.skew
    own = [one for one in histories.index.related_writes if one.kind == _KIND and (one.namespace, one.name) == account]
    first = min(one.received for one in unaccepted)
    near = [one for one in own if one.verb == "deleted" and one.at - skew <= first <= one.at + _UNTIL_REFUSED]
    last = max(near, key=lambda one: one.at, default=None)
    if last is None or not last.is_surely_not_dry_run:
        return None
    return ReplacedAccount(last, is_back=any(one.verb == "created" and one.at >= last.at for one in own))
