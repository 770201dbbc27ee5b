"""Several inputs as one history: in order of time, and each write once, with all that is known of it.

An event of an audit log and a change of a watch that have the same resourceVersion are one write: the log knows when it
was made and by whom, the watch shows the object. What is stored is ordered by resourceVersions, of each write or else
of the state that it replaced, because the clocks of API servers differ; the rest is ordered by time.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count, islice
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.history.dating import date_by_itself
from webhook.analysis.history.failed_writes import find_outcomes
from webhook.analysis.history.restores import mark_restores
from webhook.analysis.inputs.items import (
    LISTINGS,
    NO_TEXTS,
    STANDARD_INPUT,
    Act,
    Answer,
    ClockSkew,
    FenceReport,
    Input,
    InputKind,
    Item,
    LogEnd,
    Observation,
    Place,
    PodDeletion,
    PodRequest,
    PutBack,
    RelatedWrite,
    StampReader,
    Unreadable,
    parse_number,
)
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, RENEW_TIME, find_rewritings
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, stamp_of

AFTER_LOG: Final = SECOND
"""How much later an object counts that does not say when it was seen: its stamps have whole seconds, and an audit log,
which knows the writer too, should come first."""
MAX_OPEN: Final = 500
"""Inputs that are read at the same time; a process may have 1024 open files, and a directory may hold more dumps."""
MAX_PENDING: Final = 10_000
"""Observations that wait for others of the same write, and for earlier ones."""
MAX_LISTED: Final = 1000
"""The same while one input has shown nothing but lists: those of a large cluster are not to be held all at once."""
_MAX_PEEKED: Final = 1000
"""Items without a time at the start of an input, before it counts as one without."""
_TOLERANCE: Final = 2 * SECOND
_MAX_NEAR: Final = 100
"""Writes between two whose times are exact; of more than that, none is looked for."""
_JITTER: Final = SECOND // 4
"""How much later than another one an API server may log what it answered first."""
_WRITES: Final = frozenset({Act.CREATED, Act.UPDATED})

_NOT_DATED: Final = -2

_Key = tuple[str, str, str]
_Default = TypeVar("_Default", int, None)
_time: Final = attrgetter("time")
_revision: Final = attrgetter("revision")
_place: Final = attrgetter("time", "revision")


class _DatedItem(Struct):
    """An item and its place in the order; `revision` is 0 if it is not a state.

    `time` is an estimate unless exact, and not known before an order is needed. `is_claimed`: of a state, the clock of
    its writer alone says so.
    """

    item: Observation | FenceReport
    time: int = _NOT_DATED
    revision: int = 0
    is_exact: bool = False
    is_claimed: bool = False

    @property
    def observation(self) -> Observation:
        assert isinstance(self.item, Observation)
        return self.item

    @property
    def is_deletion(self) -> bool:
        return isinstance(self.item, Observation) and self.item.is_deletion

    @property
    def is_undated(self) -> bool:
        """Whether no API server dates it: a deletion, or a state without stamps."""
        return self.is_claimed or (self.is_deletion and not self.is_exact)

    @property
    def is_stored_write(self) -> bool:
        return isinstance(self.item, Observation) and self.item.is_stored and self.item.act is not Act.READ

    @property
    def is_creation(self) -> bool:
        return self.is_stored_write and self.observation.act is Act.CREATED

    def join_with(self, shown: "_DatedItem") -> "_DatedItem":
        """Return the same write with the object that another input shows of it."""
        request, seen = self.observation, shown.observation
        rewritings = request.rewritings
        asked = request.object if _is_as_sent(request) else request.asked
        if isinstance(asked, Lease) and isinstance(seen.object, Lease):
            annotations = request.answer.annotations if request.answer else NO_TEXTS
            rewritings = tuple(find_rewritings(asked.spec, seen.object.spec, annotations))
        item = replace(
            request,
            object=seen.object,
            resource_version=seen.resource_version,
            place=seen.place,
            log=request.log or request.place.path,
            rewritings=rewritings,
            is_watched=seen.input_kind is InputKind.WATCH,
            is_sure=True,
        )
        return _DatedItem(item, self.time, shown.revision, is_exact=True)


def _is_as_sent(seen: Observation) -> bool:
    """Return whether a log shows of a write what was sent, and not what was stored: that has a resourceVersion."""
    return seen.input_kind is InputKind.AUDIT_LOG and seen.object is not None and not seen.resource_version


class Merged:
    """The items of all inputs, in order; `unplaced` counts those that are older than what had been passed on before.

    `skew` is what the clocks of the API servers that wrote several logs differ by, at least, in microseconds.
    Moments after `latest`, in microseconds since 1970, are not believed. `stamps` dates states where stamps are
    believed: what their writers claim may be hours off.
    """

    def __init__(self, inputs: Iterable[Input], latest: int, stamps: StampReader | None = None) -> None:
        self.unplaced = 0
        self.skew = 0
        self._inputs = list(inputs)
        self._latest = latest
        self._stamps = stamps or StampReader({})
        self._pending: dict[_Key, list[_DatedItem]] = {}
        self._number = 0
        self._is_list = len(self._inputs) == 1
        self._end: LogEnd | None = None
        self._passed: dict[_Key, int] = {}
        """The last resourceVersion that was passed on."""
        self._clearings: list[Observation] = []

    def __iter__(self) -> Iterator[Item]:
        for item in mark_restores(_merge_by_time(self._inputs, self._latest, self._stamps), self._stamps):
            yield from self._feed(item)
        yield from self._pass_on(1)
        if self._end is not None:
            yield self._end
        if self.unplaced:
            text = f"{self.unplaced} records are older than what was read before them, and left out: sort the input"
            yield Unreadable(Place(self._inputs[0].path), text)

    def _feed(self, item: Item) -> Iterator[Item]:
        """Take in one item, and yield those whose time has come."""
        if isinstance(item, Observation) and item.act is not Act.COLLECTION:
            key = (item.kind, item.namespace, item.name)
            seen = self._describe(item)
            if 0 < seen.revision < self._passed.get(key, 0):
                self.unplaced += 1
                return
        elif isinstance(item, FenceReport):
            key, seen = ("Lease", item.namespace, item.name), _DatedItem(item, item.at, is_exact=True)
        elif isinstance(item, LogEnd):
            self._end = item if self._end is None else LogEnd(max(self._end.at, item.at))
            return
        elif isinstance(item, PutBack):
            # From here on resourceVersions do not compare with those before.
            yield from self._pass_on(1)
            self._passed.clear()
            yield item
            return
        else:
            if isinstance(item, Observation) and item.clearing and item.is_stored:
                self._clearings.append(item)
            yield item
            return
        self._pending.setdefault(key, []).append(seen)
        self._number += 1
        self._is_list = self._is_list and _is_of_dump(seen)
        if self._number > (MAX_LISTED if self._is_list else MAX_PENDING):
            yield from self._pass_on(2)

    def _describe(self, item: Observation) -> _DatedItem:
        revision = parse_number(item.resource_version) if item.is_stored else 0
        return _DatedItem(item, revision=revision, is_exact=item.at is not None)

    def _pass_on(self, parts: int) -> Iterator[Item]:
        """Yield the first of so many parts of what is waiting of each object; all of what only dumps show."""
        self._clear()
        pending, self._pending, self._number = self._pending, {}, 0
        if all(len(lane) == 1 and _is_of_dump(lane[0]) for lane in pending.values()):
            # A list shows each object once: there is nothing to bring into an order.
            for key, (item,) in pending.items():
                self._passed[key] = max(item.revision, self._passed.get(key, 0))
                yield item.item
            return
        for item in chain.from_iterable(pending.values()):
            if item.time == _NOT_DATED:
                at = _get_time(item.item, self._latest, self._stamps)
                item.time = -1 if at is None else at
                item.is_claimed = bool(item.revision) and not item.is_exact and not self._is_stamped(item.observation)
        lanes = {key: _order(items) for key, items in pending.items()}
        _place_undated([one for lane in lanes.values() for one in lane if one.revision])
        if (skew := _measure_skew(lanes.values())) > max(self.skew, _JITTER):
            self.skew = skew
            yield ClockSkew(skew, is_within=len(self._inputs) == 1)
        streams: dict[_Key, list[_DatedItem]] = {}
        for key, lane in lanes.items():
            is_dump = all(map(_is_of_dump, lane))
            end = len(lane) if is_dump else -(-len(lane) // parts)
            self._passed[key] = max([one.revision for one in lane[:end]] + [self._passed.get(key, 0)])
            if lane[end:]:
                self._pending[key] = lane[end:]
                self._number += len(lane) - end
            if is_dump:
                yield from (one.item for one in lane)
            else:
                streams[key] = lane[:end]
        # Ties are broken by resourceVersion and name, so the order of the input does not matter.
        for item in heapq.merge(*(streams[key] for key in sorted(streams)), key=_place):
            yield item.item

    def _is_stamped(self, seen: Observation) -> bool:
        return seen.latest_stamp is not None or self._stamps.date(seen) is not None

    def _clear(self) -> None:
        """Replace each deletion of many objects in a namespace by a deletion of each object."""
        for item in self._clearings:
            assert item.clearing is not None
            known = {key[2]: "" for key in {*self._pending, *self._passed} if key[:2] == (item.kind, item.namespace)}
            chosen = dict(item.clearing.names)
            if item.clearing.is_whole:
                chosen = known
            elif not item.clearing.is_shown:
                chosen = {name: uid for name, uid in chosen.items() if name in known}
            for name, uid in chosen.items():
                deletion = replace(item, act=Act.DELETED, name=name, uid=uid, clearing=None)
                self._pending.setdefault((item.kind, item.namespace, name), []).append(self._describe(deletion))
        self._clearings.clear()


def _is_of_dump(seen: _DatedItem) -> bool:
    return isinstance(seen.item, Observation) and seen.item.input_kind is InputKind.DUMP


def _merge_by_time(inputs: Sequence[Input], latest: int, stamps: StampReader) -> Iterator[Item]:
    """Yield every item of all inputs, as ordered as each input is; none is opened before its time has come."""
    if len(inputs) == 1:
        yield from inputs[0].read()
        return
    numbers = count()
    waiting = [(_find_first_time(one, latest, stamps), next(numbers), one) for one in inputs]
    heapq.heapify(waiting)
    ready: list[tuple[int, int, Item, Iterator[Item]]] = []

    def take_next(rest: Iterator[Item], before: int) -> None:
        item = next(rest, None)
        if item is not None:
            at = _get_time(item, latest, stamps)
            heapq.heappush(ready, (before if at is None else at, next(numbers), item, rest))

    while waiting or ready:
        while waiting and len(ready) < MAX_OPEN and (not ready or waiting[0][0] <= ready[0][0]):
            take_next(heapq.heappop(waiting)[2].read(), 0)
        if ready:
            before, _, item, rest = heapq.heappop(ready)
            yield item
            take_next(rest, before)


def _find_first_time(source: Input, latest: int, stamps: StampReader) -> int:
    """Return when an input begins; 0 if that cannot be known, or not without losing what is read."""
    if source.path == STANDARD_INPUT:
        return 0
    times = (_get_time(item, latest, stamps) for item in islice(source.read(), _MAX_PEEKED))
    return next((at for at in times if at is not None), 0)


def _get_time(item: Item, latest: int, stamps: StampReader) -> int | None:
    at = (
        item.at
        if isinstance(item, LogEnd | FenceReport | PodDeletion | PodRequest | RelatedWrite | Observation)
        else None
    )
    if at is None and isinstance(item, Observation):
        seen = date_by_itself(item, stamps)
        at = None if seen is None else seen + AFTER_LOG
    return None if at is None or at > latest else at


def _order(items: Sequence[_DatedItem]) -> list[_DatedItem]:
    """Return what was seen of one object, in order, each write once."""
    if len(items) == 1:
        return list(items)
    groups: dict[tuple[int, bool], list[_DatedItem]] = {}
    others: dict[object, _DatedItem] = {}
    for item in items:
        if item.revision:
            groups.setdefault((item.revision, item.is_deletion), []).append(item)
        else:
            others.setdefault(_identify(item.item), item)
    states = []
    for _, group in sorted(groups.items(), key=lambda pair: pair[0]):
        first, *repeated = _join(group)
        states.append(first)
        others.update((_identify(one.item), one) for one in repeated)
    _date(states)
    rest = sorted(others.values(), key=_time)
    rest = _join_requests(states, rest)
    chain, rest = _chain(states, rest)
    merged = list(heapq.merge(chain, rest, key=_time))
    if any(map(_is_hidden_write, rest)):
        merged = _mark_unsure_order(_place_late_writes(merged))
    placed = _place_early_deletions(_place_late_deletions(_place_early_creations(merged)))
    return _note_outcomes(_mark_absences(_resolve_contradictions(placed)))


def _note_outcomes(items: list[_DatedItem]) -> list[_DatedItem]:
    """Note of each write that failed whether it was stored all the same, and of the state that it made who wrote it."""
    order = [one.item for one in items if isinstance(one.item, Observation)]
    noted: dict[int, Observation] = {}
    for request, was_stored, state in find_outcomes(order):
        noted[id(request)] = replace(request, was_stored=was_stored)
        if state is not None:
            noted[id(state)] = replace(state, writer=request.writer)
    for item in items if noted else ():
        item.item = noted.get(id(item.item), item.item)
    return items


def _identify(item: Observation | FenceReport) -> object:
    """Return what is equal for two records of one thing, wherever they stand."""
    if isinstance(item, FenceReport):
        return (item.at, item.fence, item.writer, item.target, item.is_refused)
    code = item.answer.code if item.answer else 0
    if item.at is None:
        return id(item) if item.object is None else (item.input_kind, item.act, msgspec.json.encode(item.object))
    return (item.input_kind, item.act, item.at, item.verb, item.writer, code, item.is_dry_run)


def _join(group: Sequence[_DatedItem]) -> list[_DatedItem]:
    """Return one write with what all inputs know of it, then the requests that changed nothing after it."""
    logged = sorted((one for one in group if one.is_exact), key=_time)
    # A change says more than a state, and a watch more than a dump.
    shown = min(
        (one for one in group if not one.is_exact),
        key=lambda one: (one.observation.act is Act.STORED, one.observation.input_kind is InputKind.DUMP),
        default=None,
    )
    if not logged:
        assert shown is not None
        return [shown]
    requests = list({_identify(one.item): one for one in logged}.values())
    maker = _find_maker(requests)
    rest = [one for one in requests if one is not maker]
    for item in rest:
        item.revision = 0
    if any(_may_be_the_maker(one, maker) for one in rest):
        maker.item = replace(maker.observation, writer=None)
    return [maker if shown is None else maker.join_with(shown), *rest]


def _find_maker(requests: Sequence[_DatedItem]) -> _DatedItem:
    """Return which request, of those that were answered with one state, made it: one that replaced another state.

    A request that changes nothing is answered with the state as it is. Without such a request it is the first one.
    """
    return next((one for one in requests if _is_change(one)), requests[0])


def _is_change(seen: _DatedItem) -> bool:
    """Return whether a request is known to have made the state that it was answered with."""
    replaced = parse_number(seen.observation.replaces)
    return 0 < replaced < seen.revision or seen.observation.act in {Act.CREATED, Act.DELETED}


def _may_be_the_maker(other: _DatedItem, maker: _DatedItem) -> bool:
    """Return whether a state may as well be that of another writer's request, which came before it was answered."""
    if _is_change(maker) or other.observation.act is Act.READ or other.observation.writer == maker.observation.writer:
        return False
    took = other.observation.took
    return not other.observation.replaces and other.time - took <= maker.time


def _date(states: Sequence[_DatedItem]) -> None:
    """Make times follow the order of what is stored: an estimate is neither before nor after what is exact."""
    latest = -1
    for state in states:
        if state.is_exact:
            latest = max(latest, state.time)
        else:
            state.time = max(state.time, latest)
    for before, after in zip(reversed(states[:-1]), reversed(states[1:]), strict=True):
        before.time = min(before.time, after.time) if after.time >= 0 else before.time


def _join_requests(states: list[_DatedItem], rest: Sequence[_DatedItem]) -> list[_DatedItem]:
    """Join requests of a log with the states of a watch that they made, where only one writer can be meant.

    A write of a log without objects has a time and a writer but no order, and so has a deletion.
    """
    used: set[int] = set()
    # By the number of a state: the request that made it, and the state as the watch shows it.
    makers: dict[int, tuple[_DatedItem, _DatedItem]] = {}
    deletions = [one for one in rest if one.is_deletion and one.is_stored_write]
    writes = sorted(filter(_is_exact_write, rest), key=_get_time_of_answer)
    longest = max((one.observation.took for one in writes), default=0)
    successors, patches = _group_by_replaced(writes), _group_patches(writes)
    for number, state in enumerate(states):
        if state.is_exact:
            continue
        stamp = state.observation.latest_stamp
        if state.is_deletion:
            fitting = _find_deletions([one for one in deletions if id(one) not in used], states, number)
        else:
            replaced = _find_replaced(states, number)
            near = successors.get(replaced, ()) if stamp is None else _find_writes_near(writes, stamp, longest)
            fitting = [one for one in near if id(one) not in used and _may_have_made(one.observation, states, number)]
            fitting = _select_makers(fitting, states, number)
            fitting = fitting or [
                *(_find_patches(patches, used, states, number) if stamp is None else ()),
                *_find_only_patch(writes, used, states, number),
            ]
        if fitting and len({one.observation.writer for one in fitting}) == 1:
            # An update that changed nothing found the same state, and came first; a patch that did came last.
            is_first = state.is_deletion or stamp is not None or fitting[0].observation.patched_renew_time
            maker = fitting[0] if is_first else fitting[-1]
            used.add(id(maker))
            makers[number] = maker, state
            states[number] = maker.join_with(state)
    for is_before in (False, True):
        used -= {id(one) for one in _drop_displaced_patches(makers, states, is_before=is_before)}
    if RENEW_TIME in _list_rewritten_fields(states):
        used -= {id(one) for one in _unjoin_patches(makers, states)}
    others = [one for one in rest if id(one) not in used]
    if HOLDER_IDENTITY in _list_rewritten_fields(states):
        for seen in others:
            _forget_what_was_sent(seen)
    return others


def _select_makers(fitting: list[_DatedItem], states: Sequence[_DatedItem], number: int) -> list[_DatedItem]:
    """Return those of the requests that fit a state which show best that they made it."""
    if number and states[number - 1].is_deletion:
        return [one for one in fitting if one.is_creation] or fitting
    # An update that names the state before has made this one: a patch names none.
    return [one for one in fitting if _is_update_of(one.observation, states, number)] or fitting


def _list_rewritten_fields(states: Sequence[_DatedItem]) -> set[str]:
    """Return the fields of which a log shows that writes were stored with other values than they asked for."""
    return {one.field for state in states if state.is_stored_write for one in state.observation.rewritings}


def _unjoin_patches(makers: dict[int, tuple[_DatedItem, _DatedItem]], states: list[_DatedItem]) -> Iterator[_DatedItem]:
    """Yield the patches that were joined by the renewTime that they asked for, and unjoin them."""
    for number, (maker, shown) in makers.items():
        if maker.observation.patched_renew_time:
            states[number] = shown
            yield maker


def _is_exact_write(seen: _DatedItem) -> bool:
    """Return whether a log shows that something was created or updated."""
    if not (seen.is_stored_write and seen.is_exact):
        return False
    return seen.observation.act in _WRITES and not seen.observation.problem


def _find_deletions(deletions: Sequence[_DatedItem], states: Sequence[_DatedItem], number: int) -> Sequence[_DatedItem]:
    """Return the deletions that may be the one of a state: by the times of the states before and after it.

    Whoever writes managedFields dates what it writes as it likes. By exact times alone only one may be meant.
    """
    before = states[number - 1].time if number else -1
    after = states[number + 1].time if number + 1 < len(states) else None
    if fitting := [one for one in deletions if _is_between(before, one.time, after)]:
        return fitting
    before = _find_exact_time(states, range(number - 1, -1, -1), -1)
    after = _find_exact_time(states, range(number + 1, len(states)), None)
    fitting = [one for one in deletions if _is_between(before, one.time, after)]
    return fitting if len(fitting) == 1 else ()


def _find_exact_time(states: Sequence[_DatedItem], numbers: Iterable[int], default: _Default) -> int | _Default:
    """Return the time of the first of these states that is exact."""
    return next((states[one].time for one in numbers if states[one].is_exact), default)


def _is_between(before: int, at: int, after: int | None) -> bool:
    return before - _TOLERANCE <= at and (after is None or at <= after + _TOLERANCE)


def _group_by_replaced(writes: Sequence[_DatedItem]) -> dict[int, list[_DatedItem]]:
    """Return the writes by the revision that they replaced, 0 for creations, and where a log does not show it."""
    groups: dict[int, list[_DatedItem]] = {}
    for write in writes:
        groups.setdefault(parse_number(write.observation.replaces), []).append(write)
    return groups


def _group_patches(writes: Sequence[_DatedItem]) -> dict[int | str | None, list[_DatedItem]]:
    """Return the patches of which a log shows the renewTime that they asked for, by that."""
    groups: dict[int | str | None, list[_DatedItem]] = {}
    for patch in writes:
        if asked := normalize(patch.observation.patched_renew_time):
            groups.setdefault(asked, []).append(patch)
    return groups


def _get_renew_time(seen: _DatedItem) -> int | str | None:
    """Return the renewTime of a state so that equal ones are equal, None if it has none."""
    shown = seen.observation.object
    return normalize(shown.spec.renew_time) if isinstance(shown, Lease) else None


def _find_replaced(states: Sequence[_DatedItem], number: int) -> int:
    """Return the revision that a state replaced, as far as is known: 0 if there was none, or if it was not seen."""
    return states[number - 1].revision if number and not states[number - 1].is_deletion else 0


def _find_writes_near(writes: Sequence[_DatedItem], stamp: int, longest: int) -> Sequence[_DatedItem]:
    """Return the writes whose times allow that they made a state with this stamp; none took more than `longest`.

    A state is compared with these alone: each with each would take minutes for an hour of renewals.
    """
    begin = bisect_left(writes, stamp, key=_get_time_of_answer)
    end = bisect_left(writes, stamp + SECOND + longest, key=_get_time_of_answer)
    return writes[begin:end]


def _get_time_of_answer(seen: _DatedItem) -> int:
    at = seen.observation.at
    assert at is not None
    return at


def _forget_what_was_sent(seen: _DatedItem) -> None:
    """Discard the content of a write but keep the fact that it happened.

    Where holders are rewritten, the request differs from what was stored.
    """
    if isinstance(seen.item, Observation) and _is_as_sent(seen.item):
        seen.item = replace(seen.item, object=None)


def _may_have_made(request: Observation, states: Sequence[_DatedItem], number: int) -> bool:
    """Return whether a write, which a log dates, may have made a state that is none of a deletion."""
    state = states[number].observation
    if request.patched_renew_time:
        return _may_have_patched(request, states, number)
    is_successor = _has_replaced(request, states, number)
    if request.asked is not None and request.replaces and not is_successor:
        return False
    if request.object is not None and not (_is_as_sent(request) and is_successor):
        return False
    if is_successor and number and _may_change_nothing(request, states[number - 1].observation):
        return False
    if request.verb == "patch" and number and not _is_stamped_later(state, states[number - 1].observation):
        # A patch that removes fields may leave nothing that it owns, and so no stamp of its own.
        return is_successor
    if state.latest_stamp is None:
        # kubectl shows no managedFields unless it is asked to.
        return is_successor and _may_have_sent(request, state)
    return _is_in_request(request, state.latest_stamp)


def _is_stamped_later(state: Observation, before: Observation) -> bool:
    """Return whether a state has a later stamp than the one before it, if both have any."""
    return state.latest_stamp is None or before.latest_stamp is None or state.latest_stamp > before.latest_stamp


def _may_change_nothing(request: Observation, before: Observation) -> bool:
    """Return whether a write asked for the state before it, as it is or as a webhook changes it.

    It does if it asked for what made that state, or if the webhook cuts fractions of seconds.
    """
    asked = request.object if request.asked is None else request.asked
    if not isinstance(asked, Lease) or not isinstance(before.object, Lease):
        return False
    sent, known = asked.spec, before.object.spec
    if isinstance(before.asked, Lease) and before.asked.spec == sent:
        return True
    renewed, cut = get_readable_instant(normalize(sent.renew_time)), get_readable_instant(normalize(known.renew_time))
    if renewed is None or cut not in {renewed, renewed // SECOND * SECOND}:
        return False
    return replace(sent, renew_time=known.renew_time, acquire_time=known.acquire_time) == known


def _may_have_patched(request: Observation, states: Sequence[_DatedItem], number: int) -> bool:
    """Return whether a patch that asked for the renewTime of a state may have made it."""
    state = states[number]
    if normalize(request.patched_renew_time) != _get_renew_time(state) or not _is_renewal(states, number):
        return False
    stamp = state.observation.latest_stamp
    return stamp is None or _is_in_request(request, stamp)


def _is_renewal(states: Sequence[_DatedItem], number: int) -> bool:
    """Return whether a state has another renewTime than the one before: else any write may have left it as it was."""
    return number == 0 or _get_renew_time(states[number]) != _get_renew_time(states[number - 1])


def _find_only_patch(
    writes: Sequence[_DatedItem], used: Collection[int], states: Sequence[_DatedItem], number: int
) -> Sequence[_DatedItem]:
    """Return the patch that made a state which left renewTime as it was, if the log has only one at that time.

    `writes` are in the order of their answers; those whose id is in `used` made other states.
    """
    if _is_renewal(states, number):
        return ()
    before = _find_exact_time(states, range(number - 1, -1, -1), -1)
    after = _find_exact_time(states, range(number + 1, len(states)), None)
    begin = bisect_left(writes, before - _TOLERANCE, key=_get_time_of_answer)
    end = len(writes) if after is None else bisect_left(writes, after + _TOLERANCE, key=_get_time_of_answer)
    some = writes[begin : min(end, begin + _MAX_NEAR)]
    near = [one for one in some if one.observation.verb == "patch" and id(one) not in used]
    stamp = states[number].observation.latest_stamp
    if end - begin > _MAX_NEAR or len(near) != 1 or (stamp is not None and near[0].time < stamp):
        return ()
    asked = normalize(near[0].observation.patched_renew_time)
    return near if asked is not None and asked == _get_renew_time(states[number]) else ()


def _find_patches(
    patches: Mapping[int | str | None, Sequence[_DatedItem]],
    used: Collection[int],
    states: Sequence[_DatedItem],
    number: int,
) -> Sequence[_DatedItem]:
    """Return the patches that may have made a renewal without a stamp: those that asked for its renewTime."""
    if not _is_renewal(states, number):
        return []
    asking = [one for one in patches.get(_get_renew_time(states[number]), ()) if id(one) not in used]
    before = _find_exact_time(states, range(number - 1, -1, -1), -1)
    return [one for one in asking if one.time >= before - _JITTER] or asking


def _drop_displaced_patches(
    makers: dict[int, tuple[_DatedItem, _DatedItem]], states: list[_DatedItem], *, is_before: bool
) -> Iterator[_DatedItem]:
    """Yield the patches that came after the state that follows, or before the one before (`is_before`); unjoin those.

    Anyone may patch a lease with the renewTime that it has, which changes nothing.
    """
    for number, (maker, shown) in makers.items():
        if not maker.observation.patched_renew_time:
            continue
        near = range(number - 1, -1, -1) if is_before else range(number + 1, len(states))
        other = _find_exact_time(states, near, maker.time)
        if maker.time < other - _TOLERANCE if is_before else other < maker.time - _TOLERANCE:
            states[number] = shown
            yield maker


def _is_in_request(request: Observation, stamp: int) -> bool:
    """Return whether an API server that had a request may have stamped so: stamps are whole seconds."""
    assert request.at is not None
    return (request.at - request.took) // SECOND * SECOND <= stamp <= request.at


def _may_have_sent(request: Observation, state: Observation) -> bool:
    """Return whether a write sent the renewTime of a state, or may have: a log does not show what a webhook changed."""
    if request.object is None:
        return True
    sent = request.object.spec.renew_time
    return sent is not None and state.object is not None and sent == state.object.spec.renew_time


def _has_replaced(request: Observation, states: Sequence[_DatedItem], number: int) -> bool:
    """Return whether a request replaced the state before this one: what is stored is replaced by one write only."""
    if request.act is Act.CREATED:
        state = states[number].observation
        created = stamp_of(state.object.metadata.creation_timestamp) if state.object else None
        is_first = number == 0 or states[number - 1].is_deletion
        if created is None or not is_first:
            return False
        return _is_in_request(request, created) if state.latest_stamp is None else created == state.latest_stamp
    return number > 0 and 0 < states[number - 1].revision == parse_number(request.replaces)


def _is_update_of(request: Observation, states: Sequence[_DatedItem], number: int) -> bool:
    """Return whether an update names the state before this one as the one that it replaced."""
    return request.act is not Act.CREATED and bool(request.replaces) and _has_replaced(request, states, number)


def _chain(states: Sequence[_DatedItem], rest: Sequence[_DatedItem]) -> tuple[list[_DatedItem], list[_DatedItem]]:
    """Return the states with the requests of which a log shows what state they found, and what has no such place."""
    places = [(one.revision, 0, 0, one) for one in states]
    without = []
    for number, state in enumerate(rest):
        unchanged = parse_number(state.observation.resource_version) if state.is_stored_write else 0
        replaced = parse_number(state.observation.replaces) if state.is_stored_write else 0
        if unchanged:
            # It made no state of its own, and was answered with the one that it found before another one replaced that.
            places.append((unchanged, 1, number, state))
        elif replaced:
            places.append((replaced, 2, number, state))
        else:
            without.append(state)
    return [one for *_, one in sorted(places, key=itemgetter(0, 1, 2))], without


def _place_late_writes(items: Sequence[_DatedItem]) -> list[_DatedItem]:
    """Place a write of which a log shows neither what it replaced nor what it made where it may have been stored.

    Clocks of API servers differ: between a state and the one that replaced it, as the request of that says, nothing was
    stored. Such a write came later, unless it changed nothing.
    """
    placed: list[_DatedItem] = []
    since = before = 0
    for item in items:
        if not item.is_stored_write or _is_hidden_write(item):
            placed.append(item)
            continue
        later: list[_DatedItem] = []
        if 0 < before == parse_number(item.observation.replaces):
            between = placed[since:]
            del placed[since:]
            for write in between:
                is_later = _is_hidden_write(write) and item.time <= write.time + _TOLERANCE
                (later if is_later else placed).append(write)
        placed.append(item)
        since, before = len(placed), item.revision or parse_number(item.observation.resource_version)
        placed += later
    return placed


def _mark_unsure_order(items: list[_DatedItem]) -> list[_DatedItem]:
    """Mark each update before which a write may have been stored that the clock of another API server places after it.

    A log without answers does not show that the state which an update replaced is the one before it.
    """
    hidden = deque(one.time for one in items if _is_hidden_write(one))
    before: _DatedItem | None = None
    for item in items:
        if not item.is_stored_write:
            continue
        if _is_hidden_write(item):
            hidden.popleft()
        elif hidden and hidden[0] <= item.time + _TOLERANCE and not _follows(item, before):
            item.item = replace(item.observation, is_order_unsure=True)
        before = item
    return items


def _follows(seen: _DatedItem, before: _DatedItem | None) -> bool:
    """Return whether a write is known to follow the one before: a watch shows each, or its request names that state."""
    item = seen.observation
    if item.act is not Act.UPDATED or item.is_watched or item.input_kind is not InputKind.AUDIT_LOG:
        return True
    known = before.revision or parse_number(before.observation.resource_version) if before else 0
    return 0 < known == parse_number(item.replaces)


def _is_hidden_write(seen: _DatedItem) -> bool:
    if not seen.is_stored_write or seen.revision or seen.is_deletion or seen.is_creation:
        return False
    return not (seen.observation.resource_version or seen.observation.replaces)


def _place_early_creations(items: list[_DatedItem]) -> list[_DatedItem]:
    """Place a creation of which a log does not show the state before the first writes to what it created."""
    for number, item in enumerate(items):
        if item.is_creation and not item.revision:
            place = _find_place_of_creation(items, number)
            items[place : number + 1] = [item, *items[place:number]]
    return items


def _find_place_of_creation(items: Sequence[_DatedItem], number: int) -> int:
    """Return the number of the first write to what a creation that stands at a number has created."""
    place, creation = number, items[number]
    later = (one.observation for one in items[number + 1 :] if one.is_stored_write)
    known = next((one.uid for one in later if one.uid), "")
    for earlier in range(number - 1, -1, -1):
        before = items[earlier]
        if not before.is_stored_write:
            continue
        uid = before.observation.uid
        is_near = before.time > creation.time - _TOLERANCE
        if before.is_deletion or before.is_creation or (known and uid and uid != known):
            return place
        if not (is_near or (known and uid == known)):
            return number  # it had existed for long: its deletion is not shown
        known, place = known or uid, earlier
    return place


def _place_late_deletions(items: list[_DatedItem]) -> list[_DatedItem]:
    """Place a deletion after the last writes of what it deleted, where clocks of API servers differ by as much.

    Then another object was created. A log does not say which state a deletion follows.
    """
    for number, item in enumerate(items):
        if item.is_deletion and not item.revision and item.observation.is_stored:
            place = _find_place_of_deletion(items, number)
            items[number : place + 1] = [*items[number + 1 : place + 1], item]
    return items


def _find_place_of_deletion(items: Sequence[_DatedItem], number: int) -> int:
    """Return the number of the last write before a deletion that stands at a number."""
    place, deletion = number, items[number]
    known = deletion.observation.uid
    for later in range(number + 1, len(items)):
        item = items[later].item
        if not isinstance(item, Observation) or not item.is_stored or item.act is Act.READ:
            continue
        known = known or item.uid
        if item.act is Act.DELETED or not item.uid:
            return number
        if item.act is Act.CREATED or item.uid != known:
            return place
        if items[later].time > deletion.time + _TOLERANCE:
            return number
        place = later
    return number


def _place_early_deletions(items: list[_DatedItem]) -> list[_DatedItem]:
    """Place a deletion that names what it deleted before the first writes of the object that was created after it."""
    for number, item in enumerate(items):
        if item.is_deletion and not item.revision and item.observation.is_stored and item.observation.uid:
            place = _find_first_write_of_another(items, number)
            items[place : number + 1] = [item, *items[place:number]]
    return items


def _find_first_write_of_another(items: Sequence[_DatedItem], number: int) -> int:
    """Return the number of the first write, just before a deletion at a number, to another object than it deleted."""
    place, deletion = number, items[number]
    for earlier in range(number - 1, -1, -1):
        before = items[earlier]
        if not before.is_stored_write:
            continue
        is_near = before.time > deletion.time - _TOLERANCE
        if not (is_near and before.observation.uid and before.observation.uid != deletion.observation.uid):
            return place
        place = earlier
    return place


def _resolve_contradictions(items: list[_DatedItem]) -> list[_DatedItem]:
    """Treat a deletion as a dry run if the same object was updated afterwards: nothing was deleted.

    If a log does not show whether it was one, it is enough that the object was read.
    """
    uid, is_updated, read_at = "", False, -1
    for dated in reversed(items):
        item = dated.item
        if not isinstance(item, Observation) or not item.is_stored:
            continue
        if item.verb in LISTINGS:
            continue
        if item.act is Act.READ:
            read_at = max(read_at, dated.time - item.took)
            continue
        if item.act is Act.CREATED:
            read_at = -1
        if item.act is Act.DELETED and not item.is_sure and read_at > dated.time + _TOLERANCE:
            dated.item = replace(item, is_dry_run=True)
            continue
        if item.act is not Act.DELETED:
            answer = item.answer or Answer(0)
            uid, is_updated = item.uid, item.act is Act.UPDATED and answer.code == 200
        elif not dated.revision and (is_updated if not item.uid or not uid else item.uid == uid):
            dated.item = replace(item, is_dry_run=True)
        else:
            uid, is_updated = "", False
    return items


def _mark_absences(items: list[_DatedItem]) -> list[_DatedItem]:
    """Mark requests that did not find the object, unless something shows that it was there until it was created.

    Clocks of API servers differ, and a read may be answered from what one of them knew before.
    """
    is_there = False
    for dated in reversed(items):
        item = dated.item
        if not isinstance(item, Observation) or item.verb in LISTINGS:
            continue
        if item.is_stored:
            is_there = item.act is not Act.CREATED
        elif item.has_not_found and not is_there:
            dated.item = replace(item, is_of_none=True)
    return items


def _measure_skew(lanes: Iterable[Sequence[_DatedItem]]) -> int:
    """Return what clocks differ by, at least: no earlier write is received after a later one was answered."""
    writes = []
    for lane in lanes:
        before = None
        for item in lane:
            if not item.revision:
                continue
            # A request that changes nothing is answered with an old resourceVersion.
            if item.is_exact and before is not None and _is_renewal_after(before, item):
                writes.append((item.revision, item.time - item.observation.took, item.time))
            before = item
    skew = latest = 0
    for _, received, answered in sorted(writes):
        skew = max(skew, latest - answered)
        latest = max(latest, received)
    return skew


def _is_renewal_after(before: _DatedItem, after: _DatedItem) -> bool:
    known, shown = before.observation.object, after.observation.object
    return isinstance(shown, Lease) and known is not None and known.spec.renew_time != shown.spec.renew_time


def _place_undated(states: Sequence[_DatedItem]) -> None:
    """Place what no API server dates by its resourceVersion, among what they date, in whatever object.

    The clocks of writers may be hours off, and an undated deletion counts from everything that came before it: what a
    client claims of its own lease must not move that of another one. A state comes among those of its watch, as
    resourceVersions of several clusters do not compare.
    """
    undated = [one for one in states if one.is_undated]
    if not undated:
        return
    ordered = sorted(states, key=_revision)
    by_watch: dict[str, list[_DatedItem]] = {}
    for item in ordered:
        if not item.is_undated:
            by_watch.setdefault(item.observation.place.path, []).append(item)
    for path, dated in by_watch.items():
        _move_between(dated, [one for one in undated if one.observation.place.path == path and not one.is_deletion])
    deletions = [one for one in undated if one.is_deletion]
    dated = [one for one in ordered if not one.is_undated]
    _move_between(dated or [one for one in ordered if not one.is_deletion], deletions)


def _move_between(dated: Sequence[_DatedItem], undated: Sequence[_DatedItem]) -> None:
    """Move each that is undated after all that are dated and came before it, and no further than before the others."""
    revisions = [one.revision for one in dated]
    latest = list(accumulate((one.time for one in dated), max))
    earliest = list(accumulate((one.time for one in reversed(dated)), min))
    for item in undated:
        before = bisect_left(revisions, item.revision)
        later = len(dated) - bisect_right(revisions, item.revision)
        item.time = max(item.time, latest[before - 1]) if before else item.time
        item.time = min(item.time, earliest[later - 1]) if later else item.time
