"""The search chooses lanes and events; the worst come first."""

from tests.page.conftest import Open
from tests.page.opened import Opened
from tests.timeline.election_samples import sample_timeline
from webhook.timeline.model import MarkKind


def filled(page: Opened, field: str, text: str) -> None:
    page.page.fill(field, text)
    page.settle()


def test_each_word_may_name_a_lease_a_holder_or_a_writer(opened: Open) -> None:
    timeline = sample_timeline(50)
    page = opened(timeline)
    filled(page, "#search", "payments/")
    assert page.shown("lane.namespace") == {"payments"}
    assert " 17 of 50 leases, " in page.text("#overall")
    filled(page, "#search", "controller-49")
    assert page.lanes == ["controller-49"]
    filled(page, "#search", "controller-7-")
    assert page.lanes == ["controller-7"]
    filled(page, "#search", "intruder-0")
    stolen = [lane for lane in timeline.lanes if any(span.holder == "intruder-0" for span in lane.spans)]
    assert f" {len(stolen)} of 50 leases, " in page.text("#overall")
    assert page.page.locator(".dimmed").count() > 0
    filled(page, "#search", "payments other:intruder")
    assert page.shown("writer") == {"system:serviceaccount:other:intruder"}
    assert page.shown("lane.namespace") == {"payments"}


def test_search_finds_leases_and_texts(opened: Open) -> None:
    page = opened(sample_timeline(50))
    filled(page, "#search", "Controller-3")
    assert set(page.lanes) <= {"controller-3", *(f"controller-3{n}" for n in range(10))}
    filled(page, "#search", "which had renewed")
    assert page.shown("kind") == {"steal", "contested"}
    filled(page, "#search", "takeover after release")
    assert page.shown("kind") == {"takeover-by-release"}
    filled(page, "#search", "nothing has this name")
    assert page.lanes == []
    assert page.page.is_visible("#none")


def test_the_legend_has_what_is_drawn(opened: Open) -> None:
    legend = opened(sample_timeline(3)).text("#legend")
    assert all(words in legend for words in ("held", "no leader", "steal", "renewals"))
    assert "forged" not in legend


def test_stolen_leases_come_first_then_the_longest_time_without_a_leader(opened: Open) -> None:
    timeline = sample_timeline(50)
    page = opened(timeline)
    stolen = [lane for lane in timeline.lanes if any(mark.kind is MarkKind.STEAL for mark in lane.marks)]
    found = {lane.name: lane.gaps(timeline.ends) for lane in stolen}
    worst = max(found, key=lambda name: max((gap.ends - gap.begins for gap in found[name]), default=0))
    assert page.lanes[0] == worst
