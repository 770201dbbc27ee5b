"""Every fault, with each library, with and without a fence, in one run."""

import concurrent.futures
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from lab.e2e.fence.faults import FAULTS, go_on_unnoticed, restart_api_server
from lab.e2e.fence.history import Figures
from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.trial import Operator, Trial
from lab.e2e.kubectl import Kubectl

LIBRARIES: Final = ("client-go", "controller-runtime")
ACTIVE: Final = ("never-stopped", "two-servers", "released")


class Outcome(Struct, frozen=True):
    """The figures of all trials of one fault with one library, without and with the fence.

    `is_active`: the old leader writes through the takeover, so that the time to its first refusal means something.
    """

    fault: str
    library: str
    without: Figures
    fenced: Figures
    is_active: bool
    error: str = ""

    @property
    def passed(self) -> bool:
        """True if the bars hold: nothing sent late was stored, and nobody honest was refused after a second."""
        return not self.error and self.fenced.sent_late == 0 and self.fenced.late == 0 and self.fenced.stored > 0


def run_faults(plane: TwoServers, program: Path, trials: int, only: Sequence[str] = ()) -> Iterator[Outcome]:
    """Run the faults. The pair of a trial, with and without a fence, runs at the same time."""
    kubectl = Kubectl(plane.binaries.kubectl, plane.admin_kubeconfig)
    first, both = (plane.port, plane.port), (plane.port, plane.second_port)
    jobs: list[tuple[str, str, Callable[[Trial], None], tuple[int, int]]] = [
        (key, title, fault, first) for key, (title, fault) in FAULTS.items()
    ]
    jobs.append(("two-servers", "lost, nothing stops the work; two API servers", go_on_unnoticed, both))
    jobs.append(("restarted", "the leader's API server crashes and comes back", restart_api_server, (both[1], both[0])))
    for key, title, fault, ports in jobs:
        if only and key not in only:
            continue
        for library in LIBRARIES if key != "restarted" else LIBRARIES[:1]:
            repeats = trials if key != "restarted" else 1
            yield _run_fault(plane, kubectl, program, (key, title, library), fault, ports, repeats)


def _run_fault(
    plane: TwoServers,
    kubectl: Kubectl,
    program: Path,
    names: tuple[str, str, str],
    fault: Callable[[Trial], None],
    ports: tuple[int, int],
    repeats: int,
) -> Outcome:
    key, title, library = names
    open_total, fenced_total = Figures(), Figures()
    begin = time.monotonic()
    try:
        for number in range(repeats):
            short = "cg" if library == "client-go" else "cr"
            pair = [
                (
                    fenced,
                    Operator(
                        plane,
                        plane.create_admin_client(plane.port),
                        f"{key}-{short}-{number}-{'fenced' if fenced else 'open'}",
                    ),
                )
                for fenced in (False, True)
            ]
            for fenced, operator in pair:
                if fenced:
                    operator.apply_fence(kubectl)
                    operator.wait_for_fence(sorted({*ports}))
            # An API server that crashes is shared: those two run one after the other.
            with concurrent.futures.ThreadPoolExecutor(1 if key == "restarted" else len(pair)) as pool:
                results = pool.map(
                    lambda one: (one[0], _run_trial(plane, one[1], program, library, ports, fault)), pair
                )
                for fenced, figures in results:
                    if fenced:
                        fenced_total += figures
                    else:
                        open_total += figures
    except Exception as error:  # noqa: BLE001 - a fault that fails is an outcome, and the command fails
        traceback.print_exc()
        return Outcome(title, library, open_total, fenced_total, key in ACTIVE, f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - begin
    outcome = Outcome(title, library, open_total, fenced_total, key in ACTIVE)
    print(f"{key} {library} {seconds:.0f} s: {outcome.without} | {outcome.fenced}", file=sys.stderr, flush=True)
    return outcome


def _run_trial(
    plane: TwoServers,
    operator: Operator,
    program: Path,
    library: str,
    ports: tuple[int, int],
    fault: Callable[[Trial], None],
) -> Figures:
    with Trial(plane, operator, program, library, ports) as trial:
        fault(trial)
    return trial.compute_figures()
