"""deploy/share/ is what the commands say, and the wheel installs all of it."""

import re
import tomllib

import pytest

from tools.docs.man_page import make_man_page
from tools.docs.pages import ROOT
from tools.docs.shared_files import FOLDER, make_shared_files
from webhook.cli.commands import PROGRAM, LazyGroup

DEPLOY = FOLDER.parent
FILES = [pytest.param(path, text, id=path) for path, text in make_shared_files().items()]


@pytest.mark.parametrize(("path", "text"), FILES)
def test_a_file_is_as_the_commands_say(path: str, text: str) -> None:
    assert (FOLDER / path).read_text() == text, "write it again: make docs"


def test_the_wheel_installs_every_file_and_no_other() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        installed = tomllib.load(file)["tool"]["setuptools"]["data-files"]
    files = {path for patterns in installed.values() for pattern in patterns for path in ROOT.glob(pattern)}
    assert files == {path for path in FOLDER.rglob("*") if path.is_file()}
    assert {path.relative_to(FOLDER).as_posix() for path in files} == set(make_shared_files())
    for target, patterns in installed.items():
        assert all(path.parent == DEPLOY / target for pattern in patterns for path in ROOT.glob(pattern))


def test_the_page_has_every_command() -> None:
    def commands(group: LazyGroup, above: str) -> set[str]:
        names: set[str] = set()
        for name, command in group.commands.items():
            names |= commands(command, f"{above} {name}") if isinstance(command, LazyGroup) else {f"{above} {name}"}
        return names

    page = make_man_page().replace("\\-", "-")
    assert set(re.findall(r"^\.SS (.+)$", page, re.MULTILINE)) == commands(PROGRAM, "lease-webhook")


def test_every_line_that_begins_as_a_request_is_one() -> None:
    requests = {line.split()[0] for line in make_man_page().splitlines() if line.startswith((".", "'"))}
    assert requests == {'.\\"', ".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".nf", ".fi"}
