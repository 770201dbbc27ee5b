"""Objects as YAML for kubectl and for people."""

from collections.abc import Iterable
from typing import Any, Final

import yaml

WIDEST: Final = 4096
"""Columns, so many that no expression is folded."""


def stream(objects: Iterable[dict[str, Any]]) -> str:
    """The objects as a stream of documents, keys in their order; the same objects give the same text."""
    return "".join(
        f"---\n{yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=WIDEST, allow_unicode=False)}" for one in objects
    )


class _Dumper(yaml.SafeDumper):
    """Text of several lines stays readable, and no object is an alias: kubectl reads aliases, people do not."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 - PyYAML's own signature
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
