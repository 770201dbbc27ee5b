"""The line of a document and of each of its fields, in every form in which a file may have them."""

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.files import read
from webhook.analysis.inputs.items import Unreadable
from webhook.analysis.inputs.lines import Source, find_sources

YAML = """\
# a comment
kind: Lease

metadata: {name: a,
  labels: {app: a}}
spec:
  holderIdentity: b
  preferredStrategies:
  - x
  - y
---

kind: Lease
"""
LIST = """\
{
  "kind": "LeaseList",
  "items": [
    {"metadata": {"name": "a"}},
    {
      "spec": {
        "holderIdentity": "b"
      }
    }
  ]
}
"""


def documents(text: str) -> list[Document | Unreadable]:
    return [one for one in read(io.BytesIO(text.encode()), "x.yaml") if isinstance(one, Document | Unreadable)]


def line(text: str, number: int, path: str) -> int:
    document = documents(text)[number]
    assert isinstance(document, Document)
    return document.source.find_line(path)


@pytest.mark.parametrize(
    ("text", "number", "path", "expected"),
    [
        pytest.param(YAML, 0, "", 2, id="YAML: a document begins after its comments"),
        pytest.param(YAML, 1, "", 13, id="YAML: the second document"),
        pytest.param(YAML, 0, "metadata.name", 4, id="YAML: in braces"),
        pytest.param(YAML, 0, "metadata.labels[app]", 5, id="YAML: a label"),
        pytest.param(YAML, 0, "spec.preferredStrategies[1]", 10, id="YAML: an element"),
        pytest.param(YAML, 0, "spec.preferredStrategies[7]", 8, id="YAML: an element that is not there"),
        pytest.param(YAML, 0, "spec.renewTime", 6, id="YAML: an absent field has the line of what it is in"),
        pytest.param(YAML, 0, "spec.holderIdentity.x", 7, id="YAML: inside of a text"),
        pytest.param("a: &x {b: 1}\nc: *x\n", 0, "c.b", 2, id="YAML: an alias"),
        pytest.param("? [a]\n: 1\nb: 2\n", 0, "b", 0, id="YAML: a key that is a list is refused"),
        pytest.param("kind: List\nitems:\n- {}\n- spec:\n    x: 1\n", 1, "spec.x", 5, id="YAML: an item of a List"),
        pytest.param(LIST, 0, "metadata.name", 4, id="JSON: an item of a List on one line"),
        pytest.param(LIST, 1, "", 5, id="JSON: an item of a List on several"),
        pytest.param(LIST, 1, "spec.holderIdentity", 7, id="JSON: a field of it"),
        pytest.param("[\n{},\n{}]", 1, "", 3, id="JSON: an element of an array"),
        pytest.param('{"kind":"a"}\n{"kind":"b"}\n', 1, "kind", 2, id="JSON lines"),
        pytest.param('{"a":\n\t"b"}', 0, "a", 1, id="JSON with tabs"),
    ],
)
def test_the_line_at_which_a_field_is_found(text: str, number: int, path: str, expected: int) -> None:
    if expected:
        assert line(text, number, path) == expected
    else:
        assert isinstance(documents(text)[number], Unreadable)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("\n\nkind: Lease\nspec: {\n", [5], id="YAML: where the error is"),
        pytest.param("kind: a\n---\n\nfoo\n", [0, 4], id="no object"),
        pytest.param('{"kind": "a"}\n{"kind" "b"}\n', [0, 2], id="JSON"),
    ],
)
def test_line_of_what_cannot_be_read(text: str, expected: Sequence[int]) -> None:
    assert [one.line if isinstance(one, Unreadable) else 0 for one in documents(text)] == expected


def test_what_is_not_in_a_file_has_no_line() -> None:
    assert Source().find_line("spec") == 0


@given(st.text(max_size=40) | st.binary(max_size=40), st.text(max_size=20))
def test_a_line_is_found_or_the_first_whatever_the_text(text: str | bytes, path: str) -> None:
    rows = len(text.splitlines()) + 1
    assert 3 <= Source(text, 3).find_line(path) <= 3 + rows


@pytest.mark.parametrize("text", ["", "# a comment alone\n", "- a list\n", "items: 7\n", "kind: List\n"])
def test_a_text_without_items_has_no_sources_and_its_only_line_is_the_first(text: str) -> None:
    assert [*find_sources(text, 3)] == []
    assert Source(text, 3).find_line("metadata.name") == 3
