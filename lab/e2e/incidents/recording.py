"""The evidence that a person on call would have of an incident, a watch and an audit log, kept small."""

import gzip
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, Self

from lab.e2e.incidents.stage import BYSTANDERS, Stage
from lab.e2e.processes import Process
from tests.waiting import wait_for

WATCH: Final = "leases.json.gz"
AUDIT_LOG: Final = "audit.log.gz"
TRUTH: Final = "truth.json"
_AGAIN: Final = 'trap "kill \\$p; exit" TERM; while :; do "$@" & p=$!; wait $p; sleep 0.3; done'
LARGEST: Final = 200 * 1024
"""Bytes of one file."""


class Recording:
    """A watch of all leases as the docs of `why` have it, while entered, and the audit log from its beginning on."""

    def __init__(self, stage: Stage, name: str, *namespaces: str, goes_on: bool = False) -> None:
        """Set up the recording. `goes_on`: watch again when the API server has ended."""
        self._stage, self._goes_on = stage, goes_on
        self.namespaces = {*namespaces, *(one for one, _ in BYSTANDERS)}
        self._log = stage.directory / "watches" / f"{name}.json"
        self._process: Process | None = None
        self._start = self._end = 0

    def __enter__(self) -> Self:
        plane = self._stage.plane
        kubeconfig = plane.directory / "admin.kubeconfig"
        command = [
            str(plane.binaries.kubectl),
            f"--kubeconfig={kubeconfig}",
            f"--cache-dir={plane.directory / 'kubectl-cache'}",
        ]
        command += ["get", "leases", "-A", "-w", "-o", "json", "--output-watch-events", "--show-managed-fields"]
        if self._goes_on:  # kubectl ends with the API server
            command = ["sh", "-c", _AGAIN, "watch", *command]
        self._start = plane.audit_log.stat().st_size if plane.audit_log.exists() else 0
        self._process = Process(command, self._log, env={"HOME": str(Path.home())})
        wait_for("the watch begins", lambda: BYSTANDERS[0][0] in self._log.read_text(), 30)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop the watch; later events are not a part of the recording."""
        if self._process:
            self._end = self._stage.plane.audit_log.stat().st_size
            self._process.stop()
            self._process = None

    def read_watch(self) -> bytes:
        """Return the watch, without the leases of other incidents."""
        return "".join(filter_objects(self.namespaces, self._log.read_text())).encode()

    def read_audit_log(self) -> bytes:
        """Return the audit log, without the events of other incidents."""
        with self._stage.plane.audit_log.open("rb") as file:
            file.seek(self._start)
            lines = file.read(self._end - self._start).splitlines(keepends=True)
        return b"".join(filter_events(self.namespaces, iter(lines)))

    def keep(self, directory: Path, truth: dict[str, Any]) -> None:
        """Write the three files; raises RuntimeError if one is too large."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in ((WATCH, self.read_watch()), (AUDIT_LOG, self.read_audit_log())):
            packed = gzip.compress(data, 9, mtime=0)
            if len(packed) > LARGEST:
                raise RuntimeError(f"{directory / name} has {len(packed)} bytes")
            (directory / name).write_bytes(packed)
        (directory / TRUTH).write_text(json.dumps(truth, indent=2) + "\n")


def filter_objects(namespaces: Collection[str], text: str) -> Iterator[str]:
    """Yield the events of a watch that are about these namespaces, unchanged."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        if text[place] != "{":
            place = text.find("\n", place) + 1 or len(text)
            continue
        try:
            event, end = decoder.raw_decode(text, place)
        except ValueError:  # the end of a watch that was stopped while it wrote
            return
        if event["object"]["metadata"]["namespace"] in namespaces:
            yield text[place:end] + "\n"
        place = end


def filter_events(namespaces: Collection[str], lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the events of an audit log that are about these namespaces."""
    for line in lines:
        if json.loads(line).get("objectRef", {}).get("namespace") in namespaces:
            yield line
