"""`make cluster`: prove the webhook in real pods, print a table, write docs/cluster-figures.md. Exit 1 on a failure.

With KUBECONFIG the cluster is the one that it names, and --image an image that its nodes have or can pull. Without, and
as root on Linux, a single-node cluster is made of Go modules and Debian packages, in namespaces of its own.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from lab.cluster import dashboard
from lab.cluster.image import NAME, Builder, build_image
from lab.cluster.isolation import run_isolated
from lab.cluster.node import PAUSE, Node
from lab.cluster.plan import CHECKS, Run, choose_checks, list_runs, prepare
from lab.cluster.preflight import find_obstacle
from lab.cluster.programs import build_node_programs
from lab.cluster.table import publish, render, replace_rows
from lab.cluster.world import CLOSED, World
from lab.e2e.toolchain import MissingToolchainError, find_cache_directory
from lab.e2e.world import Row, complete_rows, list_not_run

LIMIT, SHORT_LIMIT = 60 * 60.0, 12 * 60.0
"""Seconds after which a run on a node of our own is ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all checks, or the chosen ones. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.cluster", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the checks that need no long wait; no table")
    parser.add_argument("--image", default=os.environ.get("IMAGE", ""), help="with KUBECONFIG: the image to run")
    parser.add_argument("--required", action="store_true", help="fail, and do not skip, if there can be no cluster")
    parser.add_argument("--keep", type=Path, help="keep the logs of the node in this directory")
    parser.add_argument(
        "--only",
        nargs="+",
        default=(),
        choices=CHECKS,
        metavar="CHECK",
        help=f"only these, and their rows of the table: {', '.join(CHECKS)}",
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    # Ended from outside, the run still removes what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.inside:
        return _run_inside(options)
    if os.environ.get("KUBECONFIG"):
        return _run_given(options, parser)
    try:
        reason = find_obstacle()
        return _report_skip(reason, required=options.required) if reason else _run_on_own_node(options)
    except MissingToolchainError as missing:
        return _report_skip(str(missing), required=options.required)
    except TimeoutError as error:
        print(f"FAILED: make cluster hangs in what the last line above began: {error}", file=sys.stderr)
        return 1


def _report_skip(reason: str, *, required: bool) -> int:
    if required:
        print(f"FAILED: {reason}", file=sys.stderr)
        return 1
    print(f"\n*** make cluster is skipped, nothing was tested in pods: {reason} ***\n", file=sys.stderr)
    return 0


def _run_given(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if not options.image:
        parser.error("with KUBECONFIG, name an image that the nodes have or can pull: IMAGE=registry.example/x:1")
    kubeconfig = Path(os.environ["KUBECONFIG"]).absolute()
    with tempfile.TemporaryDirectory(prefix="lease-webhook-cluster-") as directory:
        kubectl = build_node_programs().plane.kubectl
        with World(kubectl, kubeconfig, options.image, Path(directory), ours=False) as world:
            return _report(world, list_runs(choose_checks(options.only, short=options.short), None), options)


def _run_on_own_node(options: argparse.Namespace) -> int:
    programs = build_node_programs()
    prepare(choose_checks(options.only, short=options.short))
    images = find_cache_directory() / "images"
    images.mkdir(parents=True, exist_ok=True)
    pause = images / f"pause-{programs.pause.parent.name}.tar"
    if not pause.exists():
        with Builder(images) as builder:
            builder.build_from_program(programs.pause, PAUSE, pause)
    image = build_image(images / "lease-webhook.tar", twice=not options.short)
    print(f"the image: {image.digest}", file=sys.stderr)
    flags = [*(["--short"] if options.short else []), *([f"--keep={options.keep.absolute()}"] if options.keep else [])]
    flags += [f"--image={image.digest}", *(["--only", *options.only] if options.only else [])]
    command = [sys.executable, "-m", "lab.cluster"]
    limit = SHORT_LIMIT if options.short else LIMIT
    status = run_isolated(programs.packages, lambda directory: [*command, f"--inside={directory}", *flags], limit)
    if dashboard.KEPT.exists() and not options.only:
        dashboard.draw()
    return status


def _run_inside(options: argparse.Namespace) -> int:
    """Run in the namespaces, beside the node."""
    programs, images = build_node_programs(), find_cache_directory() / "images"
    directory: Path = options.inside
    try:
        with Node(programs, directory) as node:
            node.load(images / f"pause-{programs.pause.parent.name}.tar")
            node.load(images / "lease-webhook.tar")
            kubeconfig = node.plane.write_kubeconfig("admin", "system:masters")
            with World(programs.plane.kubectl, kubeconfig, NAME, directory / "world", ours=True) as world:
                return _report(world, list_runs(choose_checks(options.only, short=options.short), node), options)
    finally:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for log in directory.glob("*.log"):
                (options.keep / log.name).write_bytes(log.read_bytes())


def _report(world: World, checks: dict[str, Run], options: argparse.Namespace) -> int:
    begin = time.monotonic()
    rows: dict[str, list[Row]] = {}
    try:
        for name, check in checks.items():
            rows[name] = []
            _run(name, check, world, rows[name])
    finally:
        world.remove()
        world.kubectl.run("delete", "namespace", CLOSED, "--ignore-not-found", "--wait=false")
    version = world.client.get("/version")["gitVersion"]
    minutes = (time.monotonic() - begin) / 60
    print(render(rows))
    not_run = list_not_run(rows)
    print("".join(f"NOT RUN: {what}\n" for what in not_run), end="", file=sys.stderr)
    if options.only and world.ours and not not_run:
        replace_rows(rows, version)
    elif not options.short and not options.only and not not_run:
        publish(rows, version, options.image, minutes, ours=world.ours)
    failures = [row for rows_of_check in rows.values() for row in rows_of_check if not row.passed]
    for row in failures:
        print(f"FAILED: {row.claim}: {row.observation}", file=sys.stderr)
    print(f"{minutes:.1f} minutes on Kubernetes {version}", file=sys.stderr)
    return 1 if failures else 0


def _run(name: str, check: Run, world: World, rows: list[Row]) -> None:
    """Add all rows of one check.

    An exception becomes a failed row, so that the other checks still run.
    """
    begin = time.monotonic()
    try:
        for row in check(world):
            print(
                f"{name} {row.mark}: {row.claim}: {row.observation}",
                file=sys.stderr,
                flush=True,
            )
            rows.append(row)
    except Exception as error:  # noqa: BLE001 - any failure is a row, and the command fails
        traceback.print_exc()
        rows.append(Row("runs to its end", f"{type(error).__name__}: {error}".splitlines()[0], passed=False))
    complete_rows(rows)
    print(f"{name} took {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
