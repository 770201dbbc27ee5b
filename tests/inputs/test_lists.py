"""A List in a file is read item by item, and gives what the same bytes give as one piece of text."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.factories import make_lease, put
from webhook.analysis.inputs import documents, files
from webhook.analysis.inputs.documents import Document, LastLine
from webhook.analysis.inputs.items import Unreadable

ITEMS = [make_lease(put("metadata.name", f"checkout-{number}")) for number in range(3)]
KUBECTL = json.dumps(
    {"apiVersion": "v1", "items": ITEMS, "kind": "List", "metadata": {"resourceVersion": ""}}, indent=4
)
SERVER = json.dumps({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": ITEMS})
MARKS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    '"',
    " ",
    "\n",
    "\0",
    "1",
    '"items": []',
    '"kind": "Role"',
    "\ufeff",
    "---\n",
    KUBECTL,
]


class Pipe(io.BytesIO):
    """A file that can be read once, as a pipe."""

    def seekable(self) -> bool:
        return False


def found(data: bytes, *, is_file: bool) -> list[Document | Unreadable | LastLine]:
    read = files.read(io.BytesIO(data) if is_file else Pipe(data), "list.json")
    # msgspec leaves the white space after the last item at it.
    return [
        replace(one, text=one.text.strip(), source=replace(one.source, text=one.text.strip()))
        if isinstance(one, Document)
        else one
        for one in read
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(KUBECTL, id="kubectl"),
        pytest.param(SERVER, id="the API server"),
        pytest.param("\n\n" + KUBECTL + "\n", id="blank lines around it"),
        pytest.param("\ufeff" + KUBECTL, id="a byte order mark"),
        pytest.param(KUBECTL.replace(json.dumps(ITEMS, indent=4), ""), id="cut off"),
        pytest.param(KUBECTL[: len(KUBECTL) // 2], id="cut off within an item"),
        pytest.param(KUBECTL + KUBECTL, id="two Lists"),
        pytest.param(KUBECTL + "\n---\nkind: Pod\n", id="YAML after it"),
        pytest.param(KUBECTL.replace('"List"', '"Role"'), id="not a List"),
        pytest.param(SERVER.replace(', {"apiVersion"', ' {"apiVersion"', 1), id="a comma is missing"),
        pytest.param(SERVER.replace("}]}", "},]}"), id="a comma too many"),
        pytest.param(SERVER.replace("}]}", '}], "items": []}'), id="items twice"),
        pytest.param(
            '{"kind": "LeaseList", "items": [ ], "metadata": {"name": "nothing in it, and longer than it is"}}',
            id="empty",
        ),
        pytest.param(
            '{"metadata": {"items": [1]}, "kind": "List", "a": "longer than the start of a file that is seen"}',
            id="inside",
        ),
        pytest.param(
            '{"a": "\\"items\\": [", "kind": "List", "b": "longer than the start of a file that is looked at"}',
            id="text",
        ),
        pytest.param("{" + " " * 3000 + SERVER[1:], id="a long head"),
    ],
)
def test_a_file_gives_what_a_pipe_gives(text: str) -> None:
    data = text.encode()
    assert found(data, is_file=True) == found(data, is_file=False)


@given(
    text=st.sampled_from([KUBECTL, SERVER]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(MARKS)), max_size=3),
)
def test_so_it_does_however_the_list_is_broken(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, removed, added in edits:
        place = int(where * len(text))
        text = text[:place] + added + text[place + removed :]
    assert found(text.encode(), is_file=True) == found(text.encode(), is_file=False)


def test_pieces_may_end_anywhere() -> None:
    for size in (1, 7, 100):
        data = KUBECTL.encode()
        first = data.index(b"[") + 1
        pieces = [data[:first], *(data[place : place + size] for place in range(first, len(data), size))]
        items = documents.split_list("list.json", lambda pieces=pieces: iter(pieces))  # type: ignore[misc]
        assert items is not None
        assert [json.loads(one.text) for one in items if isinstance(one, Document)] == ITEMS


def test_a_value_without_an_end_is_not_looked_for_forever() -> None:
    pieces = [b'{"kind": "List", "items": ["', *([b"a" * 2**20] * 30)]
    assert documents.split_list("list.json", lambda: iter(pieces)) is None


@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "lines"])
@pytest.mark.parametrize("is_file", [True, False], ids=["file", "pipe"])
def test_an_item_that_nests_too_deeply_hides_no_other(is_file: bool, indent: int | None) -> None:
    deep = "[" * 1500 + "]" * 1500
    text = json.dumps({"kind": "List", "items": [ITEMS[0], {"metadata": "HERE"}, ITEMS[2]]}, indent=indent)
    items = found(text.replace('"HERE"', deep).encode(), is_file=is_file)
    assert [one.error if isinstance(one, Unreadable) else json.loads(one.text) for one in items] == [
        ITEMS[0],
        "nested too deeply",
        ITEMS[2],
    ]


def test_a_list_whose_last_item_neither_can_be_read_nor_ends_is_none() -> None:
    pieces = [b'{"kind": "List", "items": [{}, ', b"[" * 5000]
    assert documents.split_list("list.json", lambda: iter(pieces)) is None


def test_what_does_not_begin_as_a_list_is_none() -> None:
    assert documents.split_list("list.json", lambda: iter([b"[1, 2]"])) is None


def test_what_stands_before_it_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("# a comment\n" + KUBECTL)
    with path.open("rb", buffering=1024) as file:
        file.readline()
        assert len([*files.read(file, "-")]) == len(ITEMS)
