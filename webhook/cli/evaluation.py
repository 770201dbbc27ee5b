"""Evaluates documents as `serve` would: the same decoder, the same rules, the same verdict."""

import time

from msgspec import Struct
from msgspec.structs import replace

from webhook.api.field import not_supported
from webhook.api.request import GROUP, KIND_OF, VERSIONS_OF, AdmissionRequest
from webhook.api.review import ReviewError, decode
from webhook.evaluate import evaluate
from webhook.inputs.items import Place
from webhook.policy.model import Policy
from webhook.rules.change import change_made_by
from webhook.rules.election.renewal_stamp import stamp_of_writer
from webhook.rules.rule import Mode
from webhook.verdict import Cause, Verdict


class Evaluation(Struct, frozen=True):
    """A document with its verdict at `now` (microseconds since 1970); `is_past`: it was sent to an API server once."""

    place: Place
    request: AdmissionRequest
    verdict: Verdict
    now: int
    is_past: bool = True

    @property
    def level(self) -> Mode:
        """DENY, WARN or OFF: whether it is denied, admitted with warnings, or just admitted."""
        return Mode.DENY if not self.verdict.allowed else Mode.WARN if self.verdict.warnings else Mode.OFF


def evaluate_review(
    place: Place, body: bytes, policy: Policy, now: int | None = None, *, writer_known: bool = True
) -> Evaluation:
    """Evaluate the bytes of one review; raises ReviewError if they are not one, or nest too deeply.

    `now` is in microseconds since 1970; None takes the latest time that an API server stamped into the review, else the
    clock. Without `writer_known` the rules about the writer are left out.
    """
    try:
        return evaluate_request(place, decode(body), policy, now, writer_known=writer_known)
    except RecursionError:
        raise ReviewError(400, "nested too deeply") from None


def evaluate_request(
    place: Place, request: AdmissionRequest, policy: Policy, now: int | None, *, writer_known: bool
) -> Evaluation:
    """Evaluate one write in the same way."""
    at = _received_at(request) if now is None else now
    verdict = evaluate(request, policy, at, writer_known=writer_known)
    is_unknown_version = request.group == GROUP and request.resource in KIND_OF and not request.is_ours
    if policy.mode is Mode.DENY and is_unknown_version:
        verdict = _deny_version(request, verdict)
    return Evaluation(place, request, verdict, at)


def _received_at(request: AdmissionRequest) -> int:
    """Return when an API server received the write, as far as it shows; a stamp of the future is a forged one."""
    clock = time.time_ns() // 1000
    if not request.is_ours or (request.new is None and request.old is None):
        return clock
    change = change_made_by(request, clock)
    if change.new_entries:
        written_at = stamp_of_writer(change.was_set.owners_among(change.new_entries))
        if written_at is not None:
            return written_at
    for entries in (change.new_entries, change.old_entries):
        stamp = max((at for entry in entries if (at := entry.stamp) is not None and at <= clock), default=None)
        if stamp is not None:
            return stamp
    return clock


def _deny_version(request: AdmissionRequest, verdict: Verdict) -> Verdict:
    """Deny an unknown version, which `serve` admits: a typo in its configuration must not stop a cluster."""
    known = tuple(f"{GROUP}/{version}" for version in VERSIONS_OF[request.resource])
    error = not_supported("apiVersion", f"{GROUP}/{request.version}", known)
    text = f"{error.body} (lease webhook)"
    cause = Cause(error.type.value, text, error.field)
    message = f"{error.field}: {text}"
    return replace(verdict, allowed=False, code=422, reason="Invalid", message=message, causes=(cause,), warnings=())
