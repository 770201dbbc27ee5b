"""Files, directories, standard input and gzip as observations; kubectl as a child process."""

import gzip
import io
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.factories import Document, make_lease, put
from tests.inputs.events import make_event
from tests.inputs.fake_kubectl import Install, fake
from tests.recordings import FOLDER
from webhook.analysis.inputs import cluster, files
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.items import Item, LogEnd, Observation, OtherObject, Unreadable
from webhook.cli.reading import read_for_history
from webhook.errors import InputError

__all__ = ["fake"]


def line(document: Document) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"


def names(items: list[Item]) -> list[str]:
    return [one.name for one in items if isinstance(one, Observation)]


def test_recorded_reviews_have_the_time_of_their_index() -> None:
    items = list(read_for_history([str(FOLDER)]))
    assert len(items) == 339
    assert all(isinstance(one, Observation) and one.at for one in items)


def test_a_denied_review_was_not_stored(tmp_path: Path) -> None:
    source = next((FOLDER / "1.36.3" / "client-go").glob("*.json"))
    (tmp_path / "a.json").write_bytes(source.read_bytes())
    entry = {"file": "a.json", "received": "2026-11-20T23:12:47.422117Z", "verdict": "denied"}
    (tmp_path / "index.jsonl").write_text(json.dumps(entry))
    (item,) = read_for_history([str(tmp_path)])
    assert isinstance(item, Observation)
    assert not item.is_stored


@pytest.mark.parametrize("separator", ["---\n", ""])
def test_yaml_and_its_lists(tmp_path: Path, separator: str) -> None:
    leases = [make_lease(put("metadata.name", name)) for name in ("a", "b")]
    documents = (
        [yaml.safe_dump(one) for one in leases] if separator else [yaml.safe_dump({"kind": "List", "items": leases})]
    )
    (tmp_path / "x.yaml").write_text(separator.join(documents))
    assert names(list(read_for_history([str(tmp_path)]))) == ["a", "b"]


def test_broken_yaml_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(
        b"a: b: c\n---\n- 1\n---\n" + yaml.safe_dump(make_lease()).encode() + b"---\n\xff\n"
    )
    items = list(read_for_history([str(tmp_path)]))
    assert [type(one) for one in items] == [Unreadable, Unreadable, Unreadable, Observation]


def test_rotated_and_zipped_logs_of_a_directory_come_in_the_order_of_their_events(tmp_path: Path) -> None:
    for name, hour in (("audit.log", 12), ("audit.log.1", 11), ("audit.log.2.gz", 10)):
        time = f"2025-11-20T{hour}:00:00.000000Z"
        event = make_event(
            put("requestReceivedTimestamp", time), put("stageTimestamp", time), put("objectRef.name", name)
        )
        text = line(event).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "empty.log").write_text("")
    items = list(read_for_history([str(tmp_path)]))
    assert names(items) == ["audit.log.2.gz", "audit.log.1", "audit.log"]
    assert isinstance(items[-1], LogEnd)


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(line(make_event()).encode() * 100)
    (tmp_path / "damaged.gz").write_bytes(whole[:40] + bytes(20) + whole[60:])
    (tmp_path / "none.gz").write_bytes(b"\x1f\x8b\x01" + bytes(20))
    items = list(read_for_history([str(tmp_path)]))
    errors = [one.error.partition(":")[0] for one in items if isinstance(one, Unreadable)]
    assert sorted(errors) == ["not gzip", "the gzip file is damaged"]


def test_what_comes_before_the_cut_of_a_gzip_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x.log.gz"
    file.write_bytes(gzip.compress(line(make_event()).encode())[:-4])
    error, event = read_for_history([str(file)])
    assert isinstance(error, Unreadable)
    assert error.error == "the gzip file is cut off; what comes before the cut is read"
    assert isinstance(event, Observation)


def test_a_missing_file_and_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / ".hidden.json").write_text("{}")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (gone,) = read_for_history([str(tmp_path), str(tmp_path / "gone")])
    assert isinstance(gone, Unreadable)
    assert gone.error == "No such file or directory"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line(make_lease()).encode())))
    assert names(list(read_for_history(["-"]))) == ["checkout"]


def test_other_kinds_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"kind": "Pod", "apiVersion": "v1"}')
    (item,) = read_for_history([str(tmp_path)])
    assert isinstance(item, OtherObject)


def test_kubectl_is_run_with_the_options_of_the_user(fake: Install) -> None:
    log = fake()
    notes: list[str] = []
    chosen = Cluster(
        context="prod",
        kubeconfig="/k",
        all_namespaces=True,
        cluster="eu",
        user="dev",
        groups=("a", "b"),
        request_timeout="5s",
    )
    assert names(list(cluster.list_items(chosen, notes))) == ["checkout"]
    assert notes == []
    assert log.read_text().splitlines()[0] == (
        "get leases.coordination.k8s.io --all-namespaces --output=json --show-managed-fields --chunk-size=500 "
        "--request-timeout=5s --context=prod --kubeconfig=/k --cluster=eu --as=dev --as-group=a --as-group=b"
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("1500ms", 1.5), ("2m", 120), ("1h", 3600), ("7", 7), ("0", None), ("0s", None)]
)
def test_a_request_is_given_up_after_a_time(text: str, seconds: float | None) -> None:
    assert Cluster(request_timeout=text).timeout_seconds == seconds


def test_prompts_of_kubectl_are_passed_on_and_its_last_line_is_the_error(
    fake: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(fails=True)
    with pytest.raises(InputError, match="no rights") as raised:
        list(cluster.list_items(Cluster(namespace="shop"), []))
    assert str(raised.value) == "Error from server (Forbidden): no rights"
    assert capsys.readouterr().err == "open a browser\n"


@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        (Cluster(namespace="empty"), "namespace empty has no leases, or does not exist; -A looks in all namespaces"),
        (Cluster(), "the namespace of the context has no leases, or does not exist; -A looks in all namespaces"),
    ],
    ids=["named", "of the context"],
)
def test_a_namespace_without_leases_is_named(
    scope: Cluster, problem: str, fake: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not scope.namespace:
        monkeypatch.setattr(cluster, "_WITH_STAMPS", ("--namespace=empty",))
    fake(candidates='error: the server doesn\'t have a resource type "leasecandidates"')
    with pytest.raises(InputError) as raised:
        list(cluster.list_items(scope, []))
    assert str(raised.value) == problem


def test_candidates_that_may_not_be_read_are_a_note(fake: Install) -> None:
    notes: list[str] = []
    fake(candidates="Error from server (Forbidden): no")
    assert len(list(cluster.list_items(Cluster(), notes))) == 1
    assert notes == ["candidates were not read: Error from server (Forbidden): no"]
    fake(candidates='error: the server doesn\'t have a resource type "leasecandidates"')
    assert len(list(cluster.list_items(Cluster(), notes))) == 1
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("E1123 15:17:10 memcache\n Error \x1b[31mfrom \u202eserver\x07\n", "Error \\x1b[31mfrom \\u202eserver\\x07"),
        ("x" * 10_000, "x" * 200 + "..."),
        ("\n", "no reason given"),
    ],
    ids=["control characters", "long", "nothing"],
)
def test_a_note_about_what_kubectl_said_is_one_plain_line(message: str, note: str, fake: Install) -> None:
    notes: list[str] = []
    fake(candidates=message)
    list(cluster.list_items(Cluster(), notes))
    assert notes == [f"candidates were not read: {note}"]


def test_a_namespace_with_candidates_alone_is_not_without(fake: Install) -> None:
    fake()
    (item,) = cluster.list_items(Cluster(namespace="waiting"), [])
    assert isinstance(item, Observation)
    assert item.kind == "LeaseCandidate"


def test_a_missing_kubectl_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="kubectl cannot be run"):
        list(cluster.list_items(Cluster(), []))
    with pytest.raises(InputError, match="kubectl cannot be run"):
        list(cluster.list_lease_events(Cluster(), "shop", "a"))


def test_a_reader_that_stops_early_ends_kubectl(fake: Install) -> None:
    fake()
    items = cluster.list_items(Cluster(), [])
    next(items)
    assert isinstance(items, Generator)
    items.close()


def test_many_blank_lines_come_before_a_value(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("\n" * 100 + line(make_lease()))
    assert names(list(read_for_history([str(tmp_path / "x.json")]))) == ["checkout"]


def test_objects_are_read_up_to_a_broken_one(tmp_path: Path) -> None:
    log, twice = tmp_path / "audit.log", tmp_path / "x.json"
    log.write_text(line(make_event()))
    assert [one["kind"] for one in files.read_objects(str(log))] == ["Event"]
    twice.write_text('{"kind": "A"}\n{"a": 1, "a": 2}\n')
    objects = files.read_objects(str(twice))
    assert next(objects) == {"kind": "A"}
    with pytest.raises(InputError, match="#2: key 'a' appears twice"):
        next(objects)


def test_what_cannot_be_opened_below_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "link.json").symlink_to("folder.json")
    (gone,) = read_for_history([str(tmp_path)])
    assert isinstance(gone, Unreadable)
    assert gone.place.path.endswith("loop.json")


def test_logs_with_a_date_in_their_names_are_found(tmp_path: Path) -> None:
    found = ["audit.log-20260101", "audit.log-20260102-1767312000", "audit.json.20260101", "audit.v1.ndjson-20260101"]
    for name in [*found, "audit.log-2026", "audit.txt-20260101", "log-20260101", "audit.log-20260101x"]:
        (tmp_path / name).write_text(line(make_lease(put("metadata.name", name))))
    assert sorted(names(list(read_for_history([str(tmp_path)])))) == sorted(found)


def test_an_index_in_a_hidden_folder_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(line(make_lease()))
    for folder, name in ((".hidden", "../a.json"), ("shown", "b.json")):
        (tmp_path / folder).mkdir()
        entry = {"file": name, "received": "2026-11-20T23:12:47.422117Z", "verdict": "denied"}
        (tmp_path / folder / "index.jsonl").write_text(json.dumps(entry))
    index = files.CaptureIndex([str(tmp_path)])
    assert [*index.moments] == [(tmp_path / "shown" / "b.json").resolve()]
    assert not index.was_denied(str(tmp_path / "a.json"))


@pytest.mark.parametrize(
    ("text", "number", "problem"),
    [
        pytest.param(b" " * 40 + b'{"file":"a"}\n{}', 1, "a line of more than 64 KiB", id="long"),
        pytest.param(b"\n" * 10, 4, "too much is broken", id="broken"),
    ],
)
def test_an_index_is_read_up_to_a_limit(
    text: bytes, number: int, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MAX_ENTRY", 40)
    monkeypatch.setattr(files, "_MAX_BROKEN", 3)
    (tmp_path / "index.jsonl").write_bytes(text)
    unreadable = files.CaptureIndex([str(tmp_path)]).unreadable
    assert len(unreadable) == number
    assert unreadable[-1].error == f"{problem}; the rest is not read"


def test_an_index_that_cannot_be_read_costs_only_its_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index.jsonl"
    index.write_text('{"file": 5}\n')
    (tmp_path / "x.json").write_text(line(make_lease()))
    assert names(list(read_for_history([str(tmp_path)]))) == ["checkout"]
    opened = Path.open

    def refuse(path: Path, *words: Any, **more: Any) -> Any:
        if path == index:
            raise PermissionError(13, "Permission denied")
        return opened(path, *words, **more)

    monkeypatch.setattr(Path, "open", refuse)
    problem, item = read_for_history([str(tmp_path)])
    assert isinstance(problem, Unreadable)
    assert (problem.error, isinstance(item, Observation)) == ("Permission denied", True)


@pytest.mark.parametrize(
    ("resource", "is_advised"),
    [("leases", True), ("leasecandidates", True), ("pods", True), ("nodes", False), ("clusterroles", False)],
)
def test_one_namespace_is_advised_only_for_what_namespaces_contain(resource: str, is_advised: bool) -> None:
    refused = (
        f'{resource} is forbidden: User "dev" cannot list resource "{resource}" in API group "" at the cluster scope'
    )
    assert ("-n NAMESPACE" in cluster.explain_problem(refused)) is is_advised
