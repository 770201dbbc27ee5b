"""A recorder keeps its history through its own end, a full disk and a list that lacks what was there."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.factories import Document, make_candidate, make_lease, make_review, put, to_bytes
from tests.history.fake_server import FakeServer
from tests.inputs.reading import read
from webhook.analysis.inputs.cluster import CANDIDATES, EVENTS, LEASES
from webhook.analysis.inputs.files import find_inputs
from webhook.analysis.inputs.items import Item, Observation, Place, RecordingGap, Unreadable
from webhook.analysis.live import recorder as module
from webhook.analysis.live.recorder import Recorder, Records
from webhook.errors import InputError

MEBIBYTE = 1024 * 1024


def shown(change: str, document: Document) -> Item:
    (item,) = read("in", [json.dumps({"type": change, "object": document}).encode()])
    return item


def make_unreadable(resource: str) -> Item:
    return Unreadable(Place(resource, 1), "nested too deeply")


def lease(name: str, version: int, *tweaks: Any) -> Document:
    return make_lease(put("metadata.name", name), put("metadata.resourceVersion", str(version)), *tweaks)


def held(name: str, version: int, holder: str, *tweaks: Any) -> Item:
    return shown("MODIFIED", lease(name, version, put("spec.holderIdentity", holder), *tweaks))


RUNS: list["Run"] = []


@pytest.fixture(autouse=True)
def end() -> Iterator[None]:
    yield
    while RUNS:
        RUNS[-1].kill()


class Run:
    """One process of a recorder."""

    def __init__(self, directory: Path, limit: int = MEBIBYTE) -> None:
        self.said: list[str] = []
        self.records = Records(directory, limit)
        self.recorder = Recorder(self.records, self.said.append)
        RUNS.append(self)

    def see(self, *items: Item) -> None:
        for item in items:
            self.recorder.observe(item)

    def kill(self) -> None:
        """Its files are closed, and its lock goes with them."""
        RUNS.remove(self)
        os.close(self.records._lock)
        if self.records._file is not None:
            self.records._file.close()


def recorded(directory: Path) -> list[Item]:
    return [item for one in find_inputs([str(directory)]) for item in one.read()]


def names(items: Iterable[Item]) -> list[tuple[str, str]]:
    return [(one.act.value, one.name) for one in items if isinstance(one, Observation)]


def gaps(directory: Path) -> list[str]:
    return [one.reason for one in recorded(directory) if isinstance(one, RecordingGap)]


def test_what_was_seen_is_read_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)), held("a", 2, "b"))
    assert names(recorded(tmp_path)) == [("stored", "a"), ("updated", "a")]
    run.recorder.save()
    assert (tmp_path / "latest.jsonl").read_bytes().count(b"\n") == 1
    assert gaps(tmp_path) == []


def test_before_anything_is_seen_there_is_no_gap(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.recorder.save()
    assert (tmp_path / "latest.jsonl").read_bytes() == b""
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    assert gaps(tmp_path) == []


def test_two_recorders_never_write_into_one_directory(tmp_path: Path) -> None:
    Run(tmp_path)
    with pytest.raises(InputError, match="another recorder"):
        Records(tmp_path, MEBIBYTE)


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, not a directory"):
        Records(tmp_path / "file", MEBIBYTE)


def test_a_process_that_was_killed_leaves_a_gap_and_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Run(tmp_path)
    first.recorder.begin(LEASES)
    first.see(shown("ADDED", lease("a", 1)), shown("ADDED", lease("gone", 2)), shown("ADDED", make_candidate()))
    first.recorder.save()
    first.see(held("a", 3, "b"))
    first.kill()
    (path,) = tmp_path.glob("leases-*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"MODIFIED","obj')

    monkeypatch.setattr(module, "PATIENCE", -1.0)
    second = Run(tmp_path)
    second.recorder.begin(LEASES)
    second.recorder.save()
    assert gaps(tmp_path) == []
    second.see(shown("ADDED", lease("a", 5, put("spec.holderIdentity", "c"))))
    second.recorder.save()
    assert gaps(tmp_path) == ["the recorder did not run, or could not write"]
    items = recorded(tmp_path)
    assert not [one for one in items if isinstance(one, Unreadable)]
    assert ("deleted", "gone") in names(items)
    assert not [one for one in names(items) if one[0] == "deleted" and one[1] != "gone"]


def test_a_watch_that_begins_again_leaves_a_gap_with_its_reason(tmp_path: Path) -> None:
    run, too_old = Run(tmp_path), f"The watch of {LEASES} ended: too old"
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    for status in (too_old, too_old, "", "The watch of events ended: 403"):
        run.recorder.show_status(status)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    assert gaps(tmp_path) == [too_old]
    assert run.said == [too_old, "The watch of events ended: 403"]


def test_candidates_and_events_are_kept_beside(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.recorder.begin(CANDIDATES)
    run.recorder.begin(EVENTS)
    about = {"kind": "Lease", "namespace": "shop", "name": "checkout"}
    event = {"kind": "Event", "apiVersion": "v1", "message": "a became leader", "involvedObject": about}
    for item in (
        shown("ADDED", make_candidate()),
        shown("ADDED", {**event, "lastTimestamp": "2025-11-20T12:00:00Z"}),
        shown("ADDED", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}),
    ):
        run.see(item)
    candidate, leading = recorded(tmp_path)
    assert isinstance(candidate, Observation)
    assert getattr(leading, "text", "") == "a became leader"


class FullDisk:
    """A file that takes only a part of each write, or nothing."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: bytes) -> int:
        written: int = self._file.write(text[: len(text) // 2])
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def fill_disk(run: Run) -> Iterator[None]:
    """Let the disk be full while this is entered."""
    file = run.records._file
    assert file is not None
    run.records._file = FullDisk(file)  # type: ignore[assignment]
    yield
    run.records._file = file


def test_what_a_full_disk_refuses_waits(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    with fill_disk(run):
        run.see(held("a", 2, "b"))
        run.recorder.save()
        assert run.said == ["the history cannot be written: [Errno 28] No space left on device"]
    run.see(held("a", 3, "c"))
    run.recorder.save()
    (path,) = run.records.list_files()
    assert [json.loads(line)["type"] for line in path.read_bytes().splitlines()] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert gaps(tmp_path) == []


def test_a_disk_that_is_full_again_is_said_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    for number in (1, 2):
        with fill_disk(run):
            run.see(held("a", 1 + number, f"holder-{number}"))
            run.recorder.save()
            run.recorder.save()
            assert len(run.said) == number
        run.recorder.save()


def test_what_is_too_much_to_wait_is_lost_and_the_next_process_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 100)
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    run.recorder.save()
    before = (tmp_path / "latest.jsonl").read_bytes()
    run.records._file = FullDisk(run.records._file)  # type: ignore[assignment]
    run.see(held("a", 2, "b"), held("a", 3, "c"))
    with pytest.raises(InputError, match=r"cannot be written: .*No space left"):
        run.recorder.save()
    assert (tmp_path / "latest.jsonl").read_bytes() == before
    run.kill()
    second = Run(tmp_path)
    second.recorder.begin(LEASES)
    second.see(shown("ADDED", lease("a", 4, put("spec.holderIdentity", "d"))))
    assert gaps(tmp_path) == ["the recorder did not run, or could not write"]
    assert [one[0] for one in names(recorded(tmp_path))][-1] == "stored"


def test_the_present_stays_while_it_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    run.recorder.save()
    before = (tmp_path / "latest.jsonl").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "rename", full)
    run.see(held("a", 2, "b"))
    run.recorder.save()
    assert (tmp_path / "latest.jsonl").read_bytes() == before
    assert "No space left" in run.said[0]
    monkeypatch.undo()
    run.recorder.save()
    assert (tmp_path / "latest.jsonl").read_bytes() != before


def test_the_oldest_file_goes_when_there_are_too_many(tmp_path: Path) -> None:
    run = Run(tmp_path, limit=64_000)
    run.recorder.begin(LEASES)
    for number in range(200):
        run.see(held("a", number + 1, f"holder-{number}"))
    files = run.records.list_files()
    assert 10 < len(files) <= module.FILES
    assert sum(path.stat().st_size for path in files) <= 64_000 + module.FILES * 1000
    assert files == sorted(files)


def test_names_grow_also_if_the_clock_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Run(tmp_path)
    first.see(held("a", 1, "b"))
    first.kill()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    second = Run(tmp_path)
    second.see(held("a", 2, "c"))
    assert [one.resource_version for one in recorded(tmp_path) if isinstance(one, Observation)] == ["1", "2"]
    assert len(second.records.list_files()) == 2


def test_a_gap_begins_when_something_was_seen_last_whatever_was_saved_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Run(tmp_path)
    first.recorder.begin(LEASES)
    first.see(shown("ADDED", lease("a", 1)))
    for path in tmp_path.glob("leases-*"):
        path.write_bytes(path.read_bytes() + b"half a line")
        os.utime(path, (1_000_000_000, 1_000_000_000))
    first.recorder._seen_until = 1_000_000_100.0
    first.recorder.save()
    first.kill()
    second = Run(tmp_path)
    second.recorder.begin(LEASES)
    second.see(shown("ADDED", lease("a", 2)))
    (gap,) = [one for one in recorded(tmp_path) if isinstance(one, RecordingGap)]
    assert gap.start == 1_000_000_100_000_000

    monkeypatch.setattr(time, "time", lambda: 999_999_999.0)
    second.recorder.begin(LEASES)
    second.see(shown("ADDED", lease("a", 3)))
    assert [one.start for one in recorded(tmp_path) if isinstance(one, RecordingGap)][-1] == 999_999_999_000_000


def test_many_restarts_do_not_make_the_history_larger(tmp_path: Path) -> None:
    for number in range(40):
        run = Run(tmp_path, limit=64_000)
        run.recorder.begin(LEASES)
        run.see(*(shown("ADDED", lease(f"lease-{one}", 100 * number + one)) for one in range(10)))
        run.recorder.save()
        run.kill()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100_000
    assert len([one for one in recorded(tmp_path) if isinstance(one, Observation)]) > 30


def test_what_others_put_into_the_directory_is_left_alone(tmp_path: Path) -> None:
    outside, directory = tmp_path / "outside.txt", tmp_path / "history"
    outside.write_text("one\ntwo")
    directory.mkdir()
    for name in ("latest.jsonl", "latest.tmp", "leases-000000000000001.jsonl", "leases-999999999999999999.jsonl"):
        (directory / name).symlink_to(outside)
    os.mkfifo(directory / "leases-000000000000002.jsonl")
    (directory / "leases-000000000000003.jsonl").mkdir()
    (directory / "leases-x.jsonl").write_text("half")
    (directory / "leases-000000000000004.jsonl").write_text('{"type":"MODIFIED","obj')
    run = Run(directory)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    run.recorder.save()
    assert outside.read_text() == "one\ntwo"
    assert (directory / "leases-x.jsonl").read_text() == "half"
    assert (directory / "latest.jsonl").read_bytes().count(b"\n") == 1
    assert names(recorded(directory))[0] == ("stored", "a")


ENTRY = {"manager": "x" * 100, "operation": "Update", "time": "2025-11-20T12:00:00Z", "fieldsV1": {"f:spec": {}}}
HOSTILE = {
    "an annotation of 1 MiB": put("metadata.annotations", {"a": "x" * MEBIBYTE}),
    "a holder of 200 KiB": put("spec.holderIdentity", "x" * 200_000),
    "5000 entries of managedFields": put("metadata.managedFields", [ENTRY] * 5000),
    "no managedFields": put("metadata.managedFields", None),
    "a time of another type": put("spec.renewTime", 5),
    "a time that is none": put("spec.renewTime", "yesterday"),
    "the year 9999": put("spec.renewTime", "9999-12-31T23:59:59.999999Z"),
    "the year 0": put("spec.renewTime", "0000-01-01T00:00:00.000000Z"),
    "line breaks": put("spec.holderIdentity", 'a\n{"type":"GAP"}\n'),
    "no spec": put("spec", None),
    "another type": put("metadata.labels", 5),
    "a long name": put("metadata.name", "x" * 5000),
}


@pytest.mark.parametrize("tweak", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_lease_costs_itself_alone(tweak: Any, tmp_path: Path) -> None:
    """It is written again and again, also as a renewal, beside one that is renewed and then taken."""
    run = Run(tmp_path, limit=100 * MEBIBYTE)
    run.recorder.begin(LEASES)
    moment = "2025-11-20T12:00:{:02d}"
    for number in range(9):
        renewed = put("spec.renewTime", moment.format(2 * number) + ".000000Z")
        stamped = put("metadata.managedFields.0.time", moment.format(2 * number) + "Z")
        run.see(shown("MODIFIED", lease("shop", 2 * number + 1, renewed, stamped)))
        run.see(shown("MODIFIED", lease("hostile", 2 * number + 2, renewed, tweak)))
    run.see(held("shop", 100, "b"), shown("DELETED", lease("hostile", 101, tweak)))
    run.recorder.save()
    run.kill()
    Run(tmp_path)
    observations = [one for one in recorded(tmp_path) if isinstance(one, Observation) and one.name == "shop"]
    assert not [one for one in recorded(tmp_path) if isinstance(one, Unreadable)]
    assert len(observations) <= 4
    assert [one.counted_renewals for one in observations].count(None) < len(observations)


@pytest.mark.parametrize("jump", [-3600, 3600, 86_400 * 3650], ids=["an hour back", "an hour ahead", "ten years ahead"])
def test_a_clock_that_jumps_ends_nothing(jump: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the recorder names files and gaps, and nothing else."""
    first, now = Run(tmp_path), time.time()
    first.recorder.begin(LEASES)
    first.see(shown("ADDED", lease("a", 1)), held("a", 2, "b"))
    monkeypatch.setattr(time, "time", lambda: now + jump)
    monkeypatch.setattr(time, "time_ns", lambda: int((now + jump) * 1e9))
    first.see(held("a", 3, "c"))
    first.recorder.save()
    first.kill()
    monkeypatch.undo()
    second = Run(tmp_path)
    second.recorder.begin(LEASES)
    second.see(held("a", 4, "d"))
    second.recorder.save()
    (gap,) = [one for one in recorded(tmp_path) if isinstance(one, RecordingGap)]
    assert gap.start <= gap.end
    assert {one.resource_version for one in recorded(tmp_path) if isinstance(one, Observation)} == {"1", "2", "3", "4"}


def test_a_lock_that_is_a_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="not writable"):
        Records(tmp_path, MEBIBYTE)


def test_a_present_that_cannot_be_read_is_history_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latest.jsonl").write_text('{"type":"ADDED","object":{"kind":"Lease"\n[5]\nnot json\n')
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)))
    run.recorder.save()
    assert ("stored", "a") in names(recorded(tmp_path))
    assert len(gaps(tmp_path)) == 1


def test_requests_in_the_present_are_no_states_of_a_watch(tmp_path: Path) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    review = make_review(old=make_lease(), new=make_lease())
    (tmp_path / "latest.jsonl").write_bytes(server.audit_log() + to_bytes(review) + b"\n")
    run = Run(tmp_path)
    run.recorder.save()
    assert (tmp_path / "latest.jsonl").read_bytes().count(b"shop") == 0


def test_a_list_with_an_object_that_nests_too_deeply_shows_no_deletions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    run.see(shown("ADDED", lease("a", 1)), shown("ADDED", lease("b", 2)), shown("ADDED", make_candidate()))
    run.recorder.begin(LEASES)
    run.recorder.begin(CANDIDATES)
    run.see(make_unreadable(LEASES), make_unreadable(EVENTS), shown("ADDED", lease("a", 1)))
    run.recorder.save()
    assert "deleted" not in {act for act, _ in names(recorded(tmp_path))}


def test_renewals_and_changes_are_counted_since_it_began(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.recorder.begin(LEASES)
    renewed = held("a", 3, "b", put("spec.renewTime", "2030-01-01T00:00:00.000000Z"))
    run.see(shown("ADDED", lease("a", 1)), held("a", 2, "b"), renewed, held("a", 4, "c"))
    assert run.recorder.summary == "1 renewal of 1 lease, 2 changes of holder"
    run.kill()
    assert Run(tmp_path).recorder.summary.startswith("0 renewals")
