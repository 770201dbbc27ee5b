"""What each layer of a review costs, in process and by library."""

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.bench.load import finish_load, run_load, start_load, write_cases
from tests.bench.processes import measured
from tests.bench.reviews import renewal
from tests.bench.servers import ours, running
from tests.bench.table import Bar, Table
from tests.bench.tables.growth import NOW, best_of
from webhook.api.review import decode
from webhook.evaluate import evaluate
from webhook.policy_file import load
from webhook.server.respond import respond
from webhook.verdict.encode import encode


def pure(work: Path, *, short: bool) -> Table:
    """The pure function bytes -> bytes with the standard policy, whole and in parts."""
    del work
    policy = load(None)
    columns = []
    for size in (2400, 4500):
        body = renewal(size).body
        request = decode(body)
        verdict = evaluate(request, policy, NOW)
        whole = best_of(partial(respond, body, policy, NOW), short=short)
        decoding = best_of(partial(decode, body), short=short)
        encoding = best_of(partial(encode, verdict, request), short=short)
        columns.append(
            {
                "whole": whole,
                "decode the review": decoding,
                # Facts of a request are worked out once, so a request judged twice would look too cheap.
                "classify, weigh the stamps, run the rules": whole - decoding - encoding,
                "encode the answer": encoding,
                "json.loads alone, to compare machines": best_of(partial(json.loads, body), short=short),
            }
        )
    whole = columns[0]["whole"]
    return Table(
        "The pure function",
        (
            "us of one call, best of many batches, collector off; one process, standard policy, a plain renewal.",
            f"CPython {sys.version.split()[0]}.",
        ),
        ("part", "2.4 KB", "4.5 KB"),
        tuple((part, *(f"{column[part]:.1f}" for column in columns)) for part in columns[0]),
        (Bar("pure function, standard policy, 2.4 KB", "<= 12 us", f"{whole:.1f} us", whole <= 12, "<= 8 us"),),
        {part: [(n, column[part]) for n, column in enumerate(columns)] for part in columns[0]},
    )


def _library(line: str) -> str:
    """Which layer a library of perf's report belongs to."""
    layers = {
        r"kernel": "kernel: TCP, epoll, scheduling",
        r"libcrypto|libssl": "TLS: OpenSSL",
        r"libpython|/python|python3": "Python: server, rules, metrics",
        r"msgspec|_core": "msgspec: JSON",
        r"uvloop|loop\.": "uvloop",
        r"httptools|parser\.": "httptools",
        r"libc|ld-linux|libm\b|vdso": "libc",
    }
    return next((layer for pattern, layer in layers.items() if re.search(pattern, line)), "other")


def sampled(work: Path, *, short: bool) -> Table:
    """Where the worker's time goes, sampled by perf while it answers."""
    title = "Where a worker's time goes"
    perf = shutil.which("perf")
    if perf is None:
        return Table(title, ("not measured: no perf on PATH.",), ("layer", "share"), ())
    cases = write_cases([renewal()], work / "renewal")
    seconds = 2 if short else 10
    with running(ours(), work / "server", workers=1, cpus="0") as server:
        run_load(server, "closed", cases, "-requests", "2000", cpus="1")
        worker = server.workers[0]
        loading = start_load(server, "closed", cases, "-duration", f"{seconds + 1}s", cpus="1")
        data = work / "perf.data"
        recorded = subprocess.run(
            [perf, "record", "--pid", str(worker), "--output", str(data), "--freq", "999", "--", "sleep", str(seconds)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        with measured(server.pid) as spent:
            report = finish_load(loading)
    del spent
    if recorded.returncode or not data.exists():
        reason = (recorded.stderr.strip().splitlines() or ["no message"])[-1]
        return Table(title, (f"not measured: perf: {reason[:150]}",), ("layer", "share"), ())
    layers = subprocess.run(
        [perf, "report", "--input", str(data), "--sort", "dso", "--stdio", "--percent-limit", "0.2"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    shares: dict[str, float] = {}
    for line in layers.splitlines():
        found = re.match(r"\s*([\d.]+)%\s+(\S.*)", line)
        if found:
            layer = _library(found[2])
            shares[layer] = shares.get(layer, 0) + float(found[1])
    return Table(
        title,
        (f"perf, {seconds} s, closed loop, 8 connections, one worker on core 0; {report.wrong} wrong answers.",),
        ("layer", "share"),
        tuple((layer, f"{share:.0f} %") for layer, share in sorted(shares.items(), key=lambda item: -item[1])),
    )
