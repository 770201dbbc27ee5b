"""A verdict, which is bounded already, becomes the bytes of an AdmissionReview response that kube-apiserver accepts.

What it accepts: kubernetes/apiserver `pkg/admission/plugin/webhook/request/admissionreview.go`: the uid of the request,
apiVersion and kind exactly, no patch.
"""

from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from webhook.api.formats import LONGEST_NAME
from webhook.api.request import AdmissionRequest
from webhook.api.text import cut, escape
from webhook.verdict.model import Cause, Verdict


class _Details(Struct, frozen=True, gc=False, omit_defaults=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()


class _Status(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    status: str = ""
    message: str = ""
    reason: str = ""
    details: _Details | None = None
    code: int = 0


class _Response(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool
    status: _Status | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = {}


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    api_version: str
    response: _Response


_encoder: Final = msgspec.json.Encoder()


def encode(verdict: Verdict, request: AdmissionRequest) -> bytes:
    """The response to `request`; equal verdicts give equal bytes."""
    if verdict.allowed and not verdict.warnings:
        before, after = _around_uid(request.api_version, verdict.audit_annotations)
        return before + _encoder.encode(verdict.uid) + after
    status = None
    if not verdict.allowed:
        # A request that contradicts itself has any text in any of these.
        name, group, kind = (escape(cut(one, LONGEST_NAME)) for one in (request.name, request.group, request.kind))
        status = _Status(
            status="Failure",
            message=verdict.message,
            reason=verdict.reason,
            details=_Details(name, group, kind, verdict.causes),
            code=verdict.code,
        )
    response = _Response(
        uid=verdict.uid,
        allowed=verdict.allowed,
        status=status,
        warnings=verdict.warnings,
        audit_annotations=dict(verdict.audit_annotations),
    )
    return _encoder.encode(_Review("AdmissionReview", request.api_version, response))


# The fast path of encoding: nearly every response is a plain "allowed", and only the uid differs.
@lru_cache(maxsize=256)
def _around_uid(api_version: str, audit_annotations: tuple[tuple[str, str], ...]) -> tuple[bytes, bytes]:
    response = _Response(uid="", allowed=True, audit_annotations=dict(audit_annotations))
    before, uid, after = _encoder.encode(_Review("AdmissionReview", api_version, response)).partition(b'"uid":')
    return before + uid, after.removeprefix(b'""')
