"""A kubectl for tests: plays a script of watches, one for each call, and remembers its process ids."""

import sys
from pathlib import Path
from typing import Final

_SCRIPT: Final = """\
#!{python} -IS
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
folder = {folder!r}
with open(folder + "/pids", "a") as pids:
    pids.write(str(os.getpid()) + "\\n")
with open(folder + "/calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if "leases.coordination.k8s.io" not in sys.argv:
    time.sleep(60)
number = len(open(folder + "/calls").read().split("leases.coordination")) - 1
path = folder + "/" + str(number) + ".json"
if not os.path.exists(path):
    path = folder + "/last.json"
sys.stdout.write(open(path).read())
sys.stdout.flush()
if path.endswith("last.json"):
    time.sleep(60)
sys.exit("error: the API server went <away>")
"""


def install(folder: Path, *watches: bytes) -> None:
    """Make an executable `kubectl`; the last watch goes on until it is ended, the others end at once."""
    script = folder / "kubectl"
    script.write_text(_SCRIPT.format(python=sys.executable, folder=str(folder)))
    script.chmod(0o755)
    for number, watch in enumerate(watches[:-1], 1):
        (folder / f"{number}.json").write_bytes(watch)
    (folder / "last.json").write_bytes(watches[-1])


def process_ids(folder: Path) -> list[int]:
    """The process ids of every call so far."""
    return [int(line) for line in (folder / "pids").read_text().split()]


def is_running(process: int) -> bool:
    """Return whether a process still runs; one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
