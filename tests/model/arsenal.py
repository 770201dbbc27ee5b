"""What an attacker writes: one step each, given the lease and the true time."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.model import electors
from tests.model.api_server import KEEPS_THE_STORED_LIST, Lease, Owner, Spec, Write
from tests.model.forgeries import (
    BELOW,
    DEEP,
    MANAGER,
    MINUTE,
    OLD,
    Invented,
    Send,
    ahead,
    ahead_of_now,
    as_apply,
    as_it_is,
    dated,
    disowned,
    dropped,
    earlier,
    forge,
    labeled,
    planted,
    renamed,
    same,
    undated,
    unlabelled,
    with_more,
)
from tests.model.managed_fields import ANCIENT_CHANGES, APPLY, SECOND, UPDATE, Entry
from tests.model.world import DAY, HOUR

IDENTITY: Final = "mallory"


class Attack(Struct, frozen=True):
    """One step: what to send, given the lease and the true time, and how often.

    `disguises` is the plain step that this one hides: where that does the harm as well, it is named alone.
    """

    text: str
    send: Send
    repeats: int = 1
    disguises: str = ""


def _spec(**fields: object) -> Send:
    def send(lease: Lease, now: int) -> Write | None:
        return Write(MANAGER, replace(lease.spec, **fields), lease.labels)

    return send


def take(lease: Lease, now: int) -> Write | None:
    """A takeover as election clients write it."""
    if lease.spec.holder == IDENTITY:
        return None
    count = (lease.spec.transitions or 0) + 1
    taken = Spec(
        holder=IDENTITY, duration=electors.DURATION, acquired=now, renewed=now, transitions=min(count, 2**31 - 1)
    )
    return Write(MANAGER, taken, lease.labels)


def _take_and_wipe(lease: Lease, now: int) -> Write | None:
    write = take(lease, now)
    return write and replace(write, entries=())


def _release(lease: Lease, now: int) -> Write | None:
    if not lease.spec.holder:
        return None
    return Write(MANAGER, replace(lease.spec, holder="", duration=1, acquired=now, renewed=now), lease.labels)


def _renew(duration: int | None = None, behind: int = 0) -> Send:
    def send(lease: Lease, now: int) -> Write | None:
        spec = replace(lease.spec, renewed=now - behind, duration=duration or lease.spec.duration)
        return Write(MANAGER, spec, lease.labels)

    return send


def _renew_and_wipe(lease: Lease, now: int) -> Write | None:
    return Write(MANAGER, replace(lease.spec, renewed=now), lease.labels, entries=())


def _repeat_by_apply(lease: Lease, now: int) -> Write | None:
    if lease.spec.renewed is None:
        return None
    return Write("gitops", lease.spec, (), APPLY, frozenset({"renewed"}))


def _label_as_the_holder(lease: Lease, now: int) -> Write | None:
    return Write("checkout", lease.spec, labeled(lease))


_NOBODY: Final = (Owner("v1", "ConfigMap", "no-such", "11111111-1111-1111-1111-111111111111"),)


def _owned(lease: Lease, now: int) -> Write | None:
    return None if lease.owners else Write(MANAGER, lease.spec, lease.labels, owners=_NOBODY)


def _renew_owned(lease: Lease, now: int) -> Write | None:
    return None if lease.owners else Write(MANAGER, replace(lease.spec, renewed=now), lease.labels, owners=_NOBODY)


def _one_more(lease: Lease, now: int) -> Write | None:
    number = len(lease.entries)
    entry = Entry(f"m{number}", APPLY, now // SECOND * SECOND + MINUTE, frozenset({f"labels.x{number}"}))
    return Write(MANAGER, lease.spec, labeled(lease), entries=(*lease.entries, entry))


def _owner_of_the_holder_a_year_ahead(lease: Lease, now: int) -> Write | None:
    disowned = tuple(replace(entry, fields=entry.fields - {"holder"}) for entry in lease.entries)
    invented = Entry("z", APPLY, now // SECOND * SECOND + 365 * DAY, frozenset({"holder"}))
    return Write(MANAGER, lease.spec, lease.labels, entries=(*disowned, invented))


def _take_beside_an_unusable_entry(lease: Lease, now: int) -> Write | None:
    write = take(lease, now)
    unusable = Entry("z", UPDATE, None, frozenset({"strategy"}), version="a/b/c")
    return write and replace(write, entries=(*lease.entries, unusable), minor=KEEPS_THE_STORED_LIST)


def _applied(by: int) -> Invented:
    return lambda now: planted("renewed", time=now // SECOND * SECOND + by, manager="z", operation=APPLY)(now)


TAKE: Final = Attack("take the lease", take)
ATTACKS: Final = (
    TAKE,
    Attack("take the lease and empty managedFields in the same write", _take_and_wipe, disguises=TAKE.text),
    Attack("release the lease for its holder", _release),
    Attack("renew for the holder, with a duration of 1 s", _renew(duration=1)),
    Attack("renew for the holder, with a renewTime two days ago", _renew(behind=2 * DAY)),
    Attack("lower the duration to 1 s, nothing else", _spec(duration=1)),
    Attack("remove the duration", _spec(duration=None)),
    Attack("remove renewTime", _spec(renewed=None)),
    Attack("empty managedFields", forge(dropped, as_it_is)),
    Attack("empty managedFields, with a label", forge(dropped)),
    Attack("renew for the holder and empty managedFields in the same write", _renew_and_wipe),
    Attack("date the stamps back, with a label added", forge(dated(OLD))),
    Attack("date the stamps back, with a label removed", forge(dated(OLD), unlabelled)),
    Attack("date the stamps back, with acquireTime removed", forge(dated(OLD), as_it_is, acquired=None)),
    Attack("date the stamps back, with an invented entry", forge(dated(OLD), as_it_is, planted("labels.nothing"))),
    Attack("date the stamps half an hour ahead", forge(ahead(HOUR // 2))),
    Attack("date the stamps two hours ahead", forge(ahead(2 * HOUR))),
    Attack("date the stamps back by the tolerance, again and again", forge(earlier(2 * SECOND)), repeats=8),
    Attack("take renewTime out of its owner's entry", forge(disowned)),
    Attack("take the time out of every entry", forge(undated)),
    Attack("invent an old second owner of renewTime", forge(same, as_it_is, planted("renewed"))),
    Attack("own renewTime by an apply that repeats it", _repeat_by_apply),
    Attack("label the lease under the holder's manager name", _label_as_the_holder),
    Attack("plant an old owner below renewTime and holderIdentity, with a label", forge(same, add=planted(*BELOW))),
    Attack(
        "plant an old owner below renewTime and holderIdentity, in a renewal",
        forge(same, add=planted(*BELOW), change_of_spec=_renew()),
    ),
    Attack("plant an owner below renewTime by an apply entry", forge(same, add=planted(*BELOW, operation=APPLY))),
    Attack("plant something below renewTime in its owner's entry", forge(with_more(*BELOW))),
    Attack(
        "take the lease beside an old owner below its fields",
        forge(same, add=planted(*BELOW), change_of_spec=take),
        disguises=TAKE.text,
    ),
    Attack("add an entry a thousand levels deep, with a label", forge(same, add=planted(DEEP))),
    Attack(
        "take the lease beside an entry a thousand levels deep",
        forge(same, add=planted(DEEP), change_of_spec=take),
        disguises=TAKE.text,
    ),
    Attack("add ten entries a minute ahead, with a label", forge(same, add=ahead_of_now(MINUTE, 10))),
    Attack(
        "add ten entries an hour ahead, in a renewal",
        forge(same, add=ahead_of_now(HOUR, 10), change_of_spec=_renew()),
    ),
    Attack(
        "take the lease beside twelve entries an hour ahead",
        forge(same, add=ahead_of_now(HOUR, 12), change_of_spec=take),
        disguises=TAKE.text,
    ),
    Attack("add one entry a minute ahead, again and again", _one_more, repeats=11),
    Attack(
        "own renewTime by an invented apply entry of the past",
        forge(same, as_it_is, planted("renewed", manager="z", operation=APPLY)),
    ),
    Attack("own renewTime by an invented apply entry ten seconds ahead", forge(same, as_it_is, _applied(10 * SECOND))),
    Attack("own renewTime by an invented apply entry of a year ahead", forge(same, as_it_is, _applied(365 * DAY))),
    Attack("make every entry one of an apply", forge(as_apply)),
    Attack("rename the owner's entry to ancient-changes, an hour back", forge(renamed(-HOUR))),
    Attack("rename the owner's entry to ancient-changes, a minute ahead", forge(renamed(MINUTE))),
    Attack("renew under the name ancient-changes", forge(same, manager=ANCIENT_CHANGES, change_of_spec=_renew())),
    Attack(
        "take the lease under the name ancient-changes",
        forge(same, manager=ANCIENT_CHANGES, change_of_spec=take),
        disguises=TAKE.text,
    ),
    Attack(
        "empty managedFields by an entry of no version, with a label",
        forge(same, add=planted("renewed", version="a/b/c")),
    ),
    Attack("own holderIdentity by an invented apply entry of a year ahead", _owner_of_the_holder_a_year_ahead),
    Attack(
        "take the lease beside an entry that makes Kubernetes 1.37 keep the stored ones",
        _take_beside_an_unusable_entry,
        disguises=TAKE.text,
    ),
    Attack("add an owner of renewTime of an unknown version", forge(same, add=planted("renewed", version="v9"))),
    Attack("add an owner that does not exist", _owned),
    Attack("renew for the holder, with an owner that does not exist", _renew_owned),
)
