"""Tools, persons and attackers: what each deed writes."""

from collections.abc import Callable, Generator
from typing import Any, Final

from msgspec.structs import replace

from tests.model.api_server import Lease, Spec, Write
from tests.model.managed_fields import APPLY, UPDATE, Entry, whole
from tests.truth.parties import Call, Party
from tests.truth.plans import LEASE, SUFFIX, Deed, OutsiderPlan, Step
from tests.truth.servers import Servers
from tests.truth.stage import MILLISECOND, SECOND, Wait
from webhook.kubernetes.times import format_time

_NAMESPACE, _, _NAME = LEASE.partition("/")
_HOUR: Final = 3600 * SECOND

Change = Callable[[Lease | None], Write | None]


def _change_stored(write: Callable[[Lease], Write | None]) -> Change:
    """Return a change that does nothing where there is no lease."""
    return lambda old: None if old is None else write(old)


def act(party: Party, plan: OutsiderPlan, servers: Servers) -> Generator[Any, Any, None]:
    """Do every deed of a plan, in the order of time."""
    start = party.agenda.now
    moments = sorted(
        (start + (step.at + number * step.every) * MILLISECOND, place, step)
        for place, step in enumerate(plan.steps)
        for number in range(step.times)
    )
    for at, _, step in moments:
        yield Wait(max(0, at - party.agenda.now))
        call = _call(party, step, servers)
        yield call


def _call(party: Party, step: Step, servers: Servers) -> Call:
    deed = step.deed
    state = servers.states.get(("Lease", _NAMESPACE, _NAME))
    lease = state.lease if state else None
    is_idle = deed is Deed.CLEAN and not (lease is not None and _has_expired(lease, party.clock()))
    if deed is Deed.GET or is_idle or (deed is Deed.RESTORE and state is not None):
        return _request("get")
    if deed in (Deed.DELETE, Deed.CLEAN, Deed.FORBIDDEN):
        return _request("delete")
    if deed is Deed.RESTORE:
        copy = Write(party.manager, _old_copy(step, party.clock()))
        return _request("create", lambda _: copy)
    if deed in (Deed.INVALID, Deed.WRONG_TOKEN):
        is_invalid = deed is Deed.INVALID
        return _request("update", _renewal(party), is_invalid=is_invalid, has_wrong_token=not is_invalid)
    if deed in (Deed.APPLY, Deed.APPLY_LABELS):
        return _request("apply", _apply(party, step))
    planted = _list_planted(party) if deed is Deed.PLANT_STAMPS else ()
    return _request("patch", _change(party, step), planted=planted, is_dry_run=deed is Deed.DRY_RUN)


def _request(verb: str, write: Change | None = None, **more: Any) -> Call:
    return Call(verb=verb, namespace=_NAMESPACE, name=_NAME, write=write, **more)


def _change(party: Party, step: Step) -> Change:
    now = party.clock()
    ahead = step.amount * SECOND or _HOUR
    duration = step.amount or 15
    changes: dict[Deed, Change] = {
        Deed.STEAL: _change_stored(lambda old: _take(party, old, party.identity, now)),
        Deed.WRITE_IN: _change_stored(lambda old: _take(party, old, step.identity, now)),
        Deed.DRY_RUN: _make_change(party, holder=party.identity, renewed=now),
        Deed.PLANT_STAMPS: _make_change(party),
        Deed.KEEP_ALIVE: _renewal(party),
        Deed.ECHO: _make_change(party),
        Deed.RENAME: _change_stored(lambda old: _rename(party, old, now)),
        Deed.RELEASE: _make_change(party, holder="", duration=1, renewed=now, acquired=now),
        Deed.EDIT_DURATION: _make_change(party, duration=duration),
        Deed.LABEL: _change_stored(lambda old: Write(party.manager, old.spec, (("seen", str(step.at)),))),
        Deed.WIPE: _change_stored(lambda old: Write(party.manager, Spec(), old.labels)),
        Deed.PATCH: _make_change(party, holder=step.identity),
        Deed.RESTORE_OVER: _change_stored(lambda old: Write(party.manager, _old_copy(step, now), old.labels)),
        Deed.PREFER: _make_change(party, preferred=step.identity, strategy="OldestEmulationVersion"),
        Deed.UNPREFER: _make_change(party, preferred=None),
        Deed.FUTURE: _make_change(party, renewed=now + ahead),
        Deed.PAST: _make_change(party, renewed=now - ahead),
        Deed.FORGE_STAMPS: _change_stored(lambda old: _forge(party, old, now + step.amount * SECOND)),
    }
    return changes[step.deed]


def _make_change(party: Party, **fields: Any) -> Change:
    return _change_stored(lambda old: Write(party.manager, replace(old.spec, **fields), old.labels))


def _renewal(party: Party) -> Change:
    return _make_change(party, renewed=party.clock())


def _rename(party: Party, old: Lease, now: int) -> Write:
    spec = replace(old.spec, renewed=now, transitions=(old.spec.transitions or 0) + 1)
    return Write(party.manager, spec, old.labels)


def _take(party: Party, old: Lease, identity: str, now: int) -> Write:
    if old.spec.holder == identity:
        return Write(party.manager, replace(old.spec, renewed=now), old.labels)
    count = (old.spec.transitions or 0) + 1
    spec = replace(old.spec, holder=identity, duration=15, acquired=now, renewed=now, transitions=count)
    return Write(party.manager, spec, old.labels)


def _old_copy(step: Step, now: int) -> Spec:
    then = now - (step.amount or 86_400) * SECOND
    return Spec(holder=step.identity, duration=15, acquired=then, renewed=then + 600 * SECOND, transitions=3)


def _apply(party: Party, step: Step) -> Change:
    """Return a server-side apply with force of what a repository has: a holder, or labels alone."""
    labels = (("app", "checkout"),)
    if step.deed is Deed.APPLY_LABELS or not step.identity:
        return lambda _: Write(party.manager, Spec(), labels, APPLY, frozenset({"labels", "labels.app"}))
    spec = Spec(holder=step.identity, duration=15)
    applied = frozenset({"holder", "duration", "labels", "labels.app"})
    return lambda _: Write(party.manager, spec, labels, APPLY, applied)


def _forge(party: Party, old: Lease, clock: int) -> Write:
    """Send managedFields in which the manager of the holder dates its renewal anew."""
    fields = frozenset({"holder", "duration", "acquired", "renewed", "transitions"})
    entries = (Entry("checkout", UPDATE, whole(clock), fields),)
    return Write(party.manager, old.spec, (("seen", str(clock)),), entries=entries)


def _list_planted(party: Party) -> tuple[tuple[str, str], ...]:
    writer = f"00000000-0000-4000-8000-0000000000aa {party.user.name}"
    return (
        (f"lease-webhook/written-{SUFFIX}", format_time(party.clock())),
        (f"lease-webhook/writer-{SUFFIX}", writer),
        (f"lease-webhook/term-{SUFFIX}", "7"),
    )


def _has_expired(lease: Lease, now: int) -> bool:
    spec = lease.spec
    return not spec.holder or spec.renewed is None or now > spec.renewed + (spec.duration or 0) * SECOND
