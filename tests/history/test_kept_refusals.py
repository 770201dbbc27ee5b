from collections.abc import Iterable

from webhook.analysis.history.audit_log.kept_refusals import MAX_FIRST, MAX_REFUSALS, KeptRefusals
from webhook.analysis.history.audit_log.refusal import Refusal, RefusedBy, RequestKind
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import MINUTE, SECOND

DB = Writer("system:serviceaccount:shop:db", "db-0", uid="0")
FORBIDDEN = 'leases.coordination.k8s.io "db" is forbidden: User "x" cannot get resource "leases"'


def refuse(who: Writer, at: int, request: RequestKind = RequestKind.READ, code: int = 403) -> Refusal:
    return Refusal(at=at, code=code, message=FORBIDDEN, took=0, writer=who, request=request)


def keep(refusals: Iterable[Refusal]) -> KeptRefusals:
    kept = KeptRefusals()
    for one in refusals:
        kept.append(one)
    return kept


def flood(start: int, who: Writer, number: int = 2 * MAX_REFUSALS) -> list[Refusal]:
    return [refuse(who, start + one * SECOND) for one in range(number)]


def list_times(kept: KeptRefusals, who: Writer) -> list[int]:
    return sorted(one.at for one in kept if one.writer == who)


def test_the_first_ones_of_a_process_and_the_latest_of_all_are_kept() -> None:
    times = list_times(keep(flood(0, DB)), DB)
    assert times == [*range(0, MAX_FIRST * SECOND, SECOND), *range(100 * SECOND, 200 * SECOND, SECOND)]


def test_what_others_ask_displaces_no_first_ones() -> None:
    other = Writer(DB.user, "db-1", uid="1")
    kept = keep([refuse(DB, 0), refuse(DB, SECOND), *flood(2 * SECOND, other)])
    assert list_times(kept, DB) == [0, SECOND]
    assert not kept.has_forgotten_between(0, MINUTE * 9, DB)
    assert kept.has_forgotten_between(0, MINUTE * 9, other)


def test_it_is_known_when_those_came_that_are_not_kept() -> None:
    kept = keep(flood(0, DB))
    assert not kept.has_forgotten_between(-MINUTE, (MAX_FIRST - 1) * SECOND, DB)
    assert kept.has_forgotten_between(-MINUTE, MAX_FIRST * SECOND, DB)
    assert kept.has_forgotten_between(98 * SECOND, MINUTE * 9)
    assert not kept.has_forgotten_between(99 * SECOND, MINUTE * 9)


def test_those_of_users_without_a_name_may_be_of_any_process() -> None:
    assert keep(flood(0, Writer())).has_forgotten_between(0, MINUTE, DB)


def test_what_comes_after_a_rest_has_first_ones_of_its_own() -> None:
    later = MINUTE * 60
    kept = keep([*flood(0, DB), *flood(later, DB)])
    assert set(range(later, later + MAX_FIRST * SECOND, SECOND)) <= set(list_times(kept, DB))
    assert 0 in list_times(kept, DB)


def test_of_very_many_runs_the_first_ones_of_the_latest_are_kept() -> None:
    runs = [flood(MINUTE * 60 * one, DB) for one in range(4)]
    kept = keep(one for run in runs for one in run)
    starts = [run[0].at in list_times(kept, DB) for run in runs]
    assert starts == [False, False, True, True]
    assert kept.has_forgotten_between(-MINUTE, 0, DB)


def test_reads_that_are_not_kept_are_counted_by_what_refused_them() -> None:
    kept = keep([*flood(0, DB), refuse(DB, 500 * SECOND, RequestKind.UPDATE), *flood(501 * SECOND, DB, 101)])
    number = sum(1 for one in kept if one.is_read)
    assert number + (kept.count_forgotten_reads(DB, RefusedBy.RIGHTS) or 0) == 301
    assert kept.count_forgotten_reads(DB, RefusedBy.WEBHOOK) == 0
    assert kept.count_forgotten_reads(Writer("alice"), RefusedBy.RIGHTS) == 0


def test_of_more_processes_than_are_told_apart_nothing_is_counted() -> None:
    crowd = [Writer(DB.user, f"db-{one}", uid=str(one)) for one in range(MAX_LISTED + MAX_REFUSALS + 1)]
    kept = keep(refuse(who, one * SECOND) for one, who in enumerate([*crowd, *crowd]))
    assert kept.count_forgotten_reads(DB, RefusedBy.RIGHTS) is None
    assert kept.has_forgotten_between(0, MINUTE * 60, Writer("alice"))
    assert len(list(kept)) <= MAX_REFUSALS + MAX_LISTED * MAX_FIRST
