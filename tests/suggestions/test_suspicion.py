"""What looks like an attack, by the rules, by what the webhook noted and by the history of a lease."""

import pytest
from msgspec.structs import replace

from tests.factories import NOW, Tweak, make_entry, make_lease, make_review, put
from tests.inputs.events import make_event
from tests.recordings import FOLDER
from tests.suggestions.seen import annotated, audited, item, reviewed
from webhook.analysis.inputs.items import ClockSkew, InputKind, Item, LogEnd, Observation, Place
from webhook.analysis.suggestions.bindings import TOOK, AllWrites, Evidence
from webhook.cli.reading import read_for_history
from webhook.kubernetes.times import DAY, MINUTE, SECOND


def suspicions(*items: Item) -> list[tuple[str, ...]]:
    follower = AllWrites(NOW)
    return [follower.find_attacks(one) for one in items if isinstance(one, Observation)]


@pytest.mark.parametrize(
    ("texts", "attacks"),
    [
        ({"event": "edit", "rules": "takeover-before-expiry=audit"}, (TOOK,)),
        ({"event": "edit", "rules": "duration-too-long=warn"}, ()),
        (
            {"event": "edit", "rules": "transitions-jump=warn", "would_deny": "transitions-jump"},
            ("set a count after which no one else could take the lease",),
        ),
        ({"event": "edit", "rules": "identity-binding=warn"}, ()),
        ({"event": "edit", "rules": "identity-binding=deny"}, ("wrote a lease that is bound to other writers",)),
        ({"event": "edit", "rules": "lease-without-stamps=audit,node-lease-writer=warn"}, ()),
        ({"event": "create", "rules": "preferred-holder-writer=deny"}, ()),
        ({"event": "edit", "rules": "preferred-holder-writer=deny"}, ("named the next leader",)),
        ({"event": "steal"}, ()),
        ({"anything": "takeover-before-expiry=deny"}, ()),
    ],
    ids=[
        "a takeover, only audited",
        "a long duration, warned of",
        "a jump that would be denied",
        "a bound lease, warned of",
        "a bound lease, denied",
        "rules without an attack",
        "a preferred holder in a creation",
        "a preferred holder in an edit",
        "a steal without rules",
        "another annotation",
    ],
)
def test_what_the_webhook_noted(texts: dict[str, str], attacks: tuple[str, ...]) -> None:
    assert suspicions(audited("update", annotated(**texts))) == [attacks]


TAKEN: list[Tweak] = [
    put("responseObject.spec.holderIdentity", "mallory"),
    put("responseObject.metadata.resourceVersion", "4712"),
    put("responseObject.metadata.managedFields", [make_entry("holderIdentity", time="2025-11-20T12:00:02Z")]),
    put("stageTimestamp", "2025-11-20T12:00:02.000000Z"),
]


def test_a_steal_shows_in_the_history_of_a_log() -> None:
    assert suspicions(item(make_event()), item(make_event(*TAKEN)), audited("get")) == [(), (TOOK,), ()]


def test_what_may_be_a_steal_by_the_requests_of_a_log_is_no_trusted_write() -> None:
    def sent(*tweaks: Tweak) -> Item:
        event = make_event(*tweaks)
        stored = event.pop("responseObject")
        return item(event | {"level": "Request", "requestObject": stored})

    assert suspicions(sent(), sent(*TAKEN)) == [(), (TOOK,)]


@pytest.mark.parametrize(("skew", "attacks"), [(SECOND, (TOOK,)), (MINUTE, ())])
def test_a_takeover_that_the_clocks_of_api_servers_explain_is_no_attack(skew: int, attacks: tuple[str, ...]) -> None:
    follower = AllWrites(NOW)
    taken = item(make_event(*TAKEN))
    assert isinstance(taken, Observation)
    for seen in (item(make_event()), ClockSkew(skew)):
        follower.observe(seen)
    assert follower.find_attacks(replace(taken, place=Place("the log of another API server"))) == attacks


def test_a_steal_shows_in_a_log_beside_a_watch_of_the_same_writes() -> None:
    directory = FOLDER.parent / "incidents" / "lease-stolen"
    follower = AllWrites(NOW)
    attackers = [
        (one.input_kind, one.writer.name if one.writer else "")
        for one in read_for_history([str(directory)])
        if isinstance(one, Observation) and one.namespace == "invoices" and follower.find_attacks(one)
    ]
    assert attackers == [(InputKind.AUDIT_LOG, "invoices/migration")]


def test_a_review_is_evaluated_when_it_was_made() -> None:
    lease = make_lease(put("spec.renewTime", "2025-11-20T12:00:01.000000Z"))
    seen = reviewed(new=lease)
    assert suspicions(seen) == [()]
    unknown = item(make_review(new=lease))
    assert isinstance(unknown, Observation)
    assert suspicions(unknown) == [()]
    early = make_lease(put("metadata.managedFields", []), put("spec.leaseDurationSeconds", 2**31 - 1))
    bare = item(make_review(new=early))
    assert isinstance(bare, Observation)
    assert suspicions(bare) == [("set a duration after which no one else could take the lease",)]


def test_evidence_adds_up() -> None:
    evidence = Evidence()
    evidence.add(None)
    assert evidence.describe("write") == "1 write"
    evidence.add(NOW)
    assert evidence.describe("write") == "2 writes at 2025-11-20T12:00:00Z"
    evidence.add(NOW + 60_000_000)
    assert evidence.describe("write") == "3 writes from 2025-11-20T12:00:00Z to 2025-11-20T12:01:00Z (1 min 0 s)"


def test_an_input_of_objects_has_no_times() -> None:
    extent = AllWrites(NOW)
    extent.observe(item(make_lease()))
    extent.observe(item({"kind": "Pod", "apiVersion": "v1"}))
    assert [*extent.list_unseen()] == ["when it happened: the input has no times"]


def test_an_input_of_a_week_is_long_enough() -> None:
    extent = AllWrites(NOW)
    extent.observe(LogEnd(NOW))
    extent.observe(LogEnd(NOW + 6 * DAY))
    (too_short,) = extent.list_unseen()
    assert "from 2025-11-20T12:00:00Z to 2025-11-26T12:00:00Z (6 d 0 h)" in too_short
    extent.observe(LogEnd(NOW + 7 * DAY))
    assert [*extent.list_unseen()] == []
