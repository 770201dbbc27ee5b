"""`python -m lab.faults`: break things under load, print pass or fail, and write RESULTS.md."""

import sys

from lab.bench import results
from lab.bench.__main__ import Measurement, run_program
from lab.faults import bodies, certificates, clients, clock, hostile_clients, memory, output, signals

FAULTS: dict[str, Measurement] = {
    "terminate": signals.terminate,
    "reload": signals.reload,
    "kill-master": signals.kill_master,
    "stop": signals.stop_worker,
    "certificates": certificates.swap_certificates,
    "bad-files": certificates.break_files,
    "slow-clients": clients.stall_clients,
    "aborts": clients.abort_clients,
    "blocked-output": output.block_output,
    "full-disk": output.fill_disk,
    "clock": clock.jump_clock,
    "memory": memory.soak,
    "bodies": bodies.send_bodies,
    "crowds": hostile_clients.crowd,
    "idle": hostile_clients.hold_idle,
    "cut-heads": hostile_clients.cut_heads,
}

if __name__ == "__main__":
    sys.exit(run_program("lab.faults", FAULTS, results.publish_faults, strict=True))
