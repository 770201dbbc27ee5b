"""Changes that an attacker can make to a list of managedFields before sending it.

Each mutation draws its own details, so that dropping one from a history leaves the others as they are.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from msgspec.structs import replace

from lab.evidence.inventions import A_LABEL, Moment, draw_entry, draw_fields, draw_name, draw_time
from lab.evidence.world import format_time
from tests.evidence.stamping import CONSTANT
from tests.evidence.stored_lease import ETCD_LIMIT, ZERO_TIME, Entry

Entries = tuple[Entry, ...]


Mutation = Callable[[Entries, Random, Moment], Entries]


def add_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    return (*entries, draw_entry(random, moment))


def add_two(entries: Entries, random: Random, moment: Moment) -> Entries:
    return (*entries, draw_entry(random, moment), draw_entry(random, moment))


def fold(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add so many entries of one time that the older ones are folded into ancient-changes."""
    time = draw_time(random, moment)
    count = random.choice((1, 4, 8, 9, 10, 11, 12, 13, 15))
    return (*entries, *(Entry(f"m{number}", time=time, fields=A_LABEL) for number in range(count)))


def fold_with_a_bucket(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add entries as `fold` does, with an invented ancient-changes."""
    bucket = Entry("ancient-changes", time=draw_time(random, moment), fields=draw_fields(random))
    return (*fold(entries, random, moment), bucket)


def date_one_anew(entries: Entries, random: Random, moment: Moment) -> Entries:
    return _change_one(entries, random, time=draw_time(random, moment))


def date_all_anew(entries: Entries, random: Random, moment: Moment) -> Entries:
    time = draw_time(random, moment)
    return tuple(replace(entry, time=time) for entry in entries)


def date_by_another(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Give an entry the time of another one, so that no time in the list is new."""
    return _change_one(entries, random, time=random.choice(entries).time) if entries else entries


def drop_a_time(entries: Entries, random: Random, moment: Moment) -> Entries:
    return _change_one(entries, random, time=random.choice((None, ZERO_TIME)))


def drop_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    if not entries:
        return entries
    at = random.randrange(len(entries))
    return entries[:at] + entries[at + 1 :]


def empty(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Send one of the two spellings that reset the list."""
    return random.choice(((), (Entry(operation="", api_version=""),)))


def rename_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    return _change_one(entries, random, manager=draw_name(random, moment))


def move_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Move an entry to another subresource, apiVersion or operation."""
    changes = (
        {"subresource": "status"},
        {"api_version": random.choice(("coordination.k8s.io/v1beta1", "coordination.k8s.io/v9", "v1"))},
        {"operation": random.choice(("Apply", "Update"))},
    )
    return _change_one(entries, random, **random.choice(changes))


def copy_one(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add an entry again with another time, half of the time under another name."""
    if not entries:
        return entries
    copied = replace(random.choice(entries), time=draw_time(random, moment))
    return (*entries, replace(copied, manager=draw_name(random, moment)) if random.random() < 0.5 else copied)


def take_a_field(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Take renewTime or holderIdentity from whoever owns it, or put something below it."""
    name = random.choice(("renewTime", "renewTime", "holderIdentity"))
    owned = f'"f:{name}":{{}}'
    instead = random.choice(("", f'"f:{name}":{{"f:x":{{}}}}', f'"f:{name}":{{".":{{}},"f:x":{{}}}}'))

    def remove_fields(fields: str) -> str:
        remainder = fields.replace(owned, instead, 1)
        return remainder.replace(",,", ",").replace("{,", "{").replace(",}", "}")

    return tuple(replace(entry, fields=remove_fields(entry.fields)) for entry in entries)


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
    candidates = [entry for entry in entries if entry.manager == moment.electors_manager]
    return (*entries, replace(random.choice(candidates), fields=draw_fields(random))) if candidates else entries


def date_a_bucket(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Give ancient-changes another time, known or new."""
    known = [entry.time for entry in entries] or [None]
    time = random.choice((draw_time(random, moment), random.choice(known)))
    return tuple(replace(entry, time=time) if entry.manager == "ancient-changes" else entry for entry in entries)


def invent_an_apply(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add an Apply entry that owns renewTime or a label, dated anywhere: it makes its time a known one."""
    fields = random.choice(('{"f:spec":{"f:renewTime":{}}}', A_LABEL))
    manager = random.choice(("z", "z2", moment.electors_manager))
    return (*entries, Entry(manager, "Apply", time=draw_time(random, moment), fields=fields))


def invent_a_first_apply(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add the entry that an apply makes of earlier fields, dated some seconds back: a lease without stamps gets one."""
    time = format_time(moment.seconds - random.randrange(70))
    return (*entries, Entry("before-first-apply", time=time, fields='{"f:spec":{"f:renewTime":{}}}'))


def _change_one(entries: Entries, random: Random, **changes: str | None) -> Entries:
    if not entries:
        return entries
    at = random.randrange(len(entries))
    return (*entries[:at], replace(entries[at], **changes), *entries[at + 1 :])


def fill(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add an entry as large as a lease may be, as etcd's limit, or a little more or less."""
    size = random.choice((256 * 1024, 1024 * 1024, ETCD_LIMIT)) - random.choice((0, 0, 4, 400, 800, 4000))
    fields = '{"f:metadata":{"f:labels":{"f:' + "a" * size + '":{}}}}'
    operation = random.choice(("Apply", "Update"))
    return (*entries, Entry("pad", operation, time=draw_time(random, moment), fields=fields))


def claim_to_be_stamped(entries: Entries, random: Random, moment: Moment) -> Entries:
    """Add the entry that the API server leaves where it stamps writers, mostly alone."""
    return random.choice(((CONSTANT,), (CONSTANT,), (*entries, CONSTANT)))


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
    invent_a_first_apply: 2,
    fill: 1,
    claim_to_be_stamped: 3,
}
MUTATIONS: Final[Mapping[str, Mutation]] = {mutation.__name__: mutation for mutation in WEIGHTS}
