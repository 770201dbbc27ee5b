"""Krew's own validator, which its index runs on every manifest, accepts the one of `make krew`."""

import subprocess
from pathlib import Path

import pytest

from lab.e2e.toolchain import build
from tools.release import krew
from tools.release.package import read_project

SOURCE = Path(krew.__file__).parent / "go" / "krew"
URL = "https://git.example/platform/lease-webhook"


def validate(file: Path) -> "subprocess.CompletedProcess[str]":
    program = build(SOURCE, "sigs.k8s.io/krew/cmd/validate-krew-manifest", "validate-krew-manifest")
    # It would download the archives next, which are not there.
    command = [str(program), f"-manifest={file}", "-skip-install"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write_manifest(directory: Path, name: str = "lease-webhook") -> Path:
    checksums = {platform: f"{number:064x}" for number, platform in enumerate(krew.PLATFORMS)}
    manifest = krew.make_manifest(URL, read_project()["version"], checksums)
    file = directory / f"{name}.yaml"
    file.write_text(krew.format_yaml(manifest))
    return file


def test_the_manifest_is_valid(tmp_path: Path) -> None:
    result = validate(write_manifest(tmp_path))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["lease"])
def test_another_file_name_is_not(name: str, tmp_path: Path) -> None:
    assert validate(write_manifest(tmp_path, name)).returncode != 0
