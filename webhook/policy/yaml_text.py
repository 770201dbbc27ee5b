"""The YAML of a policy file: a small part of YAML 1.2, and the line of each value for errors.

Refused, because a policy never needs them and each has caused incidents: aliases and anchors (a few lines that expand
to gigabytes), tags (`!!python/object`), a key twice, a second document, deep nesting. Plain scalars are read as in the
core schema of YAML 1.2, so `off` is a string, and so is a date; numbers in other notations are strings.
"""

import re
from typing import Any, Final

import yaml

from webhook.policy.error import PolicyError, steps_of
from webhook.yaml_reader import LOADER, Dialect, Reader, Scalar, Value, YamlError

MOST_CHARACTERS: Final = 4 * 1024 * 1024
"""Four times the largest ConfigMap."""

_WORDS: Final[dict[str, Scalar]] = {
    "": None,
    **dict.fromkeys(["~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,100}")
_FRACTION: Final = re.compile(r"[-+]?([0-9]{1,100}\.[0-9]{0,100}|\.[0-9]{1,100})")


def read(text: str) -> Value:
    """The value of the one document of a text.

    Raises:
        PolicyError: the text is too large, not YAML, empty, or has what a policy file may not have.

    """
    if len(text) > MOST_CHARACTERS:
        raise PolicyError(f"the file is larger than {MOST_CHARACTERS} characters")
    reader = Reader(text, _POLICY)
    try:
        first = reader.begin()
        if first is None:
            raise PolicyError("the file is empty")
        value: Value = reader.value(first)
        reader.end()
    except YamlError as error:
        problem = f"not YAML: {error.problem}" if error.is_syntax else error.problem
        raise PolicyError(problem, line=error.line) from error
    return value


def line_of(text: str, path: str) -> int:
    """The line of a path such as `overrides[0].rules`, counted from 1, or of the innermost value around it.

    The text is one that `read` accepts.
    """
    node: Any = yaml.compose(text, Loader=LOADER)
    line: int = node.start_mark.line
    for step in steps_of(path):
        if step.startswith("["):
            found = [(item, item) for item in node.value[int(step[1:-1]) :][:1]]
        else:
            found = [(key, value) for key, value in node.value if key.value == step]
        if not found:
            break
        key, node = found[0]
        line = key.start_mark.line
    return line + 1


def _plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


_POLICY: Final = Dialect(
    plain=_plain,
    deepest=16,
    keys=re.compile(r"[A-Za-z0-9_-]+"),
    key_form="must consist of letters, digits, - and _",
)
