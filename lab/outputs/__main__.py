"""Compare the output of every command on every recorded input with the stored one: `make outputs`.

The stored output is the contract of a restructuring: text, JSON and exit codes stay equal, and an intended change is a
change of a stored file, which a reviewer reads (`--update` writes it). Exit code 1 if anything differs.
"""

import argparse
import contextlib
import difflib
import io
import itertools
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from lab.outputs.commands import ROOT, Invocation, list_invocations, list_policy_files
from lab.outputs.stored import FOLDER, Output, make_output, read_outputs, write_outputs
from webhook.admission.policy.file import PolicyFileError, load
from webhook.admission.policy.schema import PRESETS
from webhook.cli.main import main as run_command

MAX_SHOWN: Final = 600
"""Characters of one line of a difference."""
_LEAD: Final = 60
"""Characters that are shown before the first that differs, of a longer line."""


class _Text(io.TextIOWrapper):
    """Standard output in memory, with the buffer that some commands write bytes to."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def get_text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(errors="replace")


def _mask(text: str) -> str:
    """Leave out where this is, and the hashes of presets and policy files, which any new rule changes."""
    text = text.replace(f"{ROOT}/", "")
    for name, digest in _hash_policies().items():
        text = text.replace(digest, f"hash-of-{name}")
    return text


@cache
def _hash_policies() -> Mapping[str, str]:
    """Return the hash of each preset, and of each file of a policy that a command is given, by its name."""
    found = {preset: load(preset).digest for preset in PRESETS}
    for file in list_policy_files():
        with contextlib.suppress(PolicyFileError):
            found.setdefault(file.stem, load(str(file)).digest)
    return found


def compute_output(invocation: Invocation) -> Output:
    """Run one command in this process, with its input as standard input."""
    out, err = _Text(), _Text()
    stdin = io.TextIOWrapper(io.BytesIO(invocation.stdin.read_bytes() if invocation.stdin else b""), encoding="utf-8")
    before = sys.stdin
    sys.stdin = stdin
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = run_command(list(invocation.words))
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 2
    finally:
        sys.stdin = before
    output, complained = (_mask(text.get_text()) for text in (out, err))
    return make_output(invocation.text, code, output, complained)


def compute_outputs(invocations: Sequence[Invocation]) -> Iterator[Output]:
    """Yield the output of each command, in order."""
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        yield from pool.imap(compute_output, invocations, chunksize=8)


def _find_differences(stored: Output, now: Output) -> Iterator[str]:
    if stored.code != now.code:
        yield f"exit code {stored.code}, now {now.code}"
    yield from _compare_lines(stored.lines, now.lines)


def _compare_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines that differ, each after its old form, from shortly before the place where they differ."""
    for tag, old_start, old_end, start, end in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag == "equal":
            continue
        yield f"line {start + 1}"
        for old, new in itertools.zip_longest(before[old_start:old_end], after[start:end]):
            same = sum(
                1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old or "", new or "", strict=False))
            )
            cut = max(0, same - _LEAD)
            for sign, line in (("-", old), ("+", new)):
                if line is not None:
                    is_cut = cut and len(line) > MAX_SHOWN
                    yield f"{sign}...{line[cut:][:MAX_SHOWN]}" if is_cut else f"{sign}{line[:MAX_SHOWN]}"


def main() -> int:
    """Compare, or store. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.outputs", description=__doc__)
    parser.add_argument("--update", action="store_true", help="store what the commands print now")
    parser.add_argument("--only", default="", help="only commands whose text contains this")
    parser.add_argument("--lines", type=int, default=12, help="lines of a difference that are shown")
    parser.add_argument("--list", action="store_true", help="list the commands")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ.update(NO_COLOR="1", COLUMNS="120")
    invocations = [one for one in list_invocations() if options.only in one.text]
    if options.list:
        print("\n".join(one.text for one in invocations))
        return 0
    stored = dict(read_outputs())
    new = {text: one for text, one in stored.items() if options.only not in text} if options.update else {}
    different = 0
    for now in compute_outputs(invocations):
        new[now.command] = now
        before = stored.pop(now.command, None)
        if before == now:
            continue
        different += 1
        lines_of_it = ["not stored"] if before is None else list(_find_differences(before, now))
        print(f"\n$ lease-webhook {now.command}", *lines_of_it[: options.lines], sep="\n")
        if len(lines_of_it) > options.lines:
            print(f"... and {len(lines_of_it) - options.lines} lines more")
    obsolete = [text for text in stored if options.only in text]
    for text in obsolete:
        print(f"\n$ lease-webhook {text}\nno longer run")
    if options.update:
        print(f"stored: {len(new)} outputs in {write_outputs(new.values())} files of {FOLDER.relative_to(ROOT)}")
        return 0
    print(f"\n{len(invocations)} commands, {different + len(obsolete)} different")
    return 1 if different or obsolete else 0


if __name__ == "__main__":
    sys.exit(main())
