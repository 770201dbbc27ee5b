"""A browser reads so much and no more, and knows how far it is."""

import gzip
import io
from pathlib import Path

import pytest

from tests.incidents import FOLDER
from webhook.browser.budget import Budget, TooLargeError
from webhook.browser.session import Session

LOG = FOLDER / "leader-paused/audit.log.gz"


def read_whole(budget: Budget, content: bytes) -> bytes:
    return budget.wrap(io.BufferedReader(io.BytesIO(content))).read()


def test_what_is_read_is_counted() -> None:
    budget = Budget(limit=100)
    assert read_whole(budget, b"a" * 100) == b"a" * 100
    assert budget.used == 100


def test_a_byte_more_than_the_limit_is_refused_with_the_command_to_use() -> None:
    with pytest.raises(TooLargeError, match=r"why --input audit\.log$"):
        read_whole(Budget(path="audit.log", limit=99), b"a" * 100)


def test_what_is_read_twice_counts_once() -> None:
    budget = Budget(limit=10)
    plain = budget.wrap(io.BufferedReader(io.BytesIO(b"0123456789")))
    assert plain.read(4) == b"0123"
    assert plain.seekable()
    plain.seek(0)
    assert plain.read() == b"0123456789"
    assert (plain.tell(), budget.used) == (10, 10)


def test_progress_is_in_bytes_of_all_files_as_they_are_stored() -> None:
    progress: list[tuple[int, int]] = []
    paths = [str(LOG), str(LOG.with_name("leases.json.gz"))]
    Session(paths, lambda read, size: progress.append((read, size))).audit()
    size = sum(Path(path).stat().st_size for path in paths)
    assert all(read <= whole == size for read, whole in progress)
    assert progress[-1] == (size, size)


def test_a_small_file_that_unpacks_to_more_than_the_limit_ends_with_a_sentence(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(50):
            file.write(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n' * 1000)
    session = Session([str(bomb)], limit=1_000_000)
    for view in (session.list_leases, session.audit, session.draw_timeline):
        with pytest.raises(TooLargeError, match="more than 1 MB"):
            view()


def test_gzip_within_gzip_is_not_opened(tmp_path: Path) -> None:
    twice = tmp_path / "twice.gz"
    twice.write_bytes(gzip.compress(LOG.read_bytes()))
    audit = Session([str(twice)]).audit()
    assert "0 examined" in audit["summary"]
