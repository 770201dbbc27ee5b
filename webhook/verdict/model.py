"""The decision about one review, before it becomes bytes."""

from msgspec import Struct

from webhook.rules.finding import Finding


class Cause(Struct, frozen=True, gc=False):
    """One entry of `status.details.causes`; kubectl prints only these for a 422."""

    reason: str
    message: str
    field: str


class Verdict(Struct, frozen=True, gc=False):
    """Allow or deny, with everything that the response and the log say about it.

    `code` is 200 when allowed, else 400, 403 or 422; `audit_annotations` are (key, value) pairs in a fixed order.
    """

    uid: str
    allowed: bool
    code: int = 200
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    audit_annotations: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    event: str = ""
