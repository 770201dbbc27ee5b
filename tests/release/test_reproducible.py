"""The same contents are the same archive, whenever and by whoever it was packed."""

import io
import os
import tarfile
from pathlib import Path

from tools.release.reproducible import find_different, normalize, read_moment


def packed(path: Path, at: int, user: str, names: tuple[str, ...]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.mtime, entry.uname, entry.uid, entry.size = at, user, at % 1000, len(name)
            entry.mode = 0o664 if name != "run" else 0o775
            archive.addfile(entry, io.BytesIO(name.encode()))
    os.utime(path, (at, at))
    return path


def test_an_archive_of_another_day_and_user_becomes_the_same(tmp_path: Path) -> None:
    first = packed(tmp_path / "a.tar.gz", 1000, "one", ("a", "run"))
    second = packed(tmp_path / "b.tar.gz", 2000, "another", ("run", "a"))
    assert first.read_bytes() != second.read_bytes()
    normalize(first, 1500)
    normalize(second, 1500)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        members = {entry.name: (entry.mode, entry.mtime, entry.uname) for entry in archive.getmembers()}
        content = archive.extractfile("run")
        assert content
        assert content.read() == b"run"
    assert members == {"a": (0o644, 1500, ""), "run": (0o755, 1500, "")}


def test_the_moment_is_that_of_the_commit() -> None:
    assert read_moment() > 1_700_000_000


def test_what_differs_between_two_folders_is_named(tmp_path: Path) -> None:
    for folder, files in {
        "first": {"same": "1", "other": "1", "lost": ""},
        "second": {"same": "1", "other": "2"},
    }.items():
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)
    assert [*find_different(tmp_path / "first", tmp_path / "second")] == ["lost", "other"]
