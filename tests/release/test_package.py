"""What the wheel must hold beside modules."""

import tomllib
from pathlib import Path

import pytest

from tools.release.package import ROOT, interpreter

PACKAGE = ROOT / "webhook"


def test_every_file_that_is_no_module_is_packed() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        tool = tomllib.load(file)["tool"]["setuptools"]
    packed = {
        path
        for package, patterns in tool["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path for path in files if path.suffix != ".py"} == packed


def test_the_licenses_are_of_files_that_are_there() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert {ROOT / name for name in project["license-files"]} == {ROOT / "LICENSE", *PACKAGE.rglob("LICENSE*")}


def test_an_interpreter_that_pyenv_has_and_did_not_choose_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreter("python3.99") == str(program)
    assert interpreter("python3.98") == ""
