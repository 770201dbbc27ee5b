"""What a LeaseCandidate may become after it was created, and who may ping it."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from webhook.api.field import forbidden, invalid
from webhook.rules.change import CandidateChange
from webhook.rules.events import same_time
from webhook.rules.finding import NOTHING, Finding
from webhook.rules.mode import Mode
from webhook.rules.rule import CANDIDATES, TOUCHED, UPDATE, WRITES, Rule
from webhook.rules.statement import Statement
from webhook.rules.time_ahead import ahead, is_ahead
from webhook.rules.times import SECOND, normalized, readable, span


def only_the_api_server_pings(change: CandidateChange) -> Iterable[Finding]:
    """spec.pingTime may be set or changed by the API server only.

    Candidates answer a ping by renewing; clearing pingTime is legal.
    """
    new = change.new_spec.ping_time
    if normalized(new) is None or same_time(new, change.old_spec.ping_time):
        return NOTHING
    detail = "pingTime may be set by the API server's coordinated leader election only; leave it as it is"
    happened = Statement("a client set pingTime: the election may leave this candidate out")
    return (Finding(forbidden("spec.pingTime", detail), happened=happened),)


def candidate_renew_time_is_not_in_the_future(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not lie more than a day ahead of the API server's clock.

    Such a candidate seems to have answered every ping, and is never removed.
    """
    new, old = readable(change.new_renew_time), readable(change.old_renew_time)
    if new is None or new == old or not is_ahead(new, change.now, change.limits.candidate_renew_time_in_future):
        return NOTHING
    clock = max(change.renewed_at, change.now)
    return ahead(new, old, clock, change.limits.candidate_renew_time_in_future, value=change.new_spec.renew_time)


def candidate_renew_time_does_not_move_back(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not move back by more than an hour."""
    new, old = readable(change.new_renew_time), readable(change.old_renew_time)
    limit = change.limits.candidate_renew_time_backwards.above_seconds
    if new is None or old is None or old - new <= limit * SECOND:
        return NOTHING
    detail = f"must not be more than {limit} s before the old value; check the candidate's clock"
    happened = Statement(f"renewTime moved back by {span(old - new)}: the election may leave this candidate out")
    return (Finding(invalid("spec.renewTime", change.new_spec.renew_time, detail), happened=happened),)


def candidate_keeps_versions_and_strategy(change: CandidateChange) -> Iterable[Finding]:
    """The versions and strategies of a candidate may not change after it was created."""
    return tuple(_changed(change))


_CHANGED: Final = "may not change after creation; delete and recreate the candidate"


def _changed(change: CandidateChange) -> Iterator[Finding]:
    new, old = change.new_spec, change.old_spec
    pairs = (
        ("binaryVersion", new.binary_version or "", old.binary_version or ""),
        ("emulationVersion", new.emulation_version or "", old.emulation_version or ""),
        ("strategy", new.strategy or "", old.strategy or ""),
        ("preferredStrategies", new.preferred_strategies or [], old.preferred_strategies or []),
    )
    for name, value, before in pairs:
        if value != before:
            happened = Statement(f"{name} changed after creation: the election may choose another leader")
            yield Finding(forbidden(f"spec.{name}", f"{name} {_CHANGED}"), happened=happened)


_rule = partial(Rule, resources=CANDIDATES, events=TOUCHED)
RULES = (
    _rule(
        id="ping-time-writer",
        check=only_the_api_server_pings,
        operations=WRITES,
        about_writer=True,
        source="ours: candidates write a guarded copy back and never touch pingTime",
    ),
    _rule(
        id="candidate-renew-time-in-future",
        check=candidate_renew_time_is_not_in_the_future,
        operations=WRITES,
        source="ours: the election works in windows of 5 s, so 10 s already warn",
    ),
    _rule(
        id="candidate-renew-time-backwards",
        check=candidate_renew_time_does_not_move_back,
        operations=UPDATE,
        standard=Mode.OFF,
        strict=Mode.AUDIT,
        source="ours: clocks step back, so only audited",
    ),
    _rule(
        id="candidate-changed",
        check=candidate_keeps_versions_and_strategy,
        operations=UPDATE,
        standard=Mode.WARN,
        source="ours: client-go's candidates never change them on update",
    ),
)
