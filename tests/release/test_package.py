"""Files that the wheel and the source distribution must hold beside modules."""

import tarfile
import tomllib
from pathlib import Path

import pytest

from tools.release.package import ROOT, find_interpreter, find_missing

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


def test_a_source_distribution_without_a_file_that_readme_links_to_or_the_image_needs_is_refused(
    tmp_path: Path,
) -> None:
    archive = tmp_path / "lease_webhook-1.0.0.tar.gz"
    left_out = {ROOT / "docs" / "install.md", ROOT / "requirements.txt", ROOT / "certs" / "kustomization.yaml"}
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for path in [
            path for folder in ("certs", "docs", "tests", "webhook", "deploy") for path in (ROOT / folder).rglob("*")
        ]:
            if path not in left_out and not {"data", "__pycache__"} & {*path.parts}:
                packed.add(path, f"lease_webhook-1.0.0/{path.relative_to(ROOT)}", recursive=False)
        for path in ROOT.iterdir():
            if path not in left_out:
                packed.add(path, f"lease_webhook-1.0.0/{path.name}", recursive=False)
    assert find_missing(archive) == ["certs/kustomization.yaml", "docs/install.md", "requirements.txt"]


def test_an_interpreter_that_pyenv_has_and_did_not_choose_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert find_interpreter("python3.99") == str(program)
    assert find_interpreter("python3.98") == ""
