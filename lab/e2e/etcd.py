"""Encoding of keys and ranges for the JSON gateway of etcd."""

import base64


def encode(data: bytes) -> str:
    """Return a key or a value as the gateway takes it."""
    return base64.b64encode(data).decode()


def find_range_end(prefix: bytes) -> bytes:
    """Return the `range_end` for all keys with this prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
