"""A kubectl that answers from memory, as a fixture; a test module imports both names."""

import sys
from pathlib import Path
from typing import Protocol

import pytest

from tests.factories import make_candidate, make_lease

FAKE = """#!{python}
import json, os, sys, time
words = sys.argv[1:]
with open({log!r}, "a") as file:
    print(" ".join(words), file=file)
if "leasecandidates.coordination.k8s.io" in words:
    if "--namespace=waiting" in words:
        print(json.dumps({waiting}))
    sys.exit({candidates!r})
if "pod" in words:
    print("pod/" + words[2] if words[2] == "there" else "", end="")
    sys.exit(1 if words[2] == "forbidden" else 0)
if "events" in words:
    print({events!r})
    sys.exit(0 if {events!r} else 1)
if {fails}:
    print("open a browser", file=sys.stderr)
    sys.stderr.flush()
    os.write(2, b"E1123 in two")
    time.sleep(0.1)
    os.write(2, b" parts\\n")
    print('E1123 15:17:10.5 1 memcache.go:265] "Unhandled Error" err="connection refused"', file=sys.stderr)
    sys.exit("Error from server (Forbidden): no rights")
items = [] if {{"--namespace=empty", "--namespace=waiting"}} & {{*words}} else [{lease}]
print(json.dumps({{"kind": "List", "apiVersion": "v1", "items": items}}))
"""


class Install(Protocol):
    """Writes the program; returns the file to which it appends the words of each call."""

    def __call__(self, *, fails: bool = False, candidates: str | int = 0, events: str = "") -> Path: ...


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a kubectl on the path that answers from memory; gives its log."""
    log = tmp_path / "calls"

    def install(*, fails: bool = False, candidates: str | int = 0, events: str = "") -> Path:
        script = tmp_path / "kubectl"
        script.write_text(
            FAKE.format(
                python=sys.executable,
                log=str(log),
                candidates=candidates,
                fails=fails,
                lease=make_lease(),
                waiting=make_candidate(),
                events=events,
            )
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return log

    return install
