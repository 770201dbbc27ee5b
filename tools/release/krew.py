"""`make krew`: `kubectl lease-webhook` for Krew: an archive for each platform, and the manifest with checksums.

An archive holds the program with all that it imports, from the lock file; it needs only Python. One directory serves
every supported version of it, because the names of compiled modules contain the version.
"""

import argparse
import gzip
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Final

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.release.package import DIST, ROOT, list_supported, read_project
from tools.release.reproducible import read_moment

SOURCE: Final = ROOT / "deploy" / "krew"
PLATFORMS: Final = {
    "linux-amd64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "darwin-arm64": ("macosx_11_0_arm64",),
}
"""Krew's `os` and `arch`, and the platforms of wheels that run there."""
START: Final = """\
import sys

from webhook.cli.main import script

sys.argv[0] = "kubectl-lease_webhook"
script()
"""


def make_manifest(url: str, version: str, checksums: dict[str, str]) -> dict[str, Any]:
    """Return the manifest of a release; `url` is the repository's, `checksums` are SHA-256 by platform."""
    made: dict[str, Any] = yaml.safe_load((SOURCE / "lease-webhook.yaml").read_text())
    made["spec"] = {"version": f"v{version}", "homepage": url, **made["spec"]}
    for platform in made["spec"]["platforms"]:
        labels = platform["selector"]["matchLabels"]
        name = f"{labels['os']}-{labels['arch']}"
        platform["uri"] = f"{url}/releases/download/v{version}/{make_archive_name(name)}"
        platform["sha256"] = checksums[name]
    return made


class _Dumper(yaml.SafeDumper):
    """A dumper that writes text of several lines as a block, as people do."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Return the node of one string."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.represent_str)


def format_yaml(made: dict[str, Any]) -> str:
    """Return a manifest as a file, its keys in the order of the template."""
    return yaml.dump(made, Dumper=_Dumper, sort_keys=False, width=1000)


def make_archive_name(platform: str) -> str:
    """Return the file name of an archive."""
    return f"kubectl-lease_webhook-{platform}.tar.gz"


def make_archive(tree: Path, at: int) -> bytes:
    """Return a directory as tar.gz, the same bytes for the same contents; `at` is the Unix time of every file."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=at) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path in sorted(tree.rglob("*")):
            entry = tar.gettarinfo(path, path.relative_to(tree).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = at
            entry.mode = 0o755 if path.is_dir() or entry.mode & 0o100 else 0o644
            if path.is_file():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)
    return packed.getvalue()


def list_locked() -> str:
    """Return the lines of the lock file, with hashes, of all imports of the commands."""
    names = set(_find_requirements([Requirement(line).name for line in read_project()["dependencies"]]))
    blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / "requirements.txt").read_text())
    chosen = [block for block in blocks if canonicalize_name(block.partition("==")[0]) in names]
    assert len(chosen) == len(names), "requirements.txt does not hold all of them: make lock"
    return "\n".join(chosen)


def _find_requirements(names: Sequence[str]) -> Iterator[str]:
    """Yield the names and those of everything below them."""
    for name in names:
        yield canonicalize_name(name)
        below = [Requirement(line) for line in requires(name) or ()]
        yield from _find_requirements(
            [one.name for one in below if not one.marker or one.marker.evaluate({"extra": ""})]
        )


def _make_tree(directory: Path, wheel: Path, platforms: Sequence[str]) -> Path:
    """Return the contents of an archive, for wheels of these platforms."""
    tree = directory / "tree"
    requirements = directory / "requirements.txt"
    requirements.write_text(list_locked())
    for python in list_supported():
        version = python.removeprefix("python")
        some = directory / version
        machine = [f"--python-version={version}", "--only-binary=:all:", *(f"--platform={name}" for name in platforms)]
        _run_pip("--require-hashes", *machine, f"--target={some}", f"--requirement={requirements}")
        shutil.copytree(some, tree / "lib", dirs_exist_ok=True)
    _run_pip(f"--target={directory / 'own'}", str(wheel))
    shutil.copytree(directory / "own", tree / "lib", dirs_exist_ok=True)
    for leftover in ("bin", "share"):
        shutil.rmtree(tree / "lib" / leftover, ignore_errors=True)
    # pip's notes about this run.
    for name in ("RECORD", "direct_url.json", "REQUESTED"):
        for path in tree.rglob(f"*.dist-info/{name}"):
            path.unlink()
    (tree / "lib" / "__main__.py").write_text(START)
    shutil.copy(SOURCE / "kubectl-lease_webhook", tree)
    shutil.copy(ROOT / "LICENSE", tree)
    return tree


def _run_pip(*arguments: str) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *arguments], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write archives and manifest beside the wheel, which must be there. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.krew", description=__doc__)
    parser.add_argument("--url", required=True, help="the repository, such as https://git.example/lease-webhook")
    options = parser.parse_args(arguments)
    wheels = [*DIST.glob("*.whl")]
    if len(wheels) != 1:
        print("dist/ must hold one wheel: make package", file=sys.stderr)
        return 1
    at = read_moment()
    checksums: dict[str, str] = {}
    for platform, names in PLATFORMS.items():
        with tempfile.TemporaryDirectory() as directory:
            packed = make_archive(_make_tree(Path(directory), wheels[0], names), at)
        (DIST / make_archive_name(platform)).write_bytes(packed)
        checksums[platform] = hashlib.sha256(packed).hexdigest()
        print(f"dist/{make_archive_name(platform)}: {len(packed) / 1e6:.1f} MB")
    (DIST / "lease-webhook.yaml").write_text(
        format_yaml(make_manifest(options.url, read_project()["version"], checksums))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
