"""Prints a verdict as kubectl does, after the API server has passed it on.

kubernetes/apiserver `pkg/admission/plugin/webhook/errors/statuserror.go` puts the webhook before the message, and
kubectl prints the causes of what is invalid and the message of anything else: `pkg/cmd/util/helpers.go`.
"""

from collections.abc import Iterator
from typing import Final

from webhook.admission.verdict import Verdict, drop_repetitions
from webhook.kubernetes.request import AdmissionRequest

WEBHOOK: Final = "leases.lease-webhook.svc"
"""The webhook of the installation as it is shipped."""
_INVALID: Final = "Invalid"


def format_as_kubectl(verdict: Verdict, request: AdmissionRequest) -> str:
    """Return the lines of warnings and of a denial; "" for a write that is just admitted."""
    return "\n".join(_format_lines(verdict, request))


def _format_lines(verdict: Verdict, request: AdmissionRequest) -> Iterator[str]:
    yield from (f"Warning: {warning}" for warning in verdict.warnings)
    if verdict.allowed:
        return
    if verdict.reason != _INVALID:
        reason = verdict.reason or "unknown"
        yield f'Error from server ({reason}): admission webhook "{WEBHOOK}" denied the request: {verdict.message}'
        return
    causes = drop_repetitions(f"{cause.field}: {cause.message}" for cause in verdict.causes)
    start = f'The {request.kind} "{request.name}" is invalid: '
    if len(causes) == 1:
        yield start + causes[0]
        return
    yield start
    yield from (f"* {cause}" for cause in causes)
