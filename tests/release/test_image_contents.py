"""An image's files, read back as packages; and what the build stage writes about them."""

import importlib.util
import io
import json
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.deploy.sources import DEPLOY
from tools.release.image_contents import Package, read_contents, read_files

STANZA = b"""Package: libssl3
Status: install ok installed
Architecture: amd64
Version: 3.0.17-1~deb12u2
Source: openssl (3.0.17-1)
Description: Secure Sockets Layer toolkit
 Version: not this one
"""
FILES = {
    "var/lib/dpkg/status.d/libssl3": STANZA,
    "var/lib/dpkg/status.d/libssl3.md5sums": b"0123  lib/libssl.so.3\n",
    "lib/libssl.so.3": b"",
    "usr/share/doc/libssl3/copyright": b"",
    "etc/os-release": b'ID=debian\nVERSION_ID="12"\nNAME="Debian GNU/Linux"\n',
    "etc/passwd": b"",
    "packages/flask/app.py": b"",
    "packages/flask-3.1.3.dist-info/METADATA": b"Name: Flask\nVersion: 3.1.3\nLicense-Expression: BSD-3-Clause\n\ntext",
}
D3 = Package("npm", "d3", "7.9.2", "ISC")
LIBRARY = Package("deb", "libssl3", "3.0.17-1~deb12u2", "", "openssl", "amd64")
FLASK = Package("pypi", "Flask", "3.1.3", "BSD-3-Clause")


def test_packages_of_debian_and_of_python() -> None:
    contents = read_files(FILES, "sha256:a", "")
    assert contents.packages == (LIBRARY, FLASK)
    assert contents.unknown == ()
    assert contents.distribution == "debian-12"


def test_a_file_of_no_package_is_named() -> None:
    assert read_files(FILES | {"usr/bin/sh": b""}, "", "").unknown == ("usr/bin/sh",)


def test_the_official_image_brings_an_interpreter_of_its_own() -> None:
    python = {
        "usr/local/bin/python3.13": b"\x7fELF\x00",
        "usr/local/lib/libpython3.13.so.1.0": b"\x7fELF\x003.13.9\x00",
        "usr/local/lib/python3.13/abc.py": b"",
    }
    contents = read_files(FILES | python, "", "")
    assert set(contents.packages) == {LIBRARY, FLASK, Package("generic", "cpython", "3.13.9", "PSF-2.0")}
    assert contents.unknown == ()


def test_a_library_that_a_package_carries() -> None:
    origin = b'{"name": "d3", "version": "7.9.2", "license": "ISC", "file": "d3.min.js"}'
    contents = read_files({"packages/webhook/analysis/timeline/page/vendor/d3.json": origin}, "", "")
    assert contents.packages == (D3,)


def test_a_license_text_is_not_a_license_name() -> None:
    metadata = b"Name: a\nVersion: 1\nLicense: Copyright\n        All rights\n\n"
    assert read_files({"packages/a-1.dist-info/METADATA": metadata}, "", "").packages == (Package("pypi", "a", "1"),)


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def test_layers_of_an_archive_are_laid_over_each_other(tmp_path: Path) -> None:
    manifest = [{"Config": "abc.json", "Layers": ["1.tar", "2.tar"]}]
    first = FILES | {"etc/os-release": b"ID=other"}
    layers = {"1.tar": tarred(first), "2.tar": tarred({"./etc/os-release": FILES["etc/os-release"]})}
    configuration = json.dumps({"created": "2026-11-22T00:00:00Z"}).encode()
    archive = tmp_path / "image.tar"
    archive.write_bytes(tarred({"manifest.json": json.dumps(manifest).encode(), "abc.json": configuration, **layers}))
    assert read_contents(archive) == read_files(FILES, "sha256:abc", "2026-11-22T00:00:00Z")


@pytest.fixture
def assemble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program of the build stage, with a database of dpkg of its own."""
    spec = importlib.util.spec_from_file_location("assemble", DEPLOY / "image" / "assemble.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DPKG", tmp_path / "dpkg")
    (tmp_path / "dpkg" / "info").mkdir(parents=True)
    return module


def test_the_build_stage_names_the_packages_of_the_files_that_it_copied(
    assemble: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One library as its package brought it, one behind a link; a program of no package.
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "libz.so.1.3").write_text("z")
    (stage / "libz.so.1").symlink_to("libz.so.1.3")
    (stage / "program").write_text("")
    inside = str(stage).lstrip("/")
    (tmp_path / "dpkg" / "info" / "zlib1g:amd64.md5sums").write_text(f"0123  {inside}/libz.so.1.3\n")
    (tmp_path / "dpkg" / "info" / "other.md5sums").write_text("4567  usr/bin/other\n")
    (tmp_path / "dpkg" / "status").write_text("Package: other\nVersion: 1\n\nPackage: zlib1g\nVersion: 1.3\n\n")
    tree = tmp_path / "tree"
    for name in ("libz.so.1", "program"):
        assemble._copy(stage / name, tree)
    assemble._name_the_packages(tree)
    recorded = tree / str(tmp_path).lstrip("/") / "dpkg" / "status.d"
    assert {path.name: path.read_text() for path in recorded.iterdir()} == {
        "zlib1g": "Package: zlib1g\nVersion: 1.3\n",
        "zlib1g.md5sums": f"0123  {inside}/libz.so.1\n",
    }


@pytest.mark.parametrize(
    ("path", "merged"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
        ("lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
        ("/usr/bin/python3.11", "bin/python3.11"),
        ("/usr/share/doc", "usr/share/doc"),
        ("/usr/local/lib/python3.13", "usr/local/lib/python3.13"),
    ],
)
def test_paths_are_the_same_before_and_after_usr_was_merged(assemble: ModuleType, path: str, merged: str) -> None:
    assert assemble._merge(path) == merged
