"""The numbers that a policy may change, with their defaults; one value for each rule that has some.

A field is named as its rule, with underscores; `deny_*` belongs to the rule's mode, `warn_*` only ever warns.
"""

from msgspec import Struct


class Seconds(Struct, frozen=True, forbid_unknown_fields=True):
    """How far a time may lie ahead of the API server's clock, or how long a lease may last, in seconds."""

    warn_above_seconds: int = 60
    deny_above_seconds: int = 86_400


class Transitions(Struct, frozen=True, forbid_unknown_fields=True):
    """The count from which on a jump leads to an overflow: client-go writes int32(count + 1)."""

    warn_jump_above: int = 1
    deny_from: int = 1_000_000_000


class TimeShift(Struct, frozen=True, forbid_unknown_fields=True):
    """How far a time may move, in seconds: renewTime back, and acquireTime while the holder stays.

    Some clients keep milliseconds only.
    """

    above_seconds: int = 3600


class IdentityShape(Struct, frozen=True, forbid_unknown_fields=True):
    """How many bytes of UTF-8 a holder identity may have."""

    warn_above_bytes: int = 512
    deny_above_bytes: int = 4096


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """All numbers of all rules."""

    renew_time_in_future: Seconds = Seconds()
    candidate_renew_time_in_future: Seconds = Seconds(warn_above_seconds=10)
    # A year is beyond every client's default; the longest is 3600.
    duration_too_long: Seconds = Seconds(86_400, 31_536_000)
    transitions_jump: Transitions = Transitions()
    renew_time_backwards: TimeShift = TimeShift()
    candidate_renew_time_backwards: TimeShift = TimeShift()
    acquire_time_changed: TimeShift = TimeShift(above_seconds=1)
    holder_identity_shape: IdentityShape = IdentityShape()


DEFAULT_LIMITS = Limits()
