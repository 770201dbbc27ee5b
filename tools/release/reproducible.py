"""The same commit gives the same bytes: the moment of a release is that of its commit, and archives hold no other."""

import gzip
import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def read_moment() -> int:
    """Return when the commit was made, as a Unix time."""
    commit = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(commit, capture_output=True, text=True, check=True).stdout)


def find_different(first: Path, second: Path) -> Iterator[str]:
    """Yield the names of files that two folders do not both have with the same bytes."""
    for name in sorted({path.name for folder in (first, second) for path in folder.iterdir()}):
        both = [folder / name for folder in (first, second)]
        if not all(path.exists() for path in both) or both[0].read_bytes() != both[1].read_bytes():
            yield name


def normalize(archive: Path, at: int) -> None:
    """Write a tar.gz again, its entries in order, of nobody, and all of one moment: what made it adds its own."""
    packed = io.BytesIO()
    with (
        tarfile.open(archive) as old,
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=at) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda entry: entry.name):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = at
            entry.pax_headers = {}
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            new.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    archive.write_bytes(packed.getvalue())
