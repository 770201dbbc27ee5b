"""`why` says of a record what it says of the watch that it was made from, however little the record keeps."""

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import Document, make_lease, put
from tests.history.fake_server import FakeServer
from tests.history.observing import observe_all
from tests.incidents import FOLDER, WATCH
from tests.inputs.reading import read
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.cluster import LEASES
from webhook.analysis.inputs.files import find_inputs
from webhook.analysis.inputs.items import Item, Observation, Unreadable
from webhook.analysis.live.recorder import Condenser, Recorder, Records

MEASURED: Final = FOLDER.parent / "measured-incidents"
WATCHES: Final = [*sorted(FOLDER.glob(f"*/{WATCH}")), *sorted(MEASURED.glob("*/watch.jsonl.gz"))]
INTERVALS: Final = ("usual_interval_seconds", "longest_silence_seconds")
"""A record has intervals to a two-hundredth; of those before the latest ten."""


def observations(data: bytes) -> list[Observation]:
    return [one for one in read("in", [data]) if isinstance(one, Observation)]


def condensed(seen: Iterable[Observation]) -> bytes:
    condenser = Condenser()
    history = b"".join(line for one in seen for line in condenser.observe(one))
    return history + b"".join(condenser.make_snapshot())


def write_record(directory: Path, seen: Iterable[Observation], limit: int) -> None:
    records = Records(directory, limit)
    recorder = Recorder(records, print)
    recorder.begin(LEASES)
    for observation in seen:
        recorder.observe(observation)
    recorder.save()
    os.close(records._lock)
    if records._file is not None:
        records._file.close()


def accounts(*inputs: Iterable[Item]) -> dict[tuple[str, str], Document]:
    histories = ClusterHistory()
    observe_all(histories, *map(list, inputs))
    assert histories.bounds.until is not None
    return {
        key: make_account_json(make_account(histories, one, histories.bounds.until))
        for key, one in sorted(histories.leases.items())
    }


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from differences(a, b, f"{path}/{number}")
    elif isinstance(one, float) and isinstance(other, float):
        if abs(one - other) > 0.01 * abs(one) + 0.002:
            yield f"{path}: {one} and {other}"
    elif one != other:
        yield f"{path}: {one!r} and {other!r}"


REASONS: Final = {
    # A deletion has no time in a watch: it counts as made after the last renewal of any lease that is shown, and a
    # record has only that of the lease itself and of the one that was renewed last.
    # The same interval, rounded, in a sentence.
    "foreign-release": ("/findings/2/message",),
    "namespace-deleted": ("/findings/0/message", "/leaderless_seconds", "/claims"),
    # A record has one renewal after the clock was set, and one alone does not show whose clock it was.
    "clock-steps": ("/holder_clock_ahead_seconds", "/findings", "/advice", "/claims"),
}


@pytest.mark.deep
@pytest.mark.uncounted
@pytest.mark.parametrize("path", WATCHES, ids=lambda path: path.parent.name)
def test_why_says_the_same_of_every_recorded_incident(path: Path, tmp_path: Path) -> None:
    """The record is read as one text, and as a directory, whose files are small here."""
    data = gzip.decompress(path.read_bytes())
    expected = accounts(read("in", [data]))
    record = condensed(observations(data))
    write_record(tmp_path, observations(data), 2 * len(record))
    assert len(list(tmp_path.glob("leases-*"))) > 1
    directory = [one.read() for one in find_inputs([str(tmp_path)])]
    for actual in (accounts(read("in", [record])), accounts(*directory)):
        assert actual.keys() == expected.keys()
        different = [one for key in expected for one in differences(expected[key], actual[key])]
        # The same length of time, rounded, in a sentence; its arguments are compared.
        different = [one for one in different if not re.match(r"/claims/\d+/text", one)]
        assert [one for one in different if not one.startswith(REASONS.get(path.parent.name, ("-",)))] == []


def elected() -> FakeServer:
    """A leader of an hour, a silence of it, a takeover after a crash, a release."""
    server = FakeServer()
    first, second = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    first.lead(3600)
    server.wait(9)
    first.lead(60)
    server.wait(20)
    second.lead(600)
    return server


def test_an_hour_of_renewals_is_a_few_lines() -> None:
    server = elected()
    seen = observations(server.watch())
    record = condensed(seen)
    assert len(seen) > 2000
    assert len(record.splitlines()) < 12
    (account,), (expected,) = accounts(read("in", [record])).values(), accounts(read("in", [server.watch()])).values()
    assert list(differences(expected, account)) == []
    assert account["renewals"]["seen"] == expected["renewals"]["seen"] > 2000


def test_a_record_can_be_recorded_again() -> None:
    once = condensed(observations(elected().watch()))
    twice = condensed(observations(once))
    # The latest state is written once more, without the renewals that the record has counted.
    assert len(twice.splitlines()) <= len(once.splitlines()) + 1
    (account,), (expected,) = accounts(read("in", [twice])).values(), accounts(read("in", [once])).values()
    assert list(differences(expected, account)) == []


def test_both_ends_of_a_time_in_which_the_lease_expired_are_recorded_before_its_rhythm_is_known() -> None:
    server = FakeServer()
    elector = server.elector("a", "shop/db")
    elector.lead(3)
    server.wait(17)
    elector.lead(30)
    (account,) = accounts(read("in", [condensed(observations(server.watch()))])).values()
    (expected,) = accounts(read("in", [server.watch()])).values()
    assert list(differences(expected, account)) == []


@given(st.lists(st.sampled_from([0.5, 1.9, 2, 2.1, 5, 9, 14, 16, 40]), min_size=1, max_size=80), st.integers(0, 79))
@settings(max_examples=40, deadline=None)
def test_why_says_the_same_of_any_rhythm(pauses: list[float], taken: int) -> None:
    """The number of renewals, the holders, and every silence after which a client gives up."""
    server = FakeServer()
    holder = server.elector("a", "shop/db")
    holder.take()
    for number, pause in enumerate(pauses):
        server.wait(pause)
        if number == taken:
            holder = server.elector("b", "shop/db")
            holder.take()
        else:
            holder.renew()
    seen = observations(server.watch())
    (account,), (expected,) = (
        accounts(read("in", [condensed(seen)])).values(),
        accounts(read("in", [server.watch()])).values(),
    )
    assert account["tenures"] == expected["tenures"]
    assert account["renewals"]["seen"] == expected["renewals"]["seen"]
    assert account["state"] == expected["state"]


def change(number: int, *tweaks: Any, kind: str = "MODIFIED") -> Observation:
    """A renewal of 2 s each, with another change."""
    time = f"2025-11-20T12:{number // 30:02d}:{number % 30 * 2:02d}"
    lease = make_lease(
        put("metadata.resourceVersion", str(5000 + number)),
        put("spec.renewTime", f"{time}.500000Z"),
        put("metadata.managedFields.0.time", f"{time}Z"),
        *tweaks,
    )
    return observations(json.dumps({"type": kind, "object": lease}).encode())[0]


@pytest.mark.parametrize(
    "tweak",
    [
        put("spec.leaseDurationSeconds", 30),
        put("spec.leaseTransitions", 6),
        put("spec.preferredHolder", "b"),
        put("spec.acquireTime", "2025-11-20T11:59:00.000000Z"),
        put("metadata.labels", {"a": "b"}),
        put("metadata.annotations", {"a": "b"}),
        put("metadata.finalizers", ["a/b"]),
        put("metadata.managedFields.0.manager", "kubectl"),
        put("spec.holderIdentity", ""),
    ],
    ids=["duration", "transitions", "preferred", "acquired", "label", "annotation", "finalizer", "manager", "release"],
)
def test_whatever_is_no_ordinary_renewal_is_recorded_with_the_state_before_it(tweak: Any) -> None:
    condenser = Condenser()
    list(condenser.observe(change(0, kind="ADDED")))
    assert [list(condenser.observe(change(number))) for number in (1, 2, 3)] == [[], [], []]
    before, after = condenser.observe(change(4, tweak))
    assert json.loads(before)["renewals"]["latest"] == [2_000_000] * 3
    assert "renewals" not in json.loads(after)


def test_the_same_state_again_is_nothing() -> None:
    condenser = Condenser()
    list(condenser.observe(change(0, kind="ADDED")))
    assert list(condenser.observe(change(0, kind="ADDED"))) == []


def test_many_rhythms_are_recorded_before_they_are_too_many() -> None:
    server = FakeServer()
    holder = server.elector("a", "shop/db")
    holder.take()
    for number in range(600):
        server.wait(2 + number % 250 / 100)
        holder.renew()
    lines = condensed(observations(server.watch())).splitlines()
    assert 2 < len(lines) < 200
    assert all(isinstance(one, Observation) for one in read("in", [b"\n".join(lines)]))


@pytest.mark.parametrize(
    "renewals",
    [5, [], {}, {"latest": []}, {"latest": [-1]}, {"latest": [1] * 11}, {"latest": ["x"]},
     {"latest": [1], "histogram": {"x": 1}}, {"latest": [1], "histogram": {"1": -1}}, {"latest": [2**62]}],
    ids=str,
)  # fmt: skip
def test_renewals_of_wrong_types_are_unreadable(renewals: object) -> None:
    text = json.dumps({"type": "MODIFIED", "renewals": renewals, "object": make_lease()}).encode()
    (item,) = read("in", [text])
    assert isinstance(item, Unreadable)


@given(
    st.lists(st.integers(0, 2**61), min_size=1, max_size=10),
    st.dictionaries(st.integers(0, 2**61), st.integers(0, 2**61), max_size=9),
)
@settings(max_examples=40, deadline=None)
def test_absurd_numbers_cost_no_time(latest: list[int], histogram: dict[int, int]) -> None:
    data = {"type": "MODIFIED", "renewals": {"latest": latest, "histogram": histogram}}
    first = {"type": "ADDED", "object": make_lease(put("metadata.resourceVersion", "1"))}
    lease = make_lease(put("spec.renewTime", "2025-11-20T12:09:00.000000Z"))
    text = json.dumps(first) + json.dumps({**data, "object": lease})
    items: list[Item] = list(read("in", [text.encode()]))
    histories = ClusterHistory()
    observe_all(histories, items)
    assert len(histories.leases) == 1


def test_a_renewal_at_a_time_that_cannot_be_read_is_recorded() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(2)
    seen = observations(server.watch())
    lease = dict(server.leases["shop/db"], metadata={"name": "db", "namespace": "shop", "resourceVersion": "200"})
    lease["spec"] = dict(lease["spec"], renewTime="2026-13-01T00:00:00.000000Z")
    before = dict(lease, spec=server.leases["shop/db"]["spec"])
    before["metadata"] = dict(lease["metadata"], resourceVersion="199")
    changes = (json.dumps({"type": "MODIFIED", "object": one}).encode() for one in (before, lease))
    record = condensed([*seen, *observations(b"\n".join(changes))])
    assert b'"renewTime": "2026-13-01' in record
