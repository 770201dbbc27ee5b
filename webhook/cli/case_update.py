"""Writes verdicts into a file of cases, and leaves everything else as it is: comments, order and layout."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import to_builtins

from webhook.api.text import quote
from webhook.cli import kubernetes_yaml
from webhook.cli.cases import CaseFile, Expectation, case_nodes
from webhook.cli.failure import Failure
from webhook.yaml_reader import YamlError

LONGEST_LINE: Final = 100
_KEY: Final = "expect"


def update(file: CaseFile, verdicts: Mapping[int, Expectation]) -> None:
    """Write the verdicts of cases, counted from 0.

    Raises:
        Failure: the file cannot be written, or its layout would make something else change.

    """
    text = updated(file.text, verdicts)
    path = Path(file.path).resolve()
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(text.encode())
        draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise Failure(f"{file.path}: {error.strerror}") from error


def updated(text: str, verdicts: Mapping[int, Expectation]) -> str:
    """The text with the verdicts of cases, counted from 0; raises Failure if something else would change."""
    nodes = case_nodes(text)
    new_text = text
    for number in sorted(verdicts, reverse=True):
        start, end, piece = _edit(text, nodes[number], verdicts[number])
        new_text = new_text[:start] + piece.replace("\n", _line_break(text)) + new_text[end:]
    wanted: Any = kubernetes_yaml.parse(text)
    for number, verdict in verdicts.items():
        wanted["cases"][number] = {**wanted["cases"][number], _KEY: to_builtins(verdict)}
    try:
        changed = kubernetes_yaml.parse(new_text)
    except YamlError as error:
        changed = error
    if changed != wanted:
        raise Failure("the file cannot be updated without changing more; lay out its cases as block mappings")
    return new_text


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _edit(text: str, case: yaml.MappingNode, verdict: Expectation) -> tuple[int, int, str]:
    """(start, end, new text) of the change that gives a case its expectation."""
    found = next(((key, value) for key, value in case.value if key.value == _KEY), None)
    if found is None and case.flow_style:
        last = case.end_mark.index - 1
        return last, last, f", {_KEY}: {_flow(verdict)}"
    if found is None:
        end = _end_of_line(text, _end(text, case))
        column = case.start_mark.column
        return end, end, f"\n{' ' * column}{_KEY}:{_block(verdict, column + 2)}"
    key, value = found
    start, end = value.start_mark.index, _end(text, value)
    if isinstance(value, yaml.MappingNode) and not value.flow_style:
        return start, end, _block(verdict, value.start_mark.column).lstrip()
    if start == end and not case.flow_style:
        return start, end, _block(verdict, key.start_mark.column + 2)
    return start, end, f"{' ' if start == end else ''}{_flow(verdict)}"


def _end(text: str, node: yaml.Node) -> int:
    """Where the text of a node ends, without the blank lines and comments that the parser counts to a block."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end: int = node.end_mark.index
    # A literal text ends where the next line begins.
    return len(text[:end].rstrip("\r\n")) if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">") else end


def _end_of_line(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text.rstrip("\r\n")) if end < 0 else end - (text[end - 1] == "\r")


def _block(verdict: Expectation, column: int) -> str:
    """Lines of `key: value` after a line break, each at the column."""
    margin = f"\n{' ' * column}"
    lines = []
    for key, value in to_builtins(verdict).items():
        line = f"{margin}{key}: {_scalar(value)}"
        if isinstance(value, dict) and len(line) > LONGEST_LINE:
            line = f"{margin}{key}:" + "".join(f"{margin}  {rule}: {mode}" for rule, mode in value.items())
        lines.append(line)
    return "".join(lines)


def _flow(verdict: Expectation) -> str:
    return f"{{{', '.join(f'{key}: {_scalar(value)}' for key, value in to_builtins(verdict).items())}}}"


def _scalar(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{rule}: {mode}' for rule, mode in value.items())}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if text.replace("-", "").isalpha() else quote(text)
