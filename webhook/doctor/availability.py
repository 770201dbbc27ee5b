"""What an outage of the webhook does to leaders: how long a write waits, then what, and whether renewals wait."""

from collections.abc import Iterable
from typing import Final

from webhook.doctor.configuration import Entry, Webhook
from webhook.doctor.diagnosis import Diagnosis
from webhook.doctor.namespaces import is_opt_in
from webhook.doctor.renewal_condition import renewal_condition

LONGEST_SAFE_TIMEOUT: Final = 3
"""Leader-election clients give up on a request after 5 s (client-go `leaderelection/resourcelock/interface.go`,
renewDeadline / 2); etcd and the network need the rest."""

LONGEST_SAFE_TIMEOUT_WITH_RENEWALS: Final = 2
"""Measured with a webhook that never answers: with 2 s, renewals succeed every 4 s and no leader loses its
lease; with 5 s leaders lose it."""


def check_timeout(entry: Entry) -> Iterable[Diagnosis]:
    """If the webhook never answers, a leader has time for another try."""
    webhook = entry.webhook
    longest = LONGEST_SAFE_TIMEOUT if drops_renewals(webhook) else LONGEST_SAFE_TIMEOUT_WITH_RENEWALS
    if webhook.timeout > longest:
        value = webhook.timeout if webhook.timeout_seconds is not None else "absent, which means 10"
        yield Diagnosis(
            "timeout-too-long",
            entry.place("timeoutSeconds", value),
            f"leader-election clients give up on a write after 5 s. With the webhook unreachable a write waits"
            f" {webhook.timeout} s, even with failurePolicy Ignore, and healthy leaders lose their leases"
            " (kubernetes/kubernetes#90217).",
            "set timeoutSeconds: 2.",
        )


def check_renewals(entry: Entry) -> Iterable[Diagnosis]:
    """The API server does not send plain renewals."""
    webhook = entry.webhook
    if drops_renewals(webhook):
        return
    if webhook.fails_closed:
        yield Diagnosis(
            "renewals-fail-closed",
            entry.place("matchConditions", "no renewal condition, and failurePolicy Fail"),
            "every renewal needs this webhook. When it is down, each leader in scope loses its lease at its renew"
            " deadline (10 s for most) and no successor can take it.",
            "add the renewal condition of deploy/base/90-webhook.yaml, or set failurePolicy: Ignore.",
        )
    elif not (entry.has_chosen("renewals") or is_opt_in(webhook.namespace_selector)):
        yield Diagnosis(
            "renewals-reviewed",
            entry.place("matchConditions", "no renewal condition"),
            "every renewal of every leader waits for this webhook: about one call every 2 s per leader, and while the"
            " webhook is unreachable half of the renewals are late.",
            "add the renewal condition of deploy/base/90-webhook.yaml. If it is intended (component observe), add the"
            " annotation lease-webhook/renewals: reviewed.",
        )


def check_failure_policy(entry: Entry) -> Iterable[Diagnosis]:
    """Only namespaces that opt in fail closed."""
    webhook = entry.webhook
    if webhook.fails_closed and not is_opt_in(webhook.namespace_selector):
        value = webhook.failure_policy or "absent, which means Fail"
        yield Diagnosis(
            "fails-closed-everywhere",
            entry.place("failurePolicy", value),
            "while the webhook is down no lease in any namespace can be created, taken over or deleted: failover stops"
            " in the whole cluster, and clients that need a lease to start do not start.",
            "set failurePolicy: Ignore; for namespaces that want it, use the component strict, which selects them by"
            " the label lease-webhook/fail: closed.",
        )


def drops_renewals(webhook: Webhook) -> bool:
    """Whether plain renewals of leases never reach the webhook."""
    return not webhook.reviews("leases", "UPDATE") or renewal_condition(webhook) is not None
