"""What of the time of a slow answer one part of the API server took, as the API server says in its audit log.

It does so of requests that took half a second or more. Source: kubernetes/apiserver `pkg/audit/context.go` and
`pkg/endpoints/filters/webhook_duration.go`. A webhook cannot write these: its own annotations begin with its name.
"""

import re
from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "apiserver.latency.k8s.io/"
_VALIDATING: Final = "validating webhooks"
_MUTATING: Final = "mutating webhooks"
BY_WEBHOOKS: Final = frozenset({_VALIDATING, _MUTATING})
BY_ETCD: Final = "etcd"
_PARTS: Final = {
    "validating-webhook": _VALIDATING,
    "mutating-webhook": _MUTATING,
    "etcd": BY_ETCD,
    "authorization": "authorizers",
    "apf-queue-wait": "its queue",
}
_DURATION: Final = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,12}(?:\.\d{1,9})?)(s|ms|µs|ns))?")
"""A duration as Go writes it."""
_UNITS: Final = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_MOST: Final = 0.75


def find_slow_part(annotations: Mapping[str, str]) -> str:
    """Return which part took most of the time of an answer; "" if the log does not say it, or if none did."""
    total = _read_seconds(annotations.get(f"{_PREFIX}total", ""))
    times = ((name, _read_seconds(annotations.get(f"{_PREFIX}{key}", ""))) for key, name in _PARTS.items())
    return next((name for name, took in times if total and took >= _MOST * total), "")


def _read_seconds(text: str) -> float:
    """Return the seconds of a duration, 0 if it is none."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return 0
    hours, minutes, rest, unit = found.groups()
    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(rest or 0) * _UNITS.get(unit, 0)
