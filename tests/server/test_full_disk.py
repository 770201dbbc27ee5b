"""A worker that starts while no file can grow serves all the same: gunicorn gives up on one that cannot boot."""

import os
import resource
import signal
from pathlib import Path

from tests.factories import make_review, to_bytes
from tests.server.conftest import Start
from tests.server.harness import make_certificates


def test_a_worker_starts_while_no_file_can_grow(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with start(tmp_path, workers=2) as server:
        for pid in (server.process.pid, *server.workers()):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
        os.kill(server.workers()[0], signal.SIGKILL)
        server.wait_for_line("policy in use", 3)
        server.wait_for_line("the metrics of this worker cannot be shared")
        assert all(server.post(to_bytes(make_review()))[0] == 200 for _ in range(8))
        assert server.probe("/readyz") == (200, "ok\n")
        assert all(server.probe("/metrics")[0] == 200 for _ in range(4))
