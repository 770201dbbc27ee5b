"""Since when processes read a lease again and again."""

import pytest

from webhook.analysis.history.audit_log.read_runs import MAX_APART, MIN_READS, ReadRun, ReadRuns
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer

POD = Writer("system:serviceaccount:shop:db", "db-0", uid="uid-db-0")


def note_reads(*times: int, who: Writer = POD) -> ReadRuns:
    found = ReadRuns()
    for at in times:
        found.note_read(who, at)
    return found


def test_reads_that_follow_each_other_are_a_run() -> None:
    assert note_reads(1, 2, 3, 4, 5).find(POD) == ReadRun(1, 5, 5)


def test_an_answer_that_comes_late_does_not_end_a_run_earlier() -> None:
    assert note_reads(1, 2, 4, 3, 3).find(POD) == ReadRun(1, 4, 5)


def test_who_reads_a_few_times_need_not_ask_for_it() -> None:
    assert note_reads(*range(MIN_READS - 1)).find(POD) is None
    assert note_reads(*range(MIN_READS)).find(Writer(POD.user, "db-1", uid="uid-db-1")) is None


@pytest.mark.parametrize(("apart", "first"), [(MAX_APART, 0), (MAX_APART + 1, 5 + MAX_APART)])
def test_reads_that_lie_apart_begin_another_run(apart: int, first: int) -> None:
    later = 4 + apart
    found = note_reads(0, 1, 2, 3, 4, *range(later, later + 5)).find(POD)
    assert found is not None
    assert found.first == first


def test_of_many_processes_the_first_ones_are_known() -> None:
    found = ReadRuns()
    for number in range(MAX_LISTED + 1):
        found.note_read(Writer("a", f"db-{number}"), 1)
    assert len(found.runs) == MAX_LISTED
