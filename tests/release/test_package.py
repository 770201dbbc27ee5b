"""What the wheel must hold beside modules."""

import tomllib

from tools.release.package import ROOT

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
