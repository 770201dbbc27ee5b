"""What files hold that have no lease is counted, so that a command can say it."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from webhook.analysis.inputs import contents
from webhook.analysis.inputs.contents import Contents, find_contents
from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.files import read_path


def event(**changes: Any) -> dict[str, Any]:
    reference = {"resource": "pods", "namespace": "shop", "name": "a"}
    return {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "verb": "create", "objectRef": reference} | changes


def write(path: Path, *documents: Any) -> str:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in documents))
    return str(path)


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([event(), event(), event(objectRef={"resource": "configmaps"})], ({"pods": 2, "configmaps": 1}, {})),
        ([event(objectRef={}), event(objectRef=5)], ({"no resource": 2}, {})),
        ([{"kind": "Pod", "apiVersion": "v1"}, {"kind": "", "apiVersion": "v1"}], ({}, {"Pod": 1, "no kind": 1})),
        ([{"kind": "Lease", "apiVersion": "coordination.k8s.io/v9"}], ({}, {"Lease of coordination.k8s.io/v9": 1})),
        ([7], ({}, {})),
    ],
)
def test_documents_are_counted(documents: list[Any], expected: tuple[Any, Any], tmp_path: Path) -> None:
    assert find_contents([write(tmp_path / "a.json", *documents)]) == Contents(*expected, (), ())


@pytest.mark.parametrize("rest", [b',"verb":"cre', b',"objectRef":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_an_event_that_cannot_be_read_has_no_resource(rest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1"' + rest)
    assert find_contents([str(path)]).events == {"no resource": 1}


def test_each_document_is_counted_before_the_next_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.json", *([{"kind": "Pod", "apiVersion": "v1"}] * 3))
    steps: list[str] = []
    name_kind = contents._name_kind

    def read(path: str) -> Iterator[object]:
        for one in read_path(path):
            steps.append("read")
            yield one

    def name(document: Document) -> str:
        steps.append("counted")
        return name_kind(document)

    monkeypatch.setattr(contents, "read_path", read)
    monkeypatch.setattr(contents, "_name_kind", name)
    assert find_contents([path]).objects == {"Pod": 3}
    assert steps == ["read", "counted"] * 3


def test_what_has_nothing_to_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("text")
    empty, packed = tmp_path / "empty.json", tmp_path / "empty.gz"
    empty.touch()
    packed.write_bytes(gzip.compress(b""))
    paths = [str(folder), str(empty), str(packed)]
    assert find_contents(paths) == Contents({}, {}, tuple(paths[1:]), (paths[0],))


def test_the_files_of_a_directory_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"kind": "Pod", "apiVersion": "v1"})
    write(tmp_path / "b.json", {"kind": "Pod", "apiVersion": "v1"})
    assert find_contents([str(tmp_path)]).objects == {"Pod": 2}
