"""The contents of an image: the packages of Debian and of Python in its files, and the files of neither."""

import email
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from typing import Final

from msgspec import Struct

DPKG: Final = "var/lib/dpkg/status.d/"
PACKAGES: Final = "packages/"
BUILD_FILES: Final = ("etc/passwd", "etc/group", "etc/os-release", DPKG, "usr/share/doc/")
"""Written by deploy/image/assemble.py."""
_PYTHON: Final = re.compile(r"\Ausr/local/lib/python3\.\d+/")
_VERSION: Final = re.compile(rb"\x00(3\.\d+\.\d+)(?:\+)?\x00")


class Package(Struct, frozen=True, order=True):
    """A package. `kind` is that of package URLs: deb, pypi, npm or generic.

    `license` is as the package writes it, or "".
    """

    kind: str
    name: str
    version: str
    license: str = ""
    source: str = ""
    architecture: str = ""


class Contents(Struct, frozen=True):
    """The contents of an image.

    `distribution` is like debian-12, `digest` is of its configuration, `unknown` are paths.

    `created` is an RFC 3339 time, that of the commit.
    """

    packages: tuple[Package, ...]
    unknown: tuple[str, ...]
    distribution: str
    digest: str
    created: str


def read_contents(archive: Path) -> Contents:
    """Return the contents of an image in a docker archive, its layers laid over each other."""
    files: dict[str, bytes] = {}
    with tarfile.open(archive) as image:
        (manifest,) = json.load(_open_member(image, "manifest.json"))
        configuration = json.load(_open_member(image, manifest["Config"]))
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=_open_member(image, layer)) as tar:
                for entry in tar:
                    if entry.isfile():
                        data = tar.extractfile(entry)
                        assert data is not None
                        files[entry.name.removeprefix("./")] = data.read()
    return read_files(files, f"sha256:{Path(manifest['Config']).stem}", configuration["created"])


def read_files(files: Mapping[str, bytes], digest: str, created: str) -> Contents:
    """Return the contents of regular files, by path without a leading slash."""
    packages = [*_find_debian_packages(files), *_find_python_packages(files), *_find_vendored_packages(files)]
    unknown = [
        path
        for path in files
        if not path.startswith((*BUILD_FILES, PACKAGES)) and path not in _find_packaged_files(files)
    ]
    unknown = [path for path in unknown if not path.endswith(".pyc")]
    if any(_PYTHON.search(path) for path in unknown):
        # Not from a Debian package: the interpreter of the official image, below /usr/local.
        packages.append(Package("generic", "cpython", _find_interpreter(files), "PSF-2.0"))
        unknown = [path for path in unknown if not path.startswith("usr/local/")]
    release = _parse_fields(files.get("etc/os-release", b"").decode(), "=")
    distribution = "-".join(release[key].strip('"') for key in ("ID", "VERSION_ID") if key in release)
    return Contents(tuple(sorted(packages)), tuple(sorted(unknown)), distribution, digest, created)


def _open_member(image: tarfile.TarFile, name: str) -> io.BufferedIOBase:
    entry = image.getmember(name)
    found = image.extractfile(entry)
    assert found is not None
    return found  # type: ignore[return-value] # typeshed says IO[bytes]


def _find_debian_packages(files: Mapping[str, bytes]) -> Iterator[Package]:
    for path, data in files.items():
        if path.startswith(DPKG) and not path.endswith(".md5sums"):
            stanza = _parse_fields(data.decode(), ":")
            source = stanza.get("Source", stanza["Package"]).partition(" ")[0]
            yield Package("deb", stanza["Package"], stanza["Version"], "", source, stanza["Architecture"])


def _find_packaged_files(files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the files of the Debian packages."""
    lists = [data for path, data in files.items() if path.startswith(DPKG) and path.endswith(".md5sums")]
    return frozenset(line.partition("  ")[2] for data in lists for line in data.decode().splitlines())


def _find_python_packages(files: Mapping[str, bytes]) -> Iterator[Package]:
    for path, data in files.items():
        if path.startswith(PACKAGES) and path.endswith(".dist-info/METADATA"):
            head: Message = email.message_from_bytes(data)
            license_ = head["License-Expression"] or head["License"] or ""
            # Some put the whole text there.
            yield Package("pypi", head["Name"], head["Version"], license_ if "\n" not in license_ else "")


def _find_vendored_packages(files: Mapping[str, bytes]) -> Iterator[Package]:
    """Yield libraries of npm that lie whole in a Python package, each with a note of its origin."""
    for path, data in files.items():
        if re.search(r"/vendor/[^/]+\.json\Z", path):
            origin = json.loads(data)
            yield Package("npm", origin["name"], origin["version"], origin["license"])


def _find_interpreter(files: Mapping[str, bytes]) -> str:
    """Return the version of CPython, from its own binary."""
    for path, data in files.items():
        if re.search(r"/(?:libpython3\.\d+\.so[.\d]*|python3(?:\.\d+)?)\Z", path) and (found := _VERSION.search(data)):
            return found[1].decode()
    return "unknown"


def _parse_fields(text: str, separator: str) -> dict[str, str]:
    pairs = (line.partition(separator) for line in text.splitlines() if not line.startswith((" ", "#")))
    return {name.strip(): value.strip() for name, found, value in pairs if found}
