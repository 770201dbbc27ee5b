"""`make fence`: the writes that a fence holds back on real API servers; prints a table and writes it into the docs."""

import argparse
import datetime as dt
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.e2e.fence.cost import measure_cost
from lab.e2e.fence.facts import Fact, check_facts
from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.restore import check_restore
from lab.e2e.fence.run import Outcome, run_faults
from lab.e2e.fence.stall import HONEST, STALLS, StallFigures, run_stalls
from lab.e2e.fence.table import Section, render
from lab.e2e.fence.token import check_tokens
from lab.e2e.fence.trial import allow_service_accounts
from lab.e2e.kubectl import Kubectl
from lab.e2e.stamp_cases import FIRST_MINOR
from lab.e2e.toolchain import VERSIONS, Binaries, MissingToolchainError, build_all_binaries, build_fence_program
from tools.circumstances import find_circumstances

DOCS = Path(__file__).parents[3] / "docs" / "fence-figures.md"
LATE, RESTORE = "late-watch", "restore"
"""The trials in which watches are held, and that in which etcd goes back to a copy."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the faults on every version. Return 1 when a bar is broken."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.fence", description=__doc__)
    parser.add_argument("--kubernetes", default="", help="versions that begin so; else the newest and the oldest")
    parser.add_argument("--trials", type=int, default=3, help="of each fault and library")
    parser.add_argument(
        "--only", action="append", default=[], help=f"only this fault, `{LATE}` or `{RESTORE}`; nothing is written"
    )
    parser.add_argument("--dry-run", action="store_true", help="leave the page in the docs as it is")
    parser.add_argument("--keep", type=Path, help="keep logs in this directory")
    options = parser.parse_args(arguments)
    # Ended from outside, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        needs_none = options.only in ([LATE], [RESTORE])
        program = Path() if needs_none else build_fence_program()
        everything = _choose(options.kubernetes)
    except MissingToolchainError as error:
        print(f"FAILED, nothing was tested: {error}", file=sys.stderr)
        return 1
    begin = dt.datetime.now(dt.UTC)
    if options.only == [LATE]:
        priced = everything
    else:
        priced = [] if options.only else build_all_binaries(options.kubernetes)
    costs = [measure_cost(one) for one in priced]
    sections = []
    with tempfile.TemporaryDirectory(prefix="lease-webhook-fence-") as temporary:
        for binaries in everything:
            directory = (options.keep or Path(temporary)) / binaries.version
            directory.mkdir(parents=True, exist_ok=True)
            outcomes: tuple[Outcome, ...] = ()
            single: list[Fact] = []
            if not needs_none:
                with TwoServers(binaries, directory.absolute()) as plane:
                    allow_service_accounts(plane.create_admin_client(plane.port))
                    plane.start_second()
                    outcomes = tuple(run_faults(plane, program, options.trials, options.only))
                    kubectl = Kubectl(binaries.kubectl, plane.admin_kubeconfig)
                    single += [] if options.only else check_facts(plane, plane.create_admin_client(plane.port), kubectl)
            late = None
            if binaries.minor >= FIRST_MINOR and options.only in ([], [LATE]):
                late, more = _try_late_watch(binaries, directory.absolute() / "token", options.trials)
                single += more
            if binaries.minor >= FIRST_MINOR and options.only in ([], [RESTORE]):
                single += _try_restore(binaries, directory.absolute() / "restore")
            sections.append(Section(binaries.version, outcomes, tuple(single), late))
    minutes = (dt.datetime.now(dt.UTC) - begin).total_seconds() / 60
    text = render(sections, costs, options.trials, str(find_circumstances()), minutes)
    print(text)
    if not (options.only or options.kubernetes or options.dry_run):
        DOCS.write_text(text)
    return 0 if sections and all([*(one.passed for one in sections), *(one.passed for one in costs)]) else 1


def _try_late_watch(binaries: Binaries, directory: Path, trials: int) -> tuple[dict[str, StallFigures], list[Fact]]:
    """Try takeovers on a separate control plane, whose second API server can learn of leases late."""
    directory.mkdir()
    with TwoServers(binaries, directory) as plane:
        plane.start_stalling()
        kubectl = Kubectl(binaries.kubectl, plane.admin_kubeconfig)
        allow_service_accounts(plane.create_admin_client(plane.port))
        single = [*check_tokens(plane, kubectl)]
        return run_stalls(plane, kubectl, len(STALLS) * trials, HONEST), single


def _try_restore(binaries: Binaries, directory: Path) -> list[Fact]:
    """Try a restore on a separate control plane, whose etcd goes back."""
    directory.mkdir()
    with TwoServers(binaries, directory) as plane:
        return [*check_restore(plane, Kubectl(binaries.kubectl, plane.admin_kubeconfig))]


def _choose(beginning: str) -> list[Binaries]:
    if beginning:
        return build_all_binaries(beginning)
    return [*build_all_binaries(VERSIONS[0]), *build_all_binaries(VERSIONS[-1])]


if __name__ == "__main__":
    sys.exit(main())
