"""What the README shows is what happens: its commands, their output, and the table of the rules."""

import io
import json
import re
import shlex
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

import pytest

from webhook.cli.main import main
from webhook.cli.rules import markdown
from webhook.policy_file import load
from webhook.server.respond import respond

ROOT: Final = Path(__file__).parents[1]
README: Final = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def examples() -> list[tuple[str, str]]:
    """(command, output) of every console block of the section that shows the webhook at work."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", section("See it work"), re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, output = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n(.*)", example, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches any example
            found.append((command.replace("\\\n", " "), output))
    return found


def printed(command: str) -> str:
    words = shlex.split(command)
    if words[0] == "curl":
        (body,) = (word.removeprefix("@") for word in words if word.startswith("@"))
        reply = respond((ROOT / body).read_bytes(), load(None), time.time_ns() // 1000)
        return json.dumps(json.loads(reply.body), indent=4) + "\n"
    assert words[0] == ".venv/bin/lease-webhook"
    out = io.StringIO()
    with redirect_stdout(out):
        main(words[1:])
    return out.getvalue()


@pytest.mark.parametrize(("command", "output"), examples(), ids=lambda text: text.partition("\n")[0][-60:])
def test_a_command_prints_what_the_readme_shows(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    assert printed(command) == output


def test_an_allow_and_a_deny_are_shown() -> None:
    answers = [json.loads(output) for command, output in examples() if command.startswith("curl")]
    assert [answer["response"]["allowed"] for answer in answers] == [True, False]


def test_the_table_of_rules_is_that_of_the_code() -> None:
    table = [line for line in section("The rules").splitlines() if line.startswith("|")]
    assert table == markdown(), "print it again: lease-webhook rules --format markdown"
