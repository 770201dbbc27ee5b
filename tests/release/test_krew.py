"""The manifest is what Krew accepts, equal contents give equal archives, and the launcher finds Python."""

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.release.krew import PLATFORMS, SOURCE, format_yaml, list_locked, make_archive, make_manifest
from tools.release.package import read_project

URL = "https://git.example/platform/lease-webhook"
CHECKSUMS = {platform: f"{number:064x}" for number, platform in enumerate(PLATFORMS)}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(format_yaml(make_manifest(URL, read_project()["version"], CHECKSUMS)))
    return loaded


def test_the_plugin_is_what_krew_accepts(made: dict[str, Any]) -> None:
    # ValidatePlugin in kubernetes-sigs/krew: internal/index/validation/validate.go
    assert (made["apiVersion"], made["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[\w-]+", made["metadata"]["name"])
    assert re.fullmatch(r"v\d+\.\d+\.\d+", made["spec"]["version"])
    assert set(made["spec"]) <= {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
    # Not checked by Krew, but asked for in its developer guide.
    assert made["spec"]["homepage"] == URL
    assert 0 < len(made["spec"]["shortDescription"]) <= 50
    assert made["spec"]["shortDescription"].isprintable()
    assert all(len(line) <= 80 for line in made["spec"]["description"].splitlines())


def test_each_platform_is_what_krew_accepts(made: dict[str, Any]) -> None:
    # validatePlatform and validateSelector, there.
    seen = []
    for platform in made["spec"]["platforms"]:
        assert set(platform) == {"uri", "sha256", "bin", "selector"}
        assert re.fullmatch(r"[a-f0-9]{64}", platform["sha256"])
        assert set(platform["selector"]) == {"matchLabels"}
        labels = platform["selector"]["matchLabels"]
        assert set(labels) == {"os", "arch"}
        name = f"{labels['os']}-{labels['arch']}"
        assert platform["sha256"] == CHECKSUMS[name]
        assert (
            platform["uri"]
            == f"{URL}/releases/download/v{read_project()['version']}/kubectl-lease_webhook-{name}.tar.gz"
        )
        assert (SOURCE / platform["bin"]).stat().st_mode & 0o111
        seen.append(name)
    assert sorted(seen) == sorted(PLATFORMS)


def test_archives_of_the_same_contents_are_the_same_bytes(tmp_path: Path) -> None:
    for name, moment in (("first", 1), ("second", 2)):
        (tmp_path / name / "lib").mkdir(parents=True)
        program = tmp_path / name / "kubectl-lease_webhook"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755 if name == "first" else 0o700)
        os.utime(program, (moment, moment))
        (tmp_path / name / "lib" / "a.py").write_text("")
    packed = make_archive(tmp_path / "first", 1_700_000_000)
    assert packed == make_archive(tmp_path / "second", 1_700_000_000)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as tar:
        assert [(entry.name, entry.mode, entry.uid, entry.mtime) for entry in tar] == [
            ("kubectl-lease_webhook", 0o755, 0, 1_700_000_000),
            ("lib", 0o755, 0, 1_700_000_000),
            ("lib/a.py", 0o644, 0, 1_700_000_000),
        ]


def test_what_the_commands_import_comes_from_the_lock() -> None:
    pinned = re.findall(r"^([a-z-]+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", list_locked(), re.MULTILINE)
    terminal = ["markdown-it-py", "mdurl", "pygments", "rich"]
    assert pinned == sorted(["cffi", "click", "cryptography", "msgspec", "pycparser", "pyyaml", "semver", *terminal])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The launcher as Krew installs it, behind a link, with a program that prints its arguments."""
    store = tmp_path / "store"
    (store / "lib").mkdir(parents=True)
    shutil.copy(SOURCE / "kubectl-lease_webhook", store)
    (store / "lib" / "__main__.py").write_text("import sys; print(sys.argv[1:])")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl-lease_webhook").symlink_to("../store/kubectl-lease_webhook")
    for tool in ("dirname", "readlink"):
        program = shutil.which(tool)
        assert program
        (tmp_path / "bin" / tool).symlink_to(program)
    return tmp_path / "bin"


def launched(installed: Path, *pythons: tuple[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run it where only these interpreters are on the path, each a shell script."""
    for name, script in pythons:
        (installed / name).write_text(f"#!/bin/sh\n{script}\n")
        (installed / name).chmod(0o755)
    command = [str(installed / "kubectl-lease_webhook"), "why", "a b"]
    return subprocess.run(
        command, env={"PATH": str(installed)}, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_launcher_passes_over_a_python_that_is_too_old(installed: Path) -> None:
    done = launched(installed, ("python3", "exit 1"), ("python3.12", f'exec {sys.executable} "$@"'))
    assert (done.returncode, done.stdout, done.stderr) == (0, "['why', 'a b']\n", "")


def test_the_launcher_says_what_is_missing(installed: Path) -> None:
    done = launched(installed, ("python3", "exit 1"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kubectl lease-webhook: needs Python 3.11 or newer on the path\n"
