"""What a write does to a lease, as one word."""

from enum import StrEnum


class Event(StrEnum):
    """Exactly one of these fits any write; TAKEOVER is of an expired lease, STEAL of a live one."""

    CREATE = "create"
    DELETE = "delete"
    UNTOUCHED = "untouched"
    UPDATE = "update"
    RENEWAL = "renewal"
    RELEASE = "release"
    CLAIM = "claim"
    TAKEOVER = "takeover"
    STEAL = "steal"
    EDIT = "edit"
