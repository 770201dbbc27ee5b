"""When objects were known to be gone, of very many objects and times."""

from webhook.analysis.history.audit_log.absences import MAX_OBJECTS, Absences
from webhook.analysis.inputs.items import ObjectAbsence


def test_a_time_that_two_logs_show_is_kept_once_and_times_are_in_order() -> None:
    known = Absences()
    for at in (2, 1, 2):
        known.add(ObjectAbsence(at, "Pod", "shop", "db-0"))
    assert known.list_times("Pod", "shop", "db-0") == [1, 2]
    assert not known.list_times("Node", "", "db-0")


def test_of_very_many_objects_that_which_was_gone_longest_ago_is_forgotten() -> None:
    known = Absences()
    for number in range(MAX_OBJECTS + 1):
        known.add(ObjectAbsence(number, "Pod", "shop", f"db-{number}"))
    assert not known.list_times("Pod", "shop", "db-0")
    assert known.list_times("Pod", "shop", "db-1") == [1]
    assert known.list_times("Pod", "shop", f"db-{MAX_OBJECTS}") == [MAX_OBJECTS]
