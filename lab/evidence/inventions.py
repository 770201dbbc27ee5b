"""Details of forged entries: times, names and fields that mean something to the API server or to the rules."""

from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lab.evidence.world import format_time
from tests.evidence.stored_lease import ZERO_TIME, Entry

A_LABEL: Final = '{"f:metadata":{"f:labels":{"f:x":{}}}}'
SPEC: Final = "acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"


class Moment(Struct, frozen=True):
    """The knowledge of the attacker: the second of the write, the lease's duration, and who renews under which name."""

    seconds: int
    duration: int
    electors_manager: str


def draw_time(random: Random, moment: Moment) -> str:
    """Return a time at some interesting distance from the write, before or after it."""
    lasts = moment.duration
    near = (0, 1, 2, 3, 5, 16, lasts - 1, lasts, lasts + 1, 2 * lasts, 3 * lasts, 30, 58, 60, 61, 62)
    far = (600, 3500, 3700, 7200, 86_400, 31_536_000, 315_360_000)
    away = random.choice((*near, *far))
    return format_time(moment.seconds + (-away if random.random() < 0.35 else away))


def draw_name(random: Random, moment: Moment) -> str:
    """Return a manager's name that sorts anywhere, or that has a meaning."""
    number = random.randrange(20)
    known = ("ancient-changes", "before-first-apply", "kubectl-label", "", moment.electors_manager)
    return random.choice((f"m{number}", f"m{number}", f"a{number}", f"zz{number}", *known))


def draw_fields(random: Random) -> str:
    """Return labels, fields of spec, something below a scalar, or a deep nest."""
    name = random.choice(("renewTime", "renewTime", "holderIdentity", "holderIdentity", "leaseDurationSeconds"))
    below = (
        '{"f:x":{}}',
        '{"f:x":{}}',
        '{".":{},"f:x":{}}',
        '{"v:1":{},"k:{\\"uid\\":\\"a\\"}":{"f:y":{}},"i:0":{}}',
    )
    match random.randrange(12):
        case 0 | 1 | 2 | 3:
            return f'{{"f:metadata":{{"f:labels":{{"f:x{random.randrange(16)}":{{}}}}}}}}'
        case 4 | 5:
            return f'{{"f:spec":{{"f:{name}":{{}}}}}}'
        case 6:
            return '{"f:spec":{' + ",".join(f'"f:{field}":{{}}' for field in SPEC) + "}}"
        case 7 | 8 | 9:
            return f'{{"f:spec":{{"f:{name}":{random.choice(below)}}}}}'
        case 10:
            return '{"f:spec":{"f:holderIdentity":{"f:x":{}},"f:renewTime":{"f:x":{}}}}'
        case _:
            return draw_nest(random)


def draw_nest(random: Random) -> str:
    """Return a nest around the 32 levels that are read, or far deeper."""
    levels = random.choice((3000, 9000)) if random.random() < 0.02 else random.choice((27, 28, 29, 30, 31, 60, 120))
    before = random.choice(('{"f:metadata":', '{"f:spec":', '{"f:spec":{"f:renewTime":'))
    return before + '{"f:a":' * levels + "{}" + "}" * (levels + before.count("{"))


def draw_entry(random: Random, moment: Moment) -> Entry:
    """Return an invented entry, now and then of another version, subresource, operation, or without a time."""
    entry = Entry(draw_name(random, moment), time=draw_time(random, moment), fields=draw_fields(random))
    match random.randrange(16):
        case 0:
            versions = ("coordination.k8s.io/v1beta1", "coordination.k8s.io/v9", "v1", "a/b/c", "apps/v1")
            return replace(entry, api_version=random.choice(versions))
        case 1:
            return replace(entry, subresource="status")
        case 2 | 3:
            return replace(entry, operation="Apply")
        case 4:
            return replace(entry, time=random.choice((None, ZERO_TIME)))
        case _:
            return entry
