"""The pages of the site: those that README and docs/README.md link to, in the Markdown that Python-Markdown reads.

The tree itself stays as GitHub reads it. Three things differ: the words behind the language of a fence, a table that
follows a line of text, and the content of a list, which GitHub indents as far as its marker, Python-Markdown by four.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tools.docs.pages import ROOT

STARTS: Final = ("README.md", "docs/README.md")
_LINK: Final = re.compile(r"(\]\()([^)#\s]*)((?:#[^)\s]+)?\))")
_SCHEME: Final = re.compile(r"[a-z]+:")
_FENCE: Final = re.compile(r"( *)```(\S*).*")
_MARKER: Final = re.compile(r"(?:[-*]|[0-9]+\.) +")
_INDENT: Final = 4


def find_links(text: str) -> Iterator[str]:
    """Yield the relative targets of links outside of code."""
    for line, is_code in _list_lines(text):
        for found in () if is_code else _LINK.finditer(_strip_code(line)):
            if found[2] and not _SCHEME.match(found[2]):
                yield found[2]


def find_reachable(root: Path = ROOT, starts: Sequence[str] = STARTS) -> set[str]:
    """Return the paths of all files that links lead to, from page to page; of a folder, its files."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        if path in found or not (root / path).exists():
            continue  # mkdocs names a link that leads nowhere
        if (root / path).is_dir():
            waiting += [str(file.relative_to(root)) for file in (root / path).iterdir() if file.is_file()]
            continue
        found.add(path)
        if path.endswith(".md"):
            folder = (root / path).parent
            text = (root / path).read_text()
            waiting += [str((folder / target).resolve().relative_to(root.resolve())) for target in find_links(text)]
    return found


def convert(text: str) -> str:
    """Return a page in the Markdown that Python-Markdown reads as GitHub reads this."""
    lines: list[str] = []
    marker = 0
    for given, is_code in _list_lines(text):
        fence = _FENCE.fullmatch(given)
        line = f"{fence[1]}```{_find_language(fence[2])}" if fence else given
        if not is_code and line.startswith("|") and lines and lines[-1].strip() and not lines[-1].startswith("|"):
            lines.append("")
        item = None if is_code else _MARKER.match(line)
        if item:
            if not marker and lines and lines[-1].strip():
                lines.append("")
            marker = len(item[0])
        elif line.strip() and not line.startswith(" "):
            marker = 0
        is_content = marker and not item and line.startswith(" " * marker)
        lines.append(" " * _INDENT + line[marker:] if is_content else line)
    return "\n".join(lines) + "\n"


def write_stage(into: Path, root: Path = ROOT) -> set[str]:
    """Write the pages, and the files that they link to, below a folder; return their paths."""
    paths = find_reachable(root)
    for path in sorted(paths):
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            target.write_text(_link_to_pages(convert((root / path).read_text()), (root / path).parent))
        else:
            target.write_bytes((root / path).read_bytes())
    return paths


def expand(nav: Any, paths: set[str]) -> Any:
    """Return the navigation with each folder, as `docs/rules/`, replaced by its pages, README first."""
    if isinstance(nav, Mapping):
        return {title: expand(inner, paths) for title, inner in nav.items()}
    if isinstance(nav, list):
        return [expand(inner, paths) for inner in nav]
    if not nav.endswith("/"):
        return nav
    pages = sorted(path for path in paths if path.endswith(".md") and str(Path(path).parent) == nav.rstrip("/"))
    first = [path for path in pages if path.endswith("README.md")]
    # A rule is called by its id.
    return [*first, *({Path(path).stem: path} for path in pages if path not in first)]


def list_pages(nav: Any) -> Iterator[str]:
    """Yield the paths that a navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for inner in nav.values() if isinstance(nav, Mapping) else nav:
            yield from list_pages(inner)


def _list_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is inside of a fence."""
    is_code = False
    for line in text.splitlines():
        is_fence = _FENCE.fullmatch(line) is not None
        yield line, is_code
        is_code ^= is_fence


def _strip_code(line: str) -> str:
    return re.sub(r"`[^`]*`", "", line)


def _find_language(word: str) -> str:
    # The site draws no diagrams: what draws them would be fetched from elsewhere.
    return "text" if word == "mermaid" else word


def _link_to_pages(text: str, folder: Path) -> str:
    """Return a text whose links to folders lead to a page in them, or to their first file."""

    def point_to_page(found: re.Match[str]) -> str:
        target = found[2]
        if not target or _SCHEME.match(target) or not (folder / target).is_dir():
            return found[0]
        files = sorted(file.name for file in (folder / target).iterdir() if file.is_file())
        name = "README.md" if "README.md" in files else files[0]
        return f"{found[1]}{target.rstrip('/')}/{name}{found[3]}"

    return _LINK.sub(point_to_page, text)
