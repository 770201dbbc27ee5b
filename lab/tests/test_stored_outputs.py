"""Stored outputs: text that git shows and merges, in which no difference is lost."""

from pathlib import Path

import pytest

from lab.outputs.stored import MAX_LINE, MAX_LINES, find_file, make_output, read_outputs, write_outputs


@pytest.mark.parametrize(
    ("out", "err"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("a\n\nb\n", "c\n", id="an empty line, and standard error"),
        pytest.param("$ lease-webhook why\nexit code 2\n", "", id="a line like those that the file has of its own"),
        pytest.param("a\r\u2028b\x0cc", "", id="what other programs take for a line break"),
        pytest.param("x" * (MAX_LINE + 1), "", id="a long line"),
        pytest.param("a\n" * (MAX_LINES + 150), "", id="many lines"),
    ],
)
def test_what_is_stored_is_read_again(out: str, err: str, tmp_path: Path) -> None:
    outputs = {one.command: one for one in (make_output("why a", 1, out, err), make_output("audit b", 0, "x\n", ""))}
    assert write_outputs(outputs.values(), tmp_path) == 2
    assert read_outputs(tmp_path) == outputs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("x" * MAX_LINE + "a", "x" * MAX_LINE + "b", id="the end of a long line"),
        pytest.param("a\n" * 400, "a\n" * 399 + "b\n", id="the last of many lines"),
        pytest.param("a\n" * 400, "a\n" * 401, id="how many lines there are"),
        pytest.param("a", "a\n", id="a line break at the end"),
    ],
)
def test_a_difference_beyond_what_is_stored_is_noticed(before: str, after: str) -> None:
    assert make_output("why", 0, before, "") != make_output("why", 0, after, "")


def test_a_command_that_is_no_longer_run_leaves_no_file(tmp_path: Path) -> None:
    write_outputs([make_output("why", 0, "a\n", "")], tmp_path)
    write_outputs([make_output("top", 0, "a\n", "")], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["top.txt"]


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("--help", "help.txt"),
        ("check tests/data/recordings/1.36.3/kubectl --format json", "check-recordings-1.36.3-kubectl.txt"),
        ("why shop/db --input tests/data/incidents/x/audit.log.gz", "why-incidents-x.txt"),
    ],
)
def test_the_outputs_of_a_folder_are_in_one_file(command: str, file: str) -> None:
    assert find_file(command) == file
