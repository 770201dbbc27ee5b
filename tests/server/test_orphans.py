"""A worker does not outlive its master: it would keep the port, and nobody could stop it by the master's name."""

from pathlib import Path

from tests.server.conftest import Start
from tests.server.harness import make_certificates
from tests.waiting import wait_for


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_workers_leave_when_the_master_is_killed(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with start(tmp_path, workers=2) as server:
        workers = server.workers()
        assert len(workers) == 2
        server.process.kill()
        server.process.wait()
        wait_for("the workers to leave", lambda: not any(alive(pid) for pid in workers))
