"""YAML for kubectl and for people: objects, and the names and comments of a policy that is written line by line."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from webhook.text.quoting import escape, truncate

_MAX_COMMENT: Final = 400
_WIDTH: Final = 4096  # columns, so many that no expression is folded
_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9./-]*[A-Za-z0-9])?")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that YAML 1.1 does not read as text."""
_NUMBER: Final = re.compile(r"[-+]?(?:0[xXoObB][0-9A-Fa-f_]*|\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9_]*)?)")
"""Text that kubectl may read as a number, such as `1e3` and `0o7`; PyYAML has other numbers."""


def write_stream(objects: Iterable[dict[str, Any]]) -> str:
    """Return the objects as a stream of documents, keys in their order; the same objects give the same text."""
    return "".join(
        f"---\n{yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=False)}" for one in objects
    )


def write_scalar(text: str) -> str:
    """Return one text as a scalar, in double quotes unless it is a plain name; what people would not see is escaped.

    YAML reads the escapes of Python in double quotes as the same characters.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return escape(json.dumps(text, ensure_ascii=False))


def write_flow(texts: Iterable[str]) -> str:
    """Return texts as a list on one line."""
    return f"[{', '.join(map(write_scalar, texts))}]"


def write_comment(text: str) -> str:
    """Return any text as a comment of one line."""
    return f"# {escape(truncate(text, _MAX_COMMENT))}"


class _Dumper(yaml.SafeDumper):
    """Text of several lines stays readable, and no object is an alias: kubectl reads aliases, people do not."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 - PyYAML's own signature
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if text.lower() in _WORDS or _NUMBER.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
# The members of a StrEnum are text, too.
_Dumper.add_multi_representer(str, _represent_text)
