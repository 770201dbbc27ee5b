"""The previous version: the newest tag that is not this commit, else the commit that set its number.

Without tags, the changelog says which number that is: changes that are unreleased come after the version of this
checkout; where there are none, this checkout is that version, and the previous one is the one before it.
"""

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from msgspec import Struct

from lab.cluster.image import ROOT, Builder
from lab.e2e.toolchain import find_cache_directory

NAME = "lease-webhook:previous"


class Previous(Struct, frozen=True):
    """The previous version. `label` is its name for people, `tree` its checkout, `archive` its image as NAME."""

    label: str
    tree: Path
    archive: Path


def build_previous() -> Previous | None:
    """Build the image of the previous version once; None in a checkout whose history does not reach back to it."""
    release = _find_tag() or _release()
    if release is None:
        return None
    label, revision = release
    place = find_cache_directory() / "images" / f"previous-{revision[:16]}"
    version = Previous(label, place / "tree", place / "image.tar")
    if not version.archive.exists():
        print(f"building the image of {label} into {place} (once)", file=sys.stderr, flush=True)
        version.tree.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["git", "-C", ROOT, "archive", revision], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(version.tree, filter="data")
        with Builder(place, version.tree) as builder:
            builder.build_base()
            builder.build_webhook(revision, 0)
            builder.save(version.archive, NAME)
    return version


def _find_tag() -> tuple[str, str] | None:
    tag = _run_git("describe", "--tags", "--abbrev=0", "HEAD^")
    return (tag, _run_git("rev-parse", f"{tag}^{{commit}}")) if tag else None


def _release() -> tuple[str, str] | None:
    set_by = _run_git("log", "--format=%H", "-G^version = ", "--", "pyproject.toml").split()
    revision = next(iter(set_by[0 if _has_unreleased((ROOT / "CHANGELOG.md").read_text()) else 1 :]), "")
    # The first commit that is there at all "changes" every line: in a shallow clone it is not a release.
    return (f"commit {revision[:12]}", revision) if revision and _run_git("rev-parse", f"{revision}^") else None


def _has_unreleased(changelog: str) -> bool:
    """Return whether a changelog lists changes that are in no version."""
    section = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return section is not None and bool(section[1].strip())


def _run_git(*arguments: str) -> str:
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""
