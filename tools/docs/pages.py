"""The Markdown pages of the repository, and their contents."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
END: Final = "<!-- end of what make docs writes -->\n"
"""The end of a part of a page that `make docs` writes."""
_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Block(Struct, frozen=True):
    """A fenced block: its language, its requirements that are not here (from `needs=`), and its text."""

    page: Path
    language: str
    needs: tuple[str, ...]
    text: str


class Example(Struct, frozen=True):
    """A command of a console block and the output that the page shows; `text` is the whole, unchanged."""

    page: Path
    command: str
    output: str
    text: str


def find_pages() -> list[Path]:
    """Return every Markdown file that belongs to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists())


def replace_generated(page: Path, begin: str, lines: Iterable[str]) -> str:
    """Return the text of a page with these lines in place of those between the mark `begin` and the end of it."""
    return replace_lines(page.read_text(encoding="utf-8"), begin, lines)


def replace_lines(text: str, begin: str, lines: Iterable[str]) -> str:
    """Return a text with these lines in place of those between the mark `begin` and the end of it."""
    before, _, rest = text.partition(begin)
    return "".join((before, begin, "\n".join([*lines, END]), rest.partition(END)[2]))


def find_section(page: Path, title: str) -> str:
    """Return the text under this heading of the second level, without its subsections' siblings."""
    _, found, rest = page.read_text().partition(f"\n## {title}\n")
    assert found, f"{page.name} has no section {title}"
    return rest.partition("\n## ")[0]


def find_table_lines(text: str) -> list[str]:
    """Return every line of every table."""
    return [line for line in text.splitlines() if line.startswith("|")]


def find_table(text: str, first_column: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this title."""
    rows = re.search(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE)
    assert rows, f"no table with the column {first_column}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows[1].splitlines()]


def find_blocks(page: Path) -> list[Block]:
    """Return every fenced block of a page: `sh` and `console` are commands, optionally followed by `needs=WORD,...`."""
    found = []
    for start, info, text in re.findall(r"^( *)```([^\n]*)\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE):
        language, _, needs = info.partition(" needs=")
        lines = (line.removeprefix(start) for line in text.splitlines(keepends=True))
        found.append(Block(page, language, tuple(needs.split(",")) if needs else (), "".join(lines)))
    return found


def find_examples(page: Path) -> list[Example]:
    """Return the commands of all console blocks with their output."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        for text in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
            match = re.fullmatch(r"\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*)", text, re.DOTALL)
            assert match, text
            found.append(Example(page, match[1].replace("\\\n", " "), match[2], text))
    return found


def extract_prose(page: Path) -> str:
    """Return the text without fenced blocks."""
    return _FENCED.sub("", page.read_text())


def find_anchors(page: Path) -> set[str]:
    """Return the fragments under which GitHub shows the headings of a page."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", extract_prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-")
        repeated = sum(1 for each in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each))
        found.add(f"{slug}-{repeated}" if repeated else slug)
    return found
