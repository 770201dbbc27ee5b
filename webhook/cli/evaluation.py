"""Evaluates documents as `serve` would: the same decoder, the same rules, the same verdict."""

import time

from msgspec import Struct
from msgspec.structs import replace

from webhook.api.field import not_supported
from webhook.api.request import DECODED_VERSIONS, GROUP, KIND_OF, AdmissionRequest, Resource
from webhook.api.review import ReviewError, decode
from webhook.cli.failure import Failure
from webhook.cli.sources import Origin
from webhook.evaluate import evaluate
from webhook.policy.model import Policy
from webhook.policy_file import PolicyFileError, load
from webhook.rules.change import change_made_by
from webhook.rules.mode import Mode
from webhook.rules.tampering import stamp_of_writer
from webhook.verdict.model import Cause, Verdict


class Evaluation(Struct, frozen=True):
    """A document with its verdict; `now` is the moment of the evaluation, in microseconds since 1970."""

    origin: Origin
    request: AdmissionRequest
    verdict: Verdict
    now: int
    unknown_fields: tuple[str, ...] = ()
    """A text for each field of a manifest that the API does not have."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings: those of the verdict, and those about unknown fields."""
        return (*self.verdict.warnings, *self.unknown_fields)


def load_policy(name: str | None) -> Policy:
    """The policy of `--policy`: a preset's name, a file, or the default.

    Raises:
        Failure: there is no such policy, or it is wrong.

    """
    try:
        return load(name)
    except PolicyFileError as error:
        raise Failure(str(error)) from None


def evaluate_review(
    origin: Origin, body: bytes, policy: Policy, now: int | None = None, *, writer_known: bool = True
) -> Evaluation:
    """Evaluate the bytes of one review.

    Args:
        origin: where the review stands.
        body: its bytes.
        policy: how strict to be.
        now: microseconds since 1970; None takes the latest time that an API server stamped into it, else the clock.
        writer_known: False leaves out the rules about the writer.

    Raises:
        ReviewError: the bytes are not a review, or nest too deeply.

    """
    try:
        request = decode(body)
        at = _moment_of(request) if now is None else now
        verdict = evaluate(request, policy, at, writer_known=writer_known)
    except RecursionError:
        raise ReviewError(400, "nested too deeply") from None
    if policy.mode is Mode.DENY and _is_unknown_version(request):
        verdict = _deny_version(request, verdict)
    return Evaluation(origin, request, verdict, at)


def _moment_of(request: AdmissionRequest) -> int:
    """When an API server received the write, as far as it shows; a stamp of the future is a forged one."""
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


def _is_unknown_version(request: AdmissionRequest) -> bool:
    return request.group == GROUP and request.resource in KIND_OF and not request.is_ours


def _deny_version(request: AdmissionRequest, verdict: Verdict) -> Verdict:
    """`serve` admits an unknown version: a typo in its configuration must not stop a cluster. `check` denies it."""
    known = tuple(f"{GROUP}/{version}" for version in DECODED_VERSIONS[Resource(request.resource)])
    error = not_supported("apiVersion", f"{GROUP}/{request.version}", known)
    text = f"{error.body} (lease webhook)"
    return replace(
        verdict,
        allowed=False,
        code=422,
        reason="Invalid",
        message=f"{error.field}: {text}",
        causes=(Cause(error.type.value, text, error.field),),
        warnings=(),
    )
