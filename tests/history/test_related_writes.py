"""Writes to what leaders depend on: which deletions were surely no dry run, by what a log shows of the object later."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from webhook.analysis.history.audit_log.absences import Absences
from webhook.analysis.history.audit_log.related_writes import RelatedWrites
from webhook.analysis.inputs.items import ObjectAbsence, RelatedWrite, Writer

DELETED = RelatedWrite(
    at=10, kind="Node", namespace="", name="n1", verb="deleted", writer=Writer("alice"), is_surely_not_dry_run=False
)
CREATED = replace(DELETED, at=20, verb="created", is_surely_not_dry_run=True)
ABSENT = ObjectAbsence(20, "Node", "", "n1")


def find_sure(*writes: RelatedWrite, absent: ObjectAbsence | None = None, skew: int = 0) -> Sequence[int]:
    """Return the times of deletions that were surely no dry runs."""
    known, absences = RelatedWrites(), Absences()
    for write in writes:
        known.add(write)
    if absent is not None:
        absences.add(absent)
    listed = known.list_confirmed(absences, skew)
    return [one.at for one in listed if one.verb == "deleted" and one.is_surely_not_dry_run]


def test_a_deletion_may_have_been_a_dry_run() -> None:
    assert not find_sure(DELETED)


def test_a_deletion_whose_options_a_copy_of_the_log_shows_was_none() -> None:
    assert find_sure(DELETED, replace(DELETED, is_surely_not_dry_run=True)) == [10]


@pytest.mark.parametrize(
    "absent",
    [
        pytest.param(replace(ABSENT, at=9), id="before it"),
        pytest.param(replace(ABSENT, name="n2"), id="another object"),
        pytest.param(replace(ABSENT, kind="Pod"), id="another kind"),
    ],
)
def test_that_an_object_was_gone_afterwards_shows_that_it_was_deleted(absent: ObjectAbsence) -> None:
    assert find_sure(DELETED, absent=ABSENT) == [10]
    assert not find_sure(DELETED, absent=absent)


@pytest.mark.parametrize(
    "created",
    [
        pytest.param(replace(CREATED, at=9), id="before it"),
        pytest.param(replace(CREATED, name="n2"), id="another object"),
        pytest.param(replace(CREATED, kind="Role"), id="another kind"),
        pytest.param(replace(CREATED, namespace="shop"), id="another namespace"),
        pytest.param(replace(CREATED, is_surely_not_dry_run=False), id="which may be a dry run, too"),
    ],
)
def test_that_an_object_was_created_again_shows_that_it_was_deleted(created: RelatedWrite) -> None:
    assert find_sure(DELETED, CREATED) == [10]
    assert not find_sure(DELETED, created)


@pytest.mark.parametrize(("skew", "is_sure"), [(10, True), (11, False)], ids=["at most as much", "more"])
def test_by_clocks_that_differ_what_seems_later_may_be_earlier(skew: int, *, is_sure: bool) -> None:
    assert find_sure(DELETED, absent=ABSENT, skew=skew) == ([10] if is_sure else [])
    assert find_sure(DELETED, CREATED, skew=skew) == ([10] if is_sure else [])


def test_of_two_deletions_the_first_may_have_been_a_dry_run() -> None:
    assert find_sure(DELETED, replace(DELETED, at=15), CREATED) == [15]
    assert find_sure(DELETED, replace(DELETED, at=15), absent=ABSENT) == [15]


def test_a_later_deletion_says_nothing_of_the_one_before_the_object_was_created_again() -> None:
    assert find_sure(DELETED, CREATED, replace(DELETED, at=30)) == [10]


TAINTED = replace(DELETED, verb="updated", is_surely_not_dry_run=True, taints=("a:NoExecute",), change="as sent")


def list_changes(*writes: RelatedWrite, skew: int = 0) -> Sequence[str]:
    """Return what is said of the taints that writes set."""
    known = RelatedWrites()
    for write in writes:
        known.add(write)
    return [one.change for one in known.list_confirmed(Absences(), skew)]


@pytest.mark.parametrize(
    ("before", "skew", "change"),
    [
        (replace(TAINTED, at=5, taints=()), 0, "which set the taint a:NoExecute"),
        (replace(TAINTED, at=5), 0, ""),
        (replace(TAINTED, at=5, taints=None), 0, "as sent"),
        (replace(TAINTED, at=5, taints=()), 5, "as sent"),
        (replace(TAINTED, at=15, taints=()), 0, "as sent"),
        (replace(TAINTED, at=5, taints=(), name="n2"), 0, "as sent"),
        (replace(TAINTED, at=5, taints=(), kind="Role"), 0, "as sent"),
    ],
    ids=["not there", "there", "not known", "clocks differ", "after it", "another node", "another kind"],
)
def test_a_taint_was_set_if_it_was_not_there_before(before: RelatedWrite, skew: int, change: str) -> None:
    assert list_changes(before, TAINTED, skew=skew)[-1] == change


def test_a_new_node_has_not_lost_the_taints_of_the_one_before() -> None:
    created = replace(CREATED, taints=(), change="")
    assert list_changes(TAINTED, created) == ["as sent", ""]


def test_a_copy_of_the_log_may_show_the_taints() -> None:
    before = replace(TAINTED, at=5, taints=())
    assert list_changes(before, replace(TAINTED, taints=None), TAINTED)[-1] == "which set the taint a:NoExecute"
    assert list_changes(before, TAINTED, replace(TAINTED, taints=None))[-1] == "which set the taint a:NoExecute"
