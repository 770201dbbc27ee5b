"""`make version`: the version of this checkout; TAG= must name it too, and SET= writes it wherever it stands.

Everything that names the version must agree, or a release would contradict itself.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.release.package import ROOT, read_project

_NUMBER: Final = r"(\d+\.\d+\.\d+)"
_EXAMPLE: Final = (
    r"(?:\bregistry\.example/lease-webhook:|, newTag: |\bimage\.tag=|\blease[-_]webhook-|/lease-webhook@v|\brev: v)"
    rf"{_NUMBER}\b"
)
"""The version where an example names an image, a file of a release, or a tag of this repository."""


class Place(Struct, frozen=True):
    """Where the version, or its day, stands. `pattern` has it as its only group; `name` is for people."""

    file: str
    pattern: str
    name: str


_PROJECT: Final = Place("pyproject.toml", rf'^version = "{_NUMBER}"$', "pyproject.toml")
_CHANGES: Final = Place("CHANGELOG.md", rf"^## \[{_NUMBER}\] - \d", "the newest section of CHANGELOG.md")
_DAY_OF_CHANGES: Final = Place("CHANGELOG.md", r"^## \[\d\S*\] - (\S+)$", "the newest section of CHANGELOG.md")
_DAY_OF_CITATION: Final = Place("CITATION.cff", r'^date-released: "(\S+)"$', "date-released in CITATION.cff")
_VERSIONS: Final = (
    _PROJECT,
    Place("deploy/chart/Chart.yaml", rf"^version: {_NUMBER}$", "version in Chart.yaml"),
    Place("deploy/chart/Chart.yaml", rf"^appVersion: {_NUMBER}$", "appVersion in Chart.yaml"),
    Place("CITATION.cff", rf"^version: {_NUMBER}$", "version in CITATION.cff"),
)
"""What names the version once, but for the changelog, which only a person can write."""


def _list_examples(root: Path) -> Iterator[Place]:
    pages = sorted([*(root / "docs").rglob("*.md"), *(root / "deploy").rglob("*.md")])
    for path in (root / "README.md", *pages, root / "deploy" / "Dockerfile", root / "webhook" / "cli" / "export.py"):
        name = str(path.relative_to(root))
        yield Place(name, _EXAMPLE, f"an example in {name}")


def _find(root: Path, place: Place) -> list[str]:
    found: list[str] = re.findall(place.pattern, (root / place.file).read_text(), re.MULTILINE)
    return found


def read_versions(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return each place that names the version, and which; that of pyproject.toml is the first."""
    found = [(place.name, version) for place in _VERSIONS for version in _find(root, place)]
    found += [(_CHANGES.name, version) for version in _find(root, _CHANGES)[:1]]
    return found + [
        (place.name, version) for place in _list_examples(root) for version in sorted({*_find(root, place)})
    ]


def read_days(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return each place that names the day of the newest version, and which."""
    places = (_DAY_OF_CHANGES, _DAY_OF_CITATION)
    return [(place.name, day) for place in places for day in _find(root, place)[:1]]


def find_problems(versions: Sequence[tuple[str, str]], days: Sequence[tuple[str, str]], tag: str) -> list[str]:
    """Return the places that disagree with the first of their kind; `tag` is "" if there is none."""
    problems = [
        f"{place} says {text}, not {found[0][1]}"
        for found in (versions, days)
        for place, text in found
        if text != found[0][1]
    ]
    version = versions[0][1]
    if tag and tag != f"v{version}":
        problems.append(f"the tag is {tag}, not v{version}")
    return problems


def set_version(version: str, root: Path = ROOT) -> list[str]:
    """Write the version, and the day of its section in CHANGELOG.md, wherever they stand. Return the files changed."""
    if _find(root, _CHANGES)[:1] != [version]:
        raise ValueError(f"write the section of {version} in CHANGELOG.md first: ## [{version}] - DATE")
    values = [(place, version) for place in (*_VERSIONS, *_list_examples(root))]
    changed: list[str] = []
    for place, value in [*values, (_DAY_OF_CITATION, _find(root, _DAY_OF_CHANGES)[0])]:
        path = root / place.file
        before = path.read_text()
        after = re.sub(place.pattern, partial(_put, value), before, flags=re.MULTILINE)
        if after != before:
            path.write_text(after)
            changed.append(place.file)
    return sorted({*changed})


def _put(value: str, found: re.Match[str]) -> str:
    """Return what was matched, with another value in place of the group."""
    start = found.start()
    return found[0][: found.start(1) - start] + value + found[0][found.end(1) - start :]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the version or the disagreements. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.version", description=__doc__)
    parser.add_argument("--tag", default="")
    parser.add_argument("--set", default="", dest="wanted", metavar="VERSION")
    options = parser.parse_args(arguments)
    if options.wanted:
        try:
            changed = set_version(options.wanted)
        except ValueError as problem:
            print(f"FAILED: {problem}", file=sys.stderr)
            return 1
        print("\n".join(changed), file=sys.stderr)
    if wrong := find_problems(read_versions(), read_days(), options.tag):
        print("\n".join(f"FAILED: {problem}" for problem in wrong), file=sys.stderr)
        return 1
    print(read_project()["version"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
