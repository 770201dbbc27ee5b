"""The world around one Lease, and the laws that no honest trace may see broken.

A `World` is a value; every step makes a new one. Each write becomes the bytes of a review, which the webhook evaluates
under several policies; one of them governs, that is, decides what is stored. All instants are true time unless they
are called `clock`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.model import electors
from tests.model.api_server import SUFFIX, Lease, User, Write, created, review, service_account, stored
from tests.model.electors import Elector
from tests.model.managed_fields import SECOND, Entry, whole
from tests.model.stamping import stamped
from webhook.admission import evaluate as decision_path
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.mode import Mode
from webhook.admission.verdict import Verdict
from webhook.kubernetes.review import decode

START: Final = 1_800_000_000 * SECOND
DAY: Final = 86_400 * SECOND
HOUR: Final = 3600 * SECOND
MINUTE: Final = 60 * SECOND
_BINDING: Final = "bindings:\n- {namespace: shop, lease: checkout, writers: [shop/checkout], holder: ['${pod}_*']}\n"


def _policy(preset: str, rest: str = "") -> Policy:
    return parse(f"apiVersion: lease-webhook/v1\npreset: {preset}\n{rest}")


STANDARD: Final = "standard"
STRICT: Final = "strict"
STAMPED: Final = "strict, stamped"
"""The API server stamps writers, and the policy file says so; no other policy guards."""
POLICIES: Final[Mapping[str, Policy]] = {
    STANDARD: _policy(STANDARD),
    STRICT: _policy(STRICT),
    "standard, bound": _policy(STANDARD, _BINDING),
    "strict, bound": _policy(STRICT, _BINDING),
    STAMPED: _policy(STRICT, f"stamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"),
    "strict, without_stamps: enforce": _policy(STRICT, "without_stamps: enforce\n"),
}


class LawBrokenError(AssertionError):
    """A law of the model does not hold; the text says which and for what write."""


class Seen(Struct, frozen=True):
    """The last write that moved the renewal's stamp: the true time, and the clock of the API server that stored it."""

    at: int
    clock: int


class Late(Struct, frozen=True):
    """A write on its way: of which elector, what, and since when."""

    index: int
    write: Write
    sent_at: int


class World(Struct, frozen=True):
    """Everything. `offsets` are the API servers' clocks minus the true time.

    `stepped_back` and `forged` say that an API server's clock fell, or that an attacker's stamp was stored: what the
    stamps say from then on is no longer what happened.
    """

    now: int
    offsets: tuple[int, ...]
    electors: tuple[Elector, ...] = ()
    lease: Lease | None = None
    seen: Seen | None = None
    late: tuple[Late, ...] = ()
    stepped_back: bool = False
    forged: bool = False
    steals: int = 0
    stamps: bool = False

    def clock(self, server: int) -> int:
        """Return what an API server's clock shows."""
        return self.now + self.offsets[server]

    @property
    def leaders(self) -> tuple[Elector, ...]:
        """Everybody who acts as the leader now."""
        return tuple(one for one in self.electors if one.believes(self.now))


def whole_tolerance(duration: int | None) -> int:
    """The whole seconds of min(2 s, duration / 5): a stamp has no others, so only they excuse a clock."""
    if duration is None or duration <= 0:
        return 2 * SECOND
    return min(2, duration // 5) * SECOND


# ---- evaluating -----------------------------------------------------------------------------------------------------


class Outcome(Struct, frozen=True):
    """A write that reached the webhook: the lease it would leave, and every policy's verdict."""

    before: Lease | None
    after: Lease | None
    clock: int
    verdicts: Mapping[str, Verdict]


def evaluate(world: World, user: User, write: Write | None, server: int, policies: tuple[str, ...]) -> Outcome | None:
    """Return what the webhook says to a write (None deletes); None where a resourceVersion is out of date."""
    before, clock = world.lease, world.clock(server)
    if write is None:
        after = None
    elif before is None:
        after = created(write, clock) if write.version is None else None
    elif write.version not in (None, before.version):
        return None
    else:
        after = stored(before, write, clock)
    if before is None and after is None:
        return None
    if world.stamps and after is not None:
        after = stamped(before, after, user)
    verdicts = {name: verdict_of(user, before, after, world.now, name) for name in policies}
    return Outcome(before, after, clock, verdicts)


@lru_cache(maxsize=65536)
def verdict_of(user: User, before: Lease | None, after: Lease | None, now: int, policy: str) -> Verdict:
    """The webhook's verdict on the bytes of one review; remembered, because searches meet the same write often."""
    return decision_path.evaluate(decode(review(user, before, after)), POLICIES[policy], now)


def settled(world: World, outcome: Outcome) -> World:
    """The world after the write was stored."""
    before, after = outcome.before, outcome.after
    seen = world.seen
    if after is None:
        seen = None
    elif before is None or after.spec.renewed != before.spec.renewed or _stamp(after) != _stamp(before):
        seen = Seen(world.now, outcome.clock)
    return replace(world, lease=after, seen=seen)


def _stamp(lease: Lease) -> int | None:
    return stamp_of_renewal(lease.entries)


@lru_cache(maxsize=65536)
def stamp_of_renewal(entries: tuple[Entry, ...]) -> int | None:
    """The earliest time of any owner of renewTime: a renewal leaves one, and others only join later."""
    return min((entry.time for entry in entries if "renewed" in entry.fields and entry.time is not None), default=None)


def _with_both(policy: str) -> tuple[str, ...]:
    if policy == STAMPED:
        return (STAMPED,)
    return (STANDARD, STRICT) if policy in (STANDARD, STRICT) else (STANDARD, STRICT, policy)


# ---- steps of honest actors -----------------------------------------------------------------------------------------


def waited(world: World, micros: int) -> World:
    """Time passes."""
    return replace(world, now=world.now + micros)


def stepped_back(world: World, server: int, micros: int) -> World:
    """One API server's clock falls."""
    offsets = tuple(offset - micros if index == server else offset for index, offset in enumerate(world.offsets))
    return replace(world, offsets=offsets, stepped_back=True)


def acted(world: World, index: int, server: int, policy: str) -> World:
    """An elector reads the lease and does what it does."""
    world, write = intended(world, index, server)
    return world if write is None else arrived(world, index, write, server, policy)


def intended(world: World, index: int, server: int) -> tuple[World, Write | None]:
    """An elector reads the lease and makes up its mind."""
    world = _at_a_new_moment(world, index)
    elector = electors.observed(world.electors[index], world.lease, world.now)
    world = _with_elector(world, index, elector)
    if elector.crashed:
        return world, None
    return world, electors.intention(elector, world.lease, world.now, world.clock(server))


def released(world: World, index: int, server: int, policy: str) -> World:
    """An elector stops in order; where it has no release, it just leaves."""
    world = _at_a_new_moment(world, index)
    elector = electors.observed(world.electors[index], world.lease, world.now)
    write = None if elector.crashed else electors.release(elector, world.lease, world.now)
    if write is not None:
        world = arrived(world, index, write, server, policy)
    return crashed(world, index)


def crashed(world: World, index: int) -> World:
    """An elector dies."""
    return _with_elector(world, index, replace(world.electors[index], crashed=True, led_at=None))


def delivered(world: World, server: int, policy: str) -> World:
    """The oldest write on its way reaches an API server, perhaps long after it was sent."""
    if not world.late:
        return world
    first, *rest = world.late
    return arrived(replace(world, late=tuple(rest)), first.index, first.write, server, policy, sent_at=first.sent_at)


def arrived(world: World, index: int, write: Write, server: int, policy: str, *, sent_at: int | None = None) -> World:
    """An elector's write reaches an API server, at once unless `sent_at` says otherwise."""
    elector = world.electors[index]
    outcome = evaluate(world, elector.user, write, server, _with_both(policy))
    if outcome is None:
        return world
    stolen = _check_elector(world, elector, outcome)
    if stolen:
        world = replace(world, steals=world.steals + 1)
    if not outcome.verdicts[policy].allowed:
        return world
    world = settled(world, outcome)
    if elector.kind.elects or elector.crashed:
        return world
    holds = outcome.after is not None and outcome.after.spec.holder == elector.identity
    led_at = world.now if sent_at is None else sent_at
    elector = replace(elector, led_at=led_at if holds else None)
    return _with_elector(world, index, electors.observed(elector, world.lease, world.now))


def noted(world: World, write: Write, server: int, policy: str) -> World:
    """A script, a person or a controller writes metadata; an apply may repeat what spec says."""
    outcome = evaluate(world, SCRIPT, write, server, _with_both(policy))
    if outcome is None:
        return world
    _check_note(world, outcome)
    return settled(world, outcome) if outcome.verdicts[policy].allowed else world


SCRIPT: Final = service_account("shop", "scripts")


def _at_a_new_moment(world: World, index: int) -> World:
    """No two clocks show the same microsecond twice, so a written renewTime is a new one."""
    local = world.now + world.electors[index].skew
    if world.lease is not None and world.lease.spec.renewed == local:
        return waited(world, SECOND // 1000)
    return world


def _with_elector(world: World, index: int, elector: Elector) -> World:
    return replace(world, electors=(*world.electors[:index], elector, *world.electors[index + 1 :]))


# ---- laws -----------------------------------------------------------------------------------------------------------


def _check_elector(world: World, elector: Elector, outcome: Outcome) -> bool:
    """Check the laws for an elector's write; whether it is a steal."""
    before, after = outcome.before, outcome.after
    taken = before is not None and before.spec.holder not in (None, "", elector.identity)
    taken = taken and after is not None and after.spec.holder == elector.identity
    if not taken or before is None:
        _must_be_allowed("a holder's write, a claim or a create", outcome, (STANDARD, STRICT))
        return False
    due = _is_due(world, before, outcome.clock)
    if due or elector.kind.elects:
        what = "a takeover after the server-observed duration" if due else "the API server's own election"
        _must_be_allowed(what, outcome, (STANDARD, STRICT))
        return _is_early(world, before)
    _must_be_allowed("an early takeover by an elector of the same namespace", outcome, (STANDARD,))
    if _is_plainly_early(world, before, outcome.clock):
        if outcome.verdicts[STRICT].allowed:
            raise _broken("strict must deny a steal", outcome)
        findings = {(finding.rule, finding.mode) for finding in outcome.verdicts[STANDARD].findings}
        if ("takeover-before-expiry", Mode.WARN) not in findings:
            raise _broken("standard must warn of a steal", outcome)
    return True


def _is_due(world: World, before: Lease, clock: int) -> bool:
    """Return whether the duration has passed on API servers' clocks since the last write that moved the stamp."""
    duration = before.spec.duration
    if world.seen is None or duration is None or before.spec.renewed is None:
        return True
    if world.forged:
        return False
    observed = clock - world.seen.clock
    if not world.stepped_back and world.now - world.seen.at >= duration * SECOND:
        return True
    return observed >= duration * SECOND


def _is_early(world: World, before: Lease) -> bool:
    """Return whether the duration has not passed on the true clock."""
    duration = before.spec.duration
    return world.seen is not None and duration is not None and world.now - world.seen.at < duration * SECOND


def _is_plainly_early(world: World, before: Lease, clock: int) -> bool:
    spec = before.spec
    if world.seen is None or spec.duration is None or spec.renewed is None or stamp_of_renewal(before.entries) is None:
        return False
    if world.stepped_back or world.forged or world.seen.clock > spec.renewed + DAY:
        return False
    return clock - world.seen.clock + whole_tolerance(spec.duration) + 2 * SECOND < spec.duration * SECOND


def _check_note(world: World, outcome: Outcome) -> None:
    """Metadata is free, with two exceptions, in both of which the API server itself takes the renewal's stamp away.

    An apply that repeats renewTime and only removes something is stamped by an API server whose clock is behind, which
    looks like a forged time. And a bucket that is folded into itself is lost with the stamp in it.
    """
    before, after = outcome.before, outcome.after
    if before is not None and after is not None and after.spec.renewed is not None and _stamp(before) is not None:
        then = _stamp(after)
        if then is None or (then < (_stamp(before) or 0) and set(after.labels) <= set(before.labels)):
            return
    if not world.forged:
        _must_be_allowed("metadata written by an honest script", outcome, (STANDARD, STRICT))


OF_THE_API_SERVER: Final = frozenset({"preferred-holder-writer", "strategy-writer"})
"""An old copy, sent without its resourceVersion, may bring back what only the coordinated election may set."""


def _must_be_allowed(what: str, outcome: Outcome, policies: tuple[str, ...]) -> None:
    for policy in (STAMPED,) if STAMPED in outcome.verdicts else policies:
        verdict = outcome.verdicts[policy]
        denied = {one.rule for one in verdict.findings if one.mode is Mode.DENY}
        if not verdict.allowed and not (denied and denied <= OF_THE_API_SERVER):
            raise _broken(f"{policy} denies {what}", outcome)


def check_bound(world: World, outcome: Outcome) -> None:
    """With a binding no stranger changes spec, and none takes the stamp of the last renewal away."""
    before, after = outcome.before, outcome.after
    for policy, verdict in outcome.verdicts.items():
        if not policy.endswith("bound") or not verdict.allowed:
            continue
        if before is None or after is None or before.spec != after.spec:
            raise _broken(f"{policy} lets a stranger write", outcome)
        old, new = stamp_of_renewal(before.entries), stamp_of_renewal(after.entries)
        if old is None:
            continue
        earliest = min(old, whole(outcome.clock)) - 2 * SECOND
        if new is None or new < earliest or new > max(old, outcome.clock + MINUTE):
            raise _broken(f"{policy} lets a stranger change the stamp of the last renewal", outcome)


def check_unharmed(world: World, policy: str) -> None:
    """After whatever an attacker could store: the holder may renew, and the next one may take the lease over in time.

    In time is one duration and a minute later, when the holder is dead and nothing else was written.
    """
    if world.lease is None or not world.lease.spec.holder:
        return
    holder, other = world.electors[:2]
    if world.lease.spec.holder == holder.identity:
        renewal = electors.intention(holder, world.lease, world.now + 1, world.clock(0))
        _must_pass("the holder's renewal after an attack", waited(world, 1), holder, renewal, policy)
    later = waited(world, (electors.DURATION + 2) * SECOND + MINUTE)
    taken = electors.acquisition(other, world.lease, later.now)
    _must_pass("an honest takeover after an attack", later, other, taken, policy)


def _must_pass(what: str, world: World, elector: Elector, write: Write | None, policy: str) -> None:
    outcome = None if write is None else evaluate(world, elector.user, write, 0, (policy,))
    if outcome is not None:
        _must_be_allowed(what, outcome, (policy,))
        if any(finding.rule.startswith("takeover-") for finding in outcome.verdicts[policy].findings):
            raise _broken(f"{policy} warns of {what}", outcome)


def _broken(law: str, outcome: Outcome) -> LawBrokenError:
    verdicts = {name: (verdict.event, verdict.message) for name, verdict in outcome.verdicts.items()}
    return LawBrokenError(
        f"{law}:\n  before {outcome.before}\n  after  {outcome.after}\n  at {outcome.clock}: {verdicts}"
    )
