"""LeaseCandidates: what one may become after it was created, who may write it, and whether all can agree.

That candidates cannot agree is a fact about a set of objects: no single write is refused for it, reports use it.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Final

from webhook.api import semver
from webhook.api.field import forbidden, invalid
from webhook.api.objects import LeaseCandidate
from webhook.api.text import quote
from webhook.api.times import MINUTE, SECOND, instant, normalized, readable, span
from webhook.rules.change import CandidateChange, same_time
from webhook.rules.rule import CANDIDATES, NO_FINDINGS, TOUCHED, UPDATE, WRITES, Attack, Finding, Mode, Rule, Statement
from webhook.rules.time_ahead import ahead, is_ahead


def only_the_api_server_pings(change: CandidateChange) -> Iterable[Finding]:
    """spec.pingTime may be set or changed by the API server only.

    Candidates answer a ping by renewing; clearing pingTime is allowed.
    """
    new = change.new_spec.ping_time
    if normalized(new) is None or same_time(new, change.old_spec.ping_time):
        return NO_FINDINGS
    detail = "pingTime may be set by the API server's coordinated leader election only; leave it as it is"
    happened = Statement("a client set pingTime: the election may leave this candidate out")
    return (Finding(forbidden("spec.pingTime", detail), happened=happened),)


def candidate_is_written_in_its_own_namespace(change: CandidateChange) -> Iterable[Finding]:
    """A LeaseCandidate may not be written by a service account of another namespace.

    The API server chooses among the candidates of a lease, and has the holder step down for one that it prefers. The
    writers that a binding lists are exempt.
    """
    account, binding = change.user.service_account, change.binding
    if account is None or account[0] == change.request.namespace or (binding and binding.lists(change.user)):
        return NO_FINDINGS
    detail = (
        f"{quote(change.user.username)} belongs to another namespace; the API server may make this candidate the "
        f"holder of lease {quote(change.request.lease_name)}; bind that lease"
    )
    happened = Statement(
        "{0} of another namespace wrote a candidate of lease {1}: it may become the leader",
        (change.user.username, f"{change.request.namespace}/{change.request.lease_name}"),
    )
    return (Finding(forbidden("spec.leaseName", detail), happened=happened),)


def candidate_renew_time_is_not_in_the_future(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not lie more than a day ahead of the API server's clock.

    Such a candidate seems to have answered every ping, and is never removed.
    """
    new, old = readable(change.new_renew_time), readable(change.old_renew_time)
    if new is None or new == old or not is_ahead(new, change.now, change.limits.candidate_renew_time_in_future):
        return NO_FINDINGS
    clock = max(change.renewed_at, change.now)
    return ahead(new, old, clock, change.limits.candidate_renew_time_in_future, value=change.new_spec.renew_time)


def candidate_renew_time_does_not_move_back(change: CandidateChange) -> Iterable[Finding]:
    """spec.renewTime of a candidate must not move back by more than an hour."""
    new, old = readable(change.new_renew_time), readable(change.old_renew_time)
    limit = change.limits.candidate_renew_time_backwards.above_seconds
    if new is None or old is None or old - new <= limit * SECOND:
        return NO_FINDINGS
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
        why="A candidate that is pinged must renew; forged pings disturb the coordinated election.",
        who="Backup tools that restore a LeaseCandidate as an ordinary user (Velero).",
        fix="Leave `pingTime` out of what you restore, or exempt the tool for this rule on CREATE.",
        attack=Attack("wrote what the API server asks candidates with", at_any_mode=False, on_create=False),
    ),
    _rule(
        id="candidate-across-namespaces",
        check=candidate_is_written_in_its_own_namespace,
        operations=WRITES,
        about_writer=True,
        standard=Mode.AUDIT,
        strict=Mode.WARN,
        source="ours: client-go's candidates are written by the pods of the component that is elected",
        why="In the coordinated election the API server writes the holder. Whoever may create a LeaseCandidate for "
        "a lease has it depose the leader and make the candidate the next one, also of a lease that is not "
        "coordinated.",
        who="Components that are elected in a namespace other than their service account's.",
        attack=Attack("made a candidate for a lease of another namespace"),
        fix="Bind the lease, which covers its candidates as well, and let few create LeaseCandidates (RBAC).",
    ),
    _rule(
        id="candidate-renew-time-in-future",
        check=candidate_renew_time_is_not_in_the_future,
        operations=WRITES,
        source="ours: the election works in windows of 5 s, so 10 s already warn",
        why="Such a candidate seems to have answered every ping, and is never removed.",
        who="Machines whose clock runs ahead by more than 10 s (a warning).",
        fix="Correct the client's clock.",
        attack=Attack("dated a candidate far ahead", at_any_mode=False),
        stored="set the clock of the candidate's node",
    ),
    _rule(
        id="candidate-renew-time-backwards",
        check=candidate_renew_time_does_not_move_back,
        operations=UPDATE,
        standard=Mode.OFF,
        strict=Mode.AUDIT,
        source="ours: clocks step back, so only audited",
        why="A candidate whose renewTime falls may be removed although it still runs.",
        who="Machines whose clock is set back.",
        fix="Keep clocks synchronized.",
    ),
    _rule(
        id="candidate-changed",
        check=candidate_keeps_versions_and_strategy,
        operations=UPDATE,
        standard=Mode.WARN,
        source="ours: client-go's candidates never change them on update",
        why="The election chose by the old versions and strategy; a change makes its choice wrong.",
        who="Manifests applied again after an upgrade. client-go's candidates never change them.",
        fix="Delete the LeaseCandidate and create it again.",
        attack=Attack("changed what decides a coordinated election"),
    ),
)


CONFLICT: Final = "candidate-strategy-conflict"
LIVE: Final = 30 * MINUTE
"""A candidate that has not renewed for longer is not counted, and is removed.

Source: kubernetes `pkg/controlplane/controller/leaderelection/leasecandidategc_controller.go`.
"""
ALPHA: Final = "coordination.k8s.io/v1alpha1"
"""The only version with a list of strategies in order of preference (Kubernetes 1.31)."""


def candidates_agree_on_a_strategy(candidates: Iterable[LeaseCandidate], now: int) -> Iterator[Finding]:
    """The live candidates of one lease must agree on its strategy.

    Since v1alpha2 the strategy of the highest binaryVersion counts, so candidates of that version must have the same;
    in v1alpha1 all ordered lists together must have no cycle and exactly one first choice. Versions that do not parse
    are left to the field rules.

    Args:
        candidates: those of one namespace and one spec.leaseName.
        now: microseconds since 1970.

    """
    live = sorted((one for one in candidates if _is_live(one, now)), key=lambda one: one.metadata.name or "")
    yield from _one_strategy([one for one in live if one.api_version != ALPHA])
    yield from _one_first_choice([one for one in live if one.api_version == ALPHA])


def _is_live(candidate: LeaseCandidate, now: int) -> bool:
    renewed = instant(normalized(candidate.spec.renew_time))
    return renewed is not None and now - renewed <= LIVE


def _one_strategy(candidates: list[LeaseCandidate]) -> Iterator[Finding]:
    versions = {
        id(one): version for one in candidates if (version := semver.parse(one.spec.binary_version or "")) is not None
    }
    if not versions:
        return
    highest = max(versions.values())
    deciding = [one for one in candidates if versions.get(id(one)) == highest]
    by_strategy = {one.spec.strategy or "": one for one in deciding}
    if len(by_strategy) > 1:
        choices = ", ".join(f"{one.metadata.name} {quote(strategy)}" for strategy, one in by_strategy.items())
        detail = (
            f"live candidates of the highest binaryVersion {highest} must have the same strategy ({choices}), "
            "or no leader is elected"
        )
        yield Finding(invalid("spec.strategy", sorted(by_strategy), detail))


def _one_first_choice(candidates: list[LeaseCandidate]) -> Iterator[Finding]:
    before: dict[str, set[str]] = {}
    for candidate in candidates:
        preferences = [strategy or "" for strategy in candidate.spec.preferred_strategies or []]
        for strategy in preferences:
            before.setdefault(strategy, set())
        for preferred, other in pairwise(preferences):
            before[other].add(preferred)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        circle = " before ".join(quote(strategy) for strategy in error.args[1])
        yield _in_preferences(before, f"live candidates must not prefer strategies in a cycle ({circle})")
        return
    roots = sorted(strategy for strategy, preferred in before.items() if not preferred)
    if len(roots) > 1:
        choices = " and ".join(quote(strategy) for strategy in roots)
        yield _in_preferences(before, f"live candidates must have one first choice together, not {choices}")


def _in_preferences(strategies: Iterable[str], problem: str) -> Finding:
    return Finding(invalid("spec.preferredStrategies", sorted(strategies), f"{problem}, or no leader is elected"))


OFFLINE_RULES = (
    Rule(
        id=CONFLICT,
        check=candidates_agree_on_a_strategy,
        resources=CANDIDATES,
        operations=WRITES,
        standard=Mode.AUDIT,
        strict=Mode.AUDIT,
        source="kubernetes `pkg/controlplane/controller/leaderelection/election.go`, pickBestStrategy, "
        "of 1.31 and of 1.32.",
        why="Candidates of the same version that disagree leave the election without a strategy: no leader is elected.",
        who="Two releases of one component that run side by side with different strategies.",
        fix="Give all candidates of the lease the same strategy.",
    ),
)
