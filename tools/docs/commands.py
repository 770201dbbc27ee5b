"""The commands of the pages that can be run here, and their output."""

import io
import re
import shlex
import shutil
import subprocess
import time
from contextlib import redirect_stderr, redirect_stdout
from typing import Final

from rich.console import Group

from tools.docs.pages import ROOT, Example
from webhook.admission.policy.file import load
from webhook.analysis.history.follow import ClusterHistory
from webhook.browser.reviewing import make_preset_files, review
from webhook.cli.main import main
from webhook.cli.reading import EvaluationTime, read_for_history
from webhook.cli.selection import Selection
from webhook.cli.tables import make_console
from webhook.cli.watching import CLOCK, draw_frame
from webhook.kubernetes.times import format_micro_time, parse
from webhook.server.reviewer import respond

WIDTH: Final = "100"
"""Columns of the terminal that the pages show."""

_HASH: Final = re.compile(r"\bhash [0-9a-f]{8}\b")
_COMMANDS: Final = ("lease-webhook", ".venv/bin/lease-webhook")


_PROOF: Final = shlex.split("kubectl create --dry-run=server -f deploy/proof.yaml")


_TOP: Final = ["kubectl", "lease", "top"]
_WATCH: Final = ROOT / "tests" / "data" / "incidents" / "lease-stolen" / "leases.json.gz"
"""The pages show `top` at the end of this watch."""


_RECORDED_INSTEAD: Final = {"build/try/leases.json": "tests/data/tried/leases.json"}
"""The watch that `deploy/try` records, as it was recorded once."""


def can_run_here(example: Example) -> bool:
    """Return whether a command needs neither a cluster nor another program.

    These are our own commands, curl to `make run`, `top` of a recorded watch, and the proof, which the webhook answers
    and kubectl prints.
    """
    words = shlex.split(example.command)
    if words in (_PROOF, _TOP):
        return True
    if words[0] == "curl":
        return words[1:3] == ["-s", "--cacert"]
    return words[0] in _COMMANDS and not {"|", ">", "<", "&&"} & set(words)


def compute_output(example: Example) -> str:
    """Return the output that a page has to show, with the page's own hash of a policy, which every new rule changes."""
    hashes = iter(_HASH.findall(example.output))
    return _HASH.sub(lambda new: next(hashes, new[0]), run_command(example.command))


def run_command(command: str) -> str:
    """Return the output of a command in the root of the repository on a terminal of WIDTH columns."""
    words = shlex.split(command)
    if words == _PROOF:
        return f"{_run_proof()}\n"
    if words == _TOP:
        return _run_top()
    if words[0] == "curl":
        (body,) = (word.removeprefix("@") for word in words if word.startswith("@"))
        reply = respond((ROOT / body).read_bytes(), load(None), time.time_ns() // 1000)
        program, *arguments = words[words.index("|") + 1 :]
        return subprocess.run(
            [shutil.which(program) or program, *arguments], input=reply.body, capture_output=True, check=True
        ).stdout.decode()
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        main([_RECORDED_INSTEAD.get(word, word) for word in words[1:]])
    return out.getvalue()


def _run_proof() -> str:
    """Return the output of kubectl for the proof, whose time an API server has written in UTC before it asks."""
    text = (ROOT / "deploy" / "proof.yaml").read_text()
    (sent,) = re.findall(r'renewTime: "([^"]+)"', text)
    (answer,) = review(text.replace(sent, format_micro_time(parse(sent))), make_preset_files()["standard"])
    return str(answer["kubectl"])


def _run_top() -> str:
    """Return the output of `top` at the end of the recorded watch."""
    histories = ClusterHistory()
    for item in read_for_history([str(_WATCH)]):
        histories.add(item)
    until = histories.bounds.until
    assert until is not None
    out = io.StringIO()
    with redirect_stdout(out):
        make_console(int(WIDTH)).print(Group(*draw_frame(histories, EvaluationTime(until, CLOCK), Selection())))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines() if line.strip())
