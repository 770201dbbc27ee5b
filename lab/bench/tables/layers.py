"""The cost of each layer of a review, in process and by library."""

import json
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from lab.bench.load import run_load, start_load, wait_for_load, write_cases
from lab.bench.processes import measure_tree
from lab.bench.servers import make_own_server, run_server
from lab.bench.table import Bar, Table, make_answers_bar
from lab.bench.tables.growth import find_best
from lab.bench.tables.kinds import RENEWAL, list_cases
from webhook.admission.evaluate import evaluate
from webhook.admission.policy.file import load
from webhook.admission.verdict import encode
from webhook.kubernetes.review import decode
from webhook.server.reviewer import respond

PURE: Final = {"takeover": 25, "create": 25, RENEWAL: 25, "denied steal": 70}
"""Kinds of writes, with the most that the pure function may take, in microseconds."""


def measure_pure_function(work: Path, *, short: bool) -> Table:
    """Measure the pure function of bytes to bytes with the standard policy, whole and in parts."""
    del work
    policy = load(None)
    columns = {}
    for kind in PURE:
        (case,) = list_cases()[kind]
        body = case.body
        request = decode(body)
        now = time.time_ns() // 1000
        verdict = evaluate(request, policy, now)
        whole = find_best(partial(respond, body, policy, now), short=short)
        decoding = find_best(partial(decode, body), short=short)
        encoding = find_best(partial(encode, verdict, request), short=short)
        columns[kind] = {
            "whole": whole,
            "decode the review": decoding,
            # Facts of a request are worked out once, so a request evaluated twice would look too cheap.
            "classify, weigh the stamps, run the rules": whole - decoding - encoding,
            "encode the answer": encoding,
            "json.loads alone, to compare machines": find_best(partial(json.loads, body), short=short),
        }
    return Table(
        "The pure function",
        (
            "us of one call, best of many batches, collector off; one process, standard policy, recorded reviews.",
            f"CPython {sys.version.split()[0]}.",
        ),
        ("part", *columns),
        tuple((part, *(f"{column[part]:.1f}" for column in columns.values())) for part in columns["takeover"]),
        tuple(
            Bar(
                f"pure function, standard policy, {kind}",
                f"<= {bar} us",
                f"{column['whole']:.1f} us",
                column["whole"] <= bar,
            )
            for (kind, bar), column in zip(PURE.items(), columns.values(), strict=True)
        ),
    )


def _find_layer(line: str) -> str:
    """Return the layer of a library of perf's report."""
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


def sample_worker(work: Path, *, short: bool) -> Table:
    """Return the shares of the worker's time, sampled by perf while it answers."""
    title = "Where a worker's time goes"
    perf = shutil.which("perf")
    if perf is None:
        return Table(title, ("not measured: no perf on PATH.",), ("layer", "share"), ())
    file = write_cases(list_cases()["takeover"], work / "takeover")
    seconds = 2 if short else 10
    with run_server(make_own_server(), work / "server", workers=1, cpus="0") as server:
        run_load(server, "closed", file, "-requests", "2000", cpus="1")
        worker = server.workers[0]
        loading = start_load(server, "closed", file, "-duration", f"{seconds + 1}s", cpus="1")
        data = work / "perf.data"
        result = subprocess.run(
            [perf, "record", "--pid", str(worker), "--output", str(data), "--freq", "999", "--", "sleep", str(seconds)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        with measure_tree(server.pid) as usage:
            report = wait_for_load(loading)
    del usage
    if result.returncode or not data.exists():
        reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
        return Table(title, (f"not measured: perf: {reason[:150]}",), ("layer", "share"), ())
    layers = subprocess.run(
        [perf, "report", "--input", str(data), "--sort", "dso", "--stdio", "--percent-limit", "0.2"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    shares: dict[str, float] = {}
    for line in layers.splitlines():
        match = re.match(r"\s*([\d.]+)%\s+(\S.*)", line)
        if match:
            layer = _find_layer(match[2])
            shares[layer] = shares.get(layer, 0) + float(match[1])
    return Table(
        title,
        (f"perf, {seconds} s, closed loop, 8 connections, one worker on core 0.",),
        ("layer", "share"),
        tuple((layer, f"{share:.0f} %") for layer, share in sorted(shares.items(), key=lambda item: -item[1])),
        (make_answers_bar("where a worker's time goes", report.wrong_or_missing),),
    )
