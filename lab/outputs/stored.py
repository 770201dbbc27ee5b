"""Stored outputs as text: a file for each command and folder of inputs, whose changes git shows and merges by lines."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

FOLDER: Final = Path(__file__).parent / "stored"
MAX_LINES: Final = 250
"""Lines of one output that are stored; of each further hundred a digest."""
MAX_LINE: Final = 600
"""Characters of one line that are stored; the rest counts through its digest."""
_BLOCK: Final = 100
_FILES: Final = (".gz", ".json", ".jsonl", ".yaml", ".md")
_FOLDERS: Final = ("tests", "docs", "deploy", "webhook")
"""The folder of the inputs."""
_COMMAND: Final = "$ lease-webhook "


class Output(Struct, frozen=True):
    """The lines that one command printed, after `| `, or `! ` for standard error; long ones are abridged."""

    command: str
    code: int
    lines: tuple[str, ...]


def make_output(command: str, code: int, out: str, err: str) -> Output:
    """Return an output as it is stored."""
    lines = [f"| {line}" for line in _abridge(out)] + [f"! {line}" for line in _abridge(err)]
    return Output(command, code, tuple(lines))


def _abridge(text: str) -> Iterator[str]:
    """Yield the lines of a text; the last one is empty if it ends with a line break."""
    lines = text.split("\n") if text else []
    for line in lines[:MAX_LINES]:
        cut = len(line) - MAX_LINE
        yield f"{line[:MAX_LINE]} [{cut} characters more, {_digest(line)}]" if cut > 0 else line
    for number, block in enumerate(_split(lines[MAX_LINES:])):
        first = MAX_LINES + number * _BLOCK + 1
        yield f"[lines {first} to {first + len(block) - 1}, {_digest(*block)}]"


def _split(lines: list[str]) -> Iterator[list[str]]:
    return (lines[start : start + _BLOCK] for start in range(0, len(lines), _BLOCK))


def _digest(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def find_file(command: str) -> str:
    """Return the name of the file of a command: its first word, and the folder of what it reads first."""
    words = command.split()
    paths = [word for word in words if word.partition("/")[0] in _FOLDERS]
    path = Path(paths[0]) if paths else Path()
    folder = path.parts[:-1] if path.suffix in _FILES else path.parts
    last = [part for part in folder if part not in {"tests", "data"}][:3]
    return re.sub(r"[^a-z0-9.]+", "-", "-".join([words[0].strip("-"), *last]).lower()) + ".txt"


def write_outputs(outputs: Iterable[Output], folder: Path = FOLDER) -> int:
    """Write all outputs in place of those that are stored, in the order of their commands; return how many files."""
    files: dict[str, list[str]] = {}
    for one in sorted(outputs, key=lambda one: one.command):
        lines = [f"{_COMMAND}{one.command}", f"exit code {one.code}", *one.lines, ""]
        files.setdefault(find_file(one.command), []).extend(lines)
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.txt"):
        if path.name not in files:
            path.unlink()
    for name, lines in files.items():
        (folder / name).write_bytes(("\n".join(lines)).encode(errors="surrogatepass"))
    return len(files)


def read_outputs(folder: Path = FOLDER) -> Mapping[str, Output]:
    """Return the stored outputs by their commands."""
    found: dict[str, Output] = {}
    for path in sorted(folder.glob("*.txt")):
        text = path.read_bytes().decode(errors="surrogatepass")
        for part in f"\n{text}".split(f"\n{_COMMAND}")[1:]:
            command, code, *lines = part.split("\n")
            kept = tuple(line for line in lines if line)
            found[command] = Output(command, int(code.removeprefix("exit code ")), kept)
    return found
