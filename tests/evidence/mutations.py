"""What an attacker can do to a list of managedFields before sending it.

Each mutation draws its own details, so that dropping one from a history leaves the others as they are.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.evidence.field_manager import ZERO_TIME, Entry
from tests.evidence.world import time_of

Entries = tuple[Entry, ...]


class Moment(Struct, frozen=True):
    """What the attacker knows: the second of the write, the lease's duration, and who renews under which name."""

    seconds: int
    duration: int
    electors_manager: str


Mutation = Callable[[Entries, Random, Moment], Entries]

A_LABEL: Final = '{"f:metadata":{"f:labels":{"f:x":{}}}}'
SPEC: Final = "acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"


def some_time(random: Random, moment: Moment) -> str:
    """A time at some interesting distance from the write, before or after it."""
    lasts = moment.duration
    near = (0, 1, 2, 3, 5, 16, lasts - 1, lasts, lasts + 1, 2 * lasts, 3 * lasts, 30, 58, 60, 61, 62)
    far = (600, 3500, 3700, 7200, 86_400, 31_536_000, 315_360_000)
    away = random.choice((*near, *far))
    return time_of(moment.seconds + (-away if random.random() < 0.35 else away))


def some_name(random: Random, moment: Moment) -> str:
    """A manager's name that sorts anywhere, or that means something."""
    number = random.randrange(20)
    known = ("ancient-changes", "before-first-apply", "kubectl-label", "", moment.electors_manager)
    return random.choice((f"m{number}", f"m{number}", f"a{number}", f"zz{number}", *known))


def some_fields(random: Random) -> str:
    """Labels, fields of spec, something below a scalar, or a deep nest."""
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
            return deep(random)


def deep(random: Random) -> str:
    """A nest around the 32 levels that are read, or far deeper."""
    levels = random.choice((3000, 9000)) if random.random() < 0.02 else random.choice((27, 28, 29, 30, 31, 60, 120))
    before = random.choice(('{"f:metadata":', '{"f:spec":', '{"f:spec":{"f:renewTime":'))
    return before + '{"f:a":' * levels + "{}" + "}" * (levels + before.count("{"))


def some_entry(random: Random, moment: Moment) -> Entry:
    """An invented entry, now and then of another version, subresource, operation, or without a time."""
    entry = Entry(some_name(random, moment), time=some_time(random, moment), fields=some_fields(random))
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


# ---- the arsenal ----------------------------------------------------------------------------------------------------


def add_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    return (*entries, some_entry(random, moment))


def add_two(entries: Entries, random: Random, moment: Moment) -> Entries:
    return (*entries, some_entry(random, moment), some_entry(random, moment))


def fold(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add so many entries of one time that the older ones are folded into ancient-changes."""
    time = some_time(random, moment)
    count = random.choice((1, 4, 8, 9, 10, 11, 12, 13, 15))
    return (*entries, *(Entry(f"m{number}", time=time, fields=A_LABEL) for number in range(count)))


def fold_with_a_bucket(entries: Entries, random: Random, moment: Moment) -> Entries:
    """As fold, with an invented ancient-changes."""
    bucket = Entry("ancient-changes", time=some_time(random, moment), fields=some_fields(random))
    return (*fold(entries, random, moment), bucket)


def date_one_anew(entries: Entries, random: Random, moment: Moment) -> Entries:
    return _changing_one(entries, random, time=some_time(random, moment))


def date_all_anew(entries: Entries, random: Random, moment: Moment) -> Entries:
    time = some_time(random, moment)
    return tuple(replace(entry, time=time) for entry in entries)


def date_by_another(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Give an entry the time of another one, so that no time in the list is new."""
    return _changing_one(entries, random, time=random.choice(entries).time) if entries else entries


def drop_a_time(entries: Entries, random: Random, moment: Moment) -> Entries:
    return _changing_one(entries, random, time=random.choice((None, ZERO_TIME)))


def drop_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    if not entries:
        return entries
    at = random.randrange(len(entries))
    return entries[:at] + entries[at + 1 :]


def empty(entries: Entries, random: Random, moment: Moment) -> Entries:
    """The two spellings that reset the list."""
    return random.choice(((), (Entry(operation="", api_version=""),)))


def rename_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    return _changing_one(entries, random, manager=some_name(random, moment))


def move_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    """To another subresource, apiVersion or operation."""
    changes = (
        {"subresource": "status"},
        {"api_version": random.choice(("coordination.k8s.io/v1beta1", "coordination.k8s.io/v9", "v1"))},
        {"operation": random.choice(("Apply", "Update"))},
    )
    return _changing_one(entries, random, **random.choice(changes))


def copy_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add an entry again with another time, half of the time under another name."""
    if not entries:
        return entries
    copied = replace(random.choice(entries), time=some_time(random, moment))
    return (*entries, replace(copied, manager=some_name(random, moment)) if random.random() < 0.5 else copied)


def take_a_field(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Take renewTime or holderIdentity from whoever owns it, or put something below it."""
    name = random.choice(("renewTime", "renewTime", "holderIdentity"))
    owned = f'"f:{name}":{{}}'
    instead = random.choice(("", f'"f:{name}":{{"f:x":{{}}}}', f'"f:{name}":{{".":{{}},"f:x":{{}}}}'))

    def without(fields: str) -> str:
        left = fields.replace(owned, instead, 1)
        return left.replace(",,", ",").replace("{,", "{").replace(",}", "}")

    return tuple(replace(entry, fields=without(entry.fields)) for entry in entries)


def give_a_field(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Make some entry an owner of renewTime or holderIdentity too."""
    if not entries:
        return entries
    at, name = random.randrange(len(entries)), random.choice(("renewTime", "renewTime", "holderIdentity"))
    entry = entries[at]
    joined = replace(entry, fields=f'{{"f:spec":{{"f:{name}":{{}}}}}}', time=random.choice((entry.time, None)))
    return (*entries, joined)


def plant_below_the_electors_entry(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Repeat the entry of the electors' manager with other fields: the API server merges the two."""
    found = [entry for entry in entries if entry.manager == moment.electors_manager]
    return (*entries, replace(random.choice(found), fields=some_fields(random))) if found else entries


def date_a_bucket(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Give ancient-changes another time, known or new."""
    known = [entry.time for entry in entries] or [None]
    time = random.choice((some_time(random, moment), random.choice(known)))
    return tuple(replace(entry, time=time) if entry.manager == "ancient-changes" else entry for entry in entries)


def invent_an_apply(entries: Entries, random: Random, moment: Moment) -> Entries:
    """An Apply entry that owns renewTime or a label, dated anywhere: it makes its time a known one."""
    fields = random.choice(('{"f:spec":{"f:renewTime":{}}}', A_LABEL))
    manager = random.choice(("z", "z2", moment.electors_manager))
    return (*entries, Entry(manager, "Apply", time=some_time(random, moment), fields=fields))


def _changing_one(entries: Entries, random: Random, **changes: str | None) -> Entries:
    if not entries:
        return entries
    at = random.randrange(len(entries))
    return (*entries[:at], replace(entries[at], **changes), *entries[at + 1 :])


WEIGHTS: Final[Mapping[Mutation, int]] = {
    add_one: 5,
    add_two: 2,
    fold: 5,
    fold_with_a_bucket: 2,
    date_one_anew: 2,
    date_all_anew: 2,
    date_by_another: 2,
    drop_a_time: 1,
    drop_one: 3,
    empty: 1,
    rename_one: 2,
    move_one: 2,
    copy_one: 3,
    take_a_field: 3,
    give_a_field: 2,
    plant_below_the_electors_entry: 3,
    date_a_bucket: 2,
    invent_an_apply: 2,
}
MUTATIONS: Final[Mapping[str, Mutation]] = {mutation.__name__: mutation for mutation in WEIGHTS}
