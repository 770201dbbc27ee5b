"""Which webhooks the writes of one lease may wait for."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from webhook.doctor import configuration
from webhook.doctor.availability import drops_renewals
from webhook.doctor.configuration import MUTATING
from webhook.doctor.documents import Document, webhook_configurations
from webhook.doctor.namespaces import may_select


class OnPath(Struct, frozen=True):
    """A webhook that may be called for writes to a lease; `timeout` in seconds, `kind` `validating` or `mutating`."""

    name: str
    kind: str
    failure_policy: str
    timeout: int
    sees_renewals: bool


def on_path(documents: Iterable[Document], namespace: str) -> Iterator[OnPath]:
    """The webhooks whose rules match updates of leases in a namespace, whatever other labels that has."""
    for document in webhook_configurations(documents):
        try:
            found = configuration.read(document)
        except msgspec.ValidationError:
            continue  # the API server would refuse it, and `doctor` says so
        kind = "mutating" if found.kind == MUTATING else "validating"
        for one in found.webhooks or ():
            if one.reviews("leases", "UPDATE") and may_select(one.namespace_selector, namespace):
                policy = "Fail" if one.fails_closed else "Ignore"
                yield OnPath(one.name, kind, policy, one.timeout, not drops_renewals(one))
