"""The identity leases of API servers, kube-system/apiserver-*."""

from collections.abc import Iterable

from webhook.api.field import forbidden
from webhook.rules.change import LeaseChange
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.rule import LEASES, NOT_A_RENEWAL, UPDATE, Rule
from webhook.rules.statement import Statement
from webhook.rules.well_known import IDENTITY_LABEL, KUBE_SYSTEM


def apiserver_lease_is_written_by_the_api_server(change: LeaseChange) -> Iterable[Finding]:
    """The identity lease of an API server may be written by system:apiserver only.

    Name, namespace and the stored label must all match: the label alone does not apply the rule to other leases. The
    label may not be removed either, because without it the rule would not apply to the next write.
    """
    request = change.request
    if request.namespace != KUBE_SYSTEM or not request.name.startswith("apiserver-"):
        return NOTHING
    if IDENTITY_LABEL not in (change.old_metadata.labels or {}) or change.user.username == "system:apiserver":
        return NOTHING
    if IDENTITY_LABEL not in (change.new_metadata.labels or {}):
        detail = f"{IDENTITY_LABEL} may be removed from an API server's identity lease by system:apiserver only"
        happened = Statement("{0} removed the identity label of an API server's lease", (change.user.username,))
        return (Finding(forbidden("metadata.labels", detail), happened=happened),)
    if change.event not in NOT_A_RENEWAL:
        return NOTHING
    detail = "an API server's identity lease may be written by system:apiserver only"
    happened = Statement("{0} wrote the identity lease of an API server", (change.user.username,))
    return (Finding(forbidden("spec", detail), happened=happened),)


RULES = (
    Rule(
        id="apiserver-lease-writer",
        check=apiserver_lease_is_written_by_the_api_server,
        resources=LEASES,
        operations=UPDATE,
        about_writer=True,
        source="ours: only the API server's own loopback client writes these leases",
    ),
)
