"""A command that rejects its input, or prints nothing, yields no figure: it would look cheap and short."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import costs, reading_costs

Content = Callable[[int], Iterator[str]]
INPUTS: dict[str, Content] = {
    "documents": costs.make_documents,
    "a list": costs.make_list,
    "the output of Helm": costs.make_helm_output,
}


def make_broken(_: int) -> Iterator[str]:
    yield "a: ["


def make_one_too_few(count: int) -> Iterator[str]:
    yield from costs.make_documents(count - 1)


@pytest.mark.parametrize("command", ["check", "doctor"])
@pytest.mark.parametrize("content", INPUTS.values(), ids=INPUTS)
def test_a_command_takes_what_is_measured(command: str, content: Content, tmp_path: Path) -> None:
    assert costs.measure(tmp_path, command, content, 3).seconds > 0


@pytest.mark.parametrize(
    ("command", "content"),
    [
        pytest.param("check", make_broken, id="check of what cannot be read"),
        pytest.param("check", make_one_too_few, id="check of fewer leases"),
        pytest.param("doctor", make_broken, id="doctor of what cannot be read"),
    ],
)
def test_what_a_command_refuses_has_no_cost(command: str, content: Content, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        costs.measure(tmp_path, command, content, 3)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param(2, "unreadable", id="a failure"),
        pytest.param(0, "\n", id="nothing"),
    ],
)
def test_words_are_counted_of_what_is_said(status: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: list[str]) -> int:
        print(text)
        return status

    monkeypatch.setattr(reading_costs, "run_command", run)
    with pytest.raises(RuntimeError):
        reading_costs.print_output(["why"])
