"""`python -m lab.faults`: break things under load, print pass or fail, and write RESULTS.md."""

import sys

from lab.bench import results
from lab.bench.__main__ import Measurement, program
from lab.faults import bodies, certificates, clients, clock, hostile_clients, memory, output, signals

FAULTS: dict[str, Measurement] = {
    "terminate": signals.terminate,
    "reload": signals.reload,
    "kill-master": signals.kill_master,
    "stop": signals.stop_worker,
    "certificates": certificates.swaps,
    "bad-files": certificates.bad_files,
    "slow-clients": clients.slow_and_silent,
    "aborts": clients.aborts,
    "blocked-output": output.blocked,
    "full-disk": output.full_disk,
    "clock": clock.jumps,
    "memory": memory.soak,
    "bodies": bodies.bodies,
    "crowds": hostile_clients.crowds,
    "idle": hostile_clients.idle,
    "cut-heads": hostile_clients.cut_heads,
}

if __name__ == "__main__":
    sys.exit(program("lab.faults", FAULTS, results.publish_faults, strict=True))
