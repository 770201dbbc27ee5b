"""A Lease in Kubernetes' protobuf encoding: what a client can send that JSON cannot say, such as any bytes as fieldsV1.

Field numbers are those of the generated.proto files of k8s.io/api/coordination/v1 and k8s.io/apimachinery.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

MEDIA: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_CONTINUED: Final = 0x80


def lease(document: Mapping[str, Any], managed_fields: Iterable[Mapping[str, Any]] | None = None) -> bytes:
    """The bytes of a Lease; its entries are `managed_fields` where given, in which fieldsV1 may be bytes."""
    metadata, spec = document["metadata"], document["spec"]
    entries = metadata.get("managedFields", ()) if managed_fields is None else managed_fields
    meta = b"".join(
        (
            *(_text(number, metadata[key]) for key, number in _METADATA.items() if metadata.get(key)),
            *(
                _bytes(number, _text(1, key) + _text(2, value))
                for name, number in (("labels", 11), ("annotations", 12))
                for key, value in metadata.get(name, {}).items()
            ),
            *(_text(14, finalizer) for finalizer in metadata.get("finalizers", ())),
            *(_bytes(17, _entry(entry)) for entry in entries),
        )
    )
    body = b"".join(
        (
            *(_text(1, spec[key]) for key in ("holderIdentity",) if key in spec),
            *(_number(number, spec[key]) for key, number in _NUMBERS.items() if key in spec),
            *(_bytes(number, _time(spec[key])) for key, number in _TIMES.items() if spec.get(key) is not None),
        )
    )
    kind = _text(1, "coordination.k8s.io/v1") + _text(2, "Lease")
    return _MAGIC + _bytes(1, kind) + _bytes(2, _bytes(1, meta) + _bytes(2, body))


_METADATA: Final = {"name": 1, "namespace": 3, "uid": 5, "resourceVersion": 6}
_NUMBERS: Final = {"leaseDurationSeconds": 2, "leaseTransitions": 5}
_TIMES: Final = {"acquireTime": 3, "renewTime": 4}


def _entry(entry: Mapping[str, Any]) -> bytes:
    fields = entry["fieldsV1"]
    raw = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return b"".join(
        (
            _text(1, entry["manager"]),
            _text(2, entry["operation"]),
            _text(3, entry["apiVersion"]),
            *([_bytes(4, _time(entry["time"]))] if entry.get("time") is not None else []),
            _text(6, entry["fieldsType"]),
            _bytes(7, _bytes(1, raw)),
            *([_text(8, entry["subresource"])] if entry.get("subresource") else []),
        )
    )


def _time(time: str | int) -> bytes:
    """A Timestamp: an instant of any year as text, or any seconds since 1970 that fit 64 bits."""
    if isinstance(time, int):
        return _number(1, time)
    seconds, microsecond = divmod(micros(time), 1_000_000)
    return _number(1, seconds) + _number(2, microsecond * 1000)


def micros(text: str) -> int:
    """Microseconds since 1970 of an instant of any year: the calendar repeats every 400 years."""
    year, _, rest = text[1:].partition("-")
    cycles, of_400 = divmod(int(text[0] + year) - 2000, 400)
    moment = dt.datetime.fromisoformat(f"{2000 + of_400}-{rest}")
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) + cycles * _CYCLE


_CYCLE: Final = 146_097 * 86_400_000_000


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(number: int) -> bytes:
    """Seven bits to a byte, the lowest first; a negative number is that of 64 bits with the same bits."""
    data = bytearray()
    number &= (1 << 64) - 1
    while number >= _CONTINUED:
        data.append(number & (_CONTINUED - 1) | _CONTINUED)
        number >>= 7
    return bytes([*data, number])


def config_map(name: str, namespace: str, data: Mapping[str, str]) -> bytes:
    """A ConfigMap without annotations."""
    metadata = _text(1, name) + _text(3, namespace)
    entries = b"".join(_bytes(2, _text(1, key) + _text(2, value)) for key, value in data.items())
    raw = _bytes(1, metadata) + entries
    return _MAGIC + _bytes(1, _text(1, "v1") + _text(2, "ConfigMap")) + _bytes(2, raw)
