"""Since when processes read a lease again and again."""

import pytest

from webhook.analysis.history.audit_log.read_runs import MAX_APART, MIN_READS, ReadRun, ReadRuns
from webhook.analysis.history.sight.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer

POD = Writer("system:serviceaccount:shop:db", "db-0", uid="uid-db-0")


def hear(*times: int, who: Writer = POD) -> ReadRuns:
    found = ReadRuns()
    for at in times:
        found.hear(who, at)
    return found


def test_reads_that_follow_each_other_are_a_run() -> None:
    assert hear(1, 2, 3, 4, 5).find(POD) == ReadRun(1, 5, 5)


def test_an_answer_that_comes_late_does_not_end_a_run_earlier() -> None:
    assert hear(1, 2, 4, 3, 3).find(POD) == ReadRun(1, 4, 5)


def test_who_reads_a_few_times_need_not_ask_for_it() -> None:
    assert hear(*range(MIN_READS - 1)).find(POD) is None
    assert hear(*range(MIN_READS)).find(Writer(POD.user, "db-1", uid="uid-db-1")) is None


@pytest.mark.parametrize(("apart", "first"), [(MAX_APART, 0), (MAX_APART + 1, 5 + MAX_APART)])
def test_reads_that_lie_apart_begin_another_run(apart: int, first: int) -> None:
    later = 4 + apart
    found = hear(0, 1, 2, 3, 4, *range(later, later + 5)).find(POD)
    assert found is not None
    assert found.first == first


def test_of_many_processes_the_first_ones_are_known() -> None:
    found = ReadRuns()
    for number in range(MAX_LISTED + 1):
        found.hear(Writer("a", f"db-{number}"), 1)
    assert len(found.runs) == MAX_LISTED
