"""`make record-incidents`: play incidents of leader election on a real API server and keep their recordings."""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from lab.e2e.incidents import measured, truth
from lab.e2e.incidents.cases import AFTERWARDS, CASES, Case
from lab.e2e.incidents.further_cases import FURTHER_CASES
from lab.e2e.incidents.measured_cases import MEASURED_CASES
from lab.e2e.incidents.recording import Recording
from lab.e2e.incidents.scene import DURATION, Scene
from lab.e2e.incidents.stage import Plane, Stage
from lab.e2e.toolchain import VERSIONS, MissingToolchainError, build_all_binaries
from lab.e2e.world import PROJECT

INCIDENTS: Final = PROJECT / "tests" / "data" / "incidents"
MEASURED: Final = PROJECT / "tests" / "data" / "measured-incidents"
ALL: Final = (*CASES, *MEASURED_CASES, *FURTHER_CASES)
AT_ONCE: Final = 7
"""Incidents that are played side by side, each in a namespace of its own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Record all of them, or the chosen ones. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.incidents", description=__doc__)
    parser.add_argument("--kubernetes", default="", help=f"a version; {VERSIONS[0]} if none is given")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in ALL], help="only these")
    parser.add_argument("--into", type=Path, help="default: the project's own fixtures")
    parser.add_argument("--keep", type=Path, help="keep logs in this directory")
    options = parser.parse_args(arguments)
    # Ended from outside, the run still stops what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        binaries = build_all_binaries(options.kubernetes or VERSIONS[0])[0]
    except MissingToolchainError as error:
        print(f"FAILED, nothing was recorded: {error}", file=sys.stderr)
        return 1
    except IndexError:
        print(f"FAILED, no version begins with {options.kubernetes}", file=sys.stderr)
        return 1
    cases = [case for case in ALL if not options.only or case.name in options.only]
    with tempfile.TemporaryDirectory(prefix="lease-webhook-incidents-") as temporary:
        directory = (options.keep or Path(temporary)).absolute()
        directory.mkdir(parents=True, exist_ok=True)
        with Plane(binaries, directory) as plane, ExitStack() as stack, Stage(plane, stack) as stage:
            together = [case for case in cases if not case.is_alone]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda case: _record(stage, case, options.into), together))
            for case in cases:
                if case.is_alone:
                    _record(stage, case, options.into)
    return 0


def _record(stage: Stage, case: Case, into: Path | None) -> None:
    directory = (into or (MEASURED if case.expect else INCIDENTS)) / case.name
    begin = time.time_ns() // 1000
    namespaces = (case.namespace, *case.also_kept)
    with Recording(stage, case.name, *namespaces, goes_on=case.is_alone) as recording:
        scene = Scene(stage, case.namespace, case.lease, route=case.route)
        try:
            case.play(scene)
            time.sleep(AFTERWARDS)
            end = time.time_ns() // 1000
            leaderships = [one for one in scene.list_leaderships() if one.begins < end]
        finally:
            recording.end()
            dumps = measured.dump_leases(scene, sorted(recording.namespaces)) if case.expect else {}
            scene.end()
    print(f"{case.name}: recorded in {(end - begin) / 1e6:.0f} s", file=sys.stderr, flush=True)
    version = stage.plane.binaries.version
    if case.expect:
        about = {"incident": case.name, "namespace": case.namespace, "lease": case.lease, "api_server": version}
        about |= {"story": case.title, "cause": case.cause}
        watch = recording.read_watch()
        files = {measured.WATCH: watch, measured.AUDIT_LOG: recording.read_audit_log(), **dumps}
        measured.keep(directory, files, measured.describe_truth(scene, about, case.expect, leaderships, end, watch))
        return
    files_of_record = {
        "incident": case.name,
        "kubernetes": version,
        "namespace": case.namespace,
        "name": case.lease,
        "duration_seconds": DURATION,
    }
    recording.keep(
        directory, files_of_record | truth.format_truth(case.title, case.cause, leaderships, scene.deeds, begin, end)
    )


if __name__ == "__main__":
    sys.exit(main())
