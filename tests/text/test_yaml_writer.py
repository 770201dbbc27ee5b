"""What is written reads back, document by document, without aliases."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.admission.policy import parse as policy_yaml
from webhook.analysis.history.audit_log.refusal import RefusedBy
from webhook.text import yaml_reader
from webhook.text.yaml_writer import write_comment, write_flow, write_scalar, write_stream

SHARED = {"b": "1", "a": ["yes", "two\nlines\n"]}
PRINTABLE = st.text().filter(str.isprintable)


def test_documents_read_back_in_their_order() -> None:
    text = write_stream([{"z": SHARED, "y": SHARED}, {"x": "long " * 1000}])
    assert list(yaml.safe_load_all(text)) == [{"z": SHARED, "y": SHARED}, {"x": "long " * 1000}]
    assert text.startswith("---\nz:\n  b: '1'\n  a:\n  - 'yes'\n  - |\n    two\n")
    assert "&" not in text


def test_a_member_of_an_enumeration_is_its_text() -> None:
    written = write_stream([{RefusedBy.WEBHOOK: RefusedBy.WEBHOOK}])
    assert written == write_stream([{RefusedBy.WEBHOOK.value: RefusedBy.WEBHOOK.value}])


@pytest.mark.parametrize(
    "word", ["on", "No", "null", "true", "007", "1e3", "-.5", "~", "a: b", "2026-01-31", "${pod}_*", ""]
)
def test_nothing_is_read_as_another_type(word: str) -> None:
    assert yaml.safe_load(write_scalar(word)) == word
    assert policy_yaml.read(f"a: {write_scalar(word)}") == {"a": word}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("db-0\u2800is gone", r'"db-0\u2800is gone"'),
        ("db\u3164", r'"db\u3164"'),
        ("db\U000e0100", r'"db\U000e0100"'),
        ("p\u0430yroll", r'"p\u0430yroll"'),
        ("a\xadb", r'"a\xadb"'),
        ("M\xfcller", '"M\xfcller"'),
    ],
    ids=["a blank", "a letter that draws nothing", "beyond 16 bits", "a lookalike", "a hyphen", "what people see"],
)
def test_what_people_would_not_see_in_a_name_is_escaped(text: str, written: str) -> None:
    assert write_scalar(text) == written
    assert yaml.safe_load(written) == text
    assert policy_yaml.read(f"a: {written}") == {"a": text}


@pytest.mark.parametrize("word", ["y", "N", "1e3", "0o7", "08", "1.e2", "-.5e3", "0X1F", "1_000", "=", "<<", "07"])
def test_kubectl_reads_no_text_as_another_type(word: str) -> None:
    written = write_stream([{word: word}])
    assert yaml_reader.read(written) == {word: word}
    assert yaml.safe_load(written) == {word: word}


@given(st.lists(PRINTABLE, max_size=4), st.text())
def test_a_list_with_a_comment_is_one_line(texts: list[str], remark: str) -> None:
    line = f"a: {write_flow(texts)}  {write_comment(remark)}"
    assert yaml.safe_load(line) == {"a": texts}
    assert policy_yaml.read(line) == {"a": texts}
    assert len(line.splitlines()) == 1
