"""The webhook configuration with whose deletion failures to call a webhook ended.

A log does not show which webhooks a configuration has. That failures ended, and no other configuration was written
between the last one and the next success, is what shows it.
"""

from collections.abc import Iterable
from typing import Final

from webhook.analysis.claims.diagnosis import RemovedWebhook
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import RelatedWrite
from webhook.kubernetes.times import MINUTE

KINDS: Final = frozenset({"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})


def find_removed_webhook(
    writes: Iterable[RelatedWrite], history: LeaseHistory, failure: Refusal
) -> RemovedWebhook | None:
    """Return the configuration whose deletion ended failures to call a webhook; None if none did, or it is back."""
    failed = [one for one in history.requests.refusals if one.failed_webhook == failure.failed_webhook]
    last = max((one.at for one in failed), default=failure.at)
    known = sorted((one for one in writes if one.kind in KINDS), key=lambda one: one.at)
    until = min((one.since for one in history.tenures if one.since > last), default=last + MINUTE)
    between = [one for one in known if last <= one.at <= until]
    if len(between) != 1 or between[0].verb != "deleted" or not between[0].is_surely_not_dry_run:
        return None
    deleted = between[0]
    own = [one for one in known if (one.kind, one.name) == (deleted.kind, deleted.name)]
    if own[-1] is not deleted:
        return None
    first = min((one.received for one in failed), default=failure.received)
    created = [one.writer for one in own if one.verb == "created" and one.at <= first]
    return RemovedWebhook(deleted.kind, deleted.name, created[-1] if created and created[-1].user else None)
