"""YAML as `kubectl` reads it: the values that its JSON would have, and nothing that only YAML knows.

Source: kubernetes-sigs/yaml (yaml.go, goyaml.v2/resolve.go), which turns YAML 1.1 into JSON: `yes` and `on` are
booleans, a time stays text, a whole float is an integer, base 60 does not exist, a key may not stand twice.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import yaml

_TAG: Final = "tag:yaml.org,2002:"
_BOOLEANS: Final = {
    "y": True,
    "yes": True,
    "true": True,
    "on": True,
    "n": False,
    "no": False,
    "false": False,
    "off": False,
}
_WORDS: Final = re.compile(r"^(?:y|Y|n|N|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_INTEGER: Final = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"^[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$"
)
_SEPARATOR: Final = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_LARGEST_PLAIN_FLOAT: Final = 1e21
"""Go prints a float below this without an exponent, so a whole one reads back as an integer."""


class NotYamlError(ValueError):
    """The text is no YAML that Kubernetes reads; the message is one line."""


def documents(text: str) -> Iterator[str]:
    """The documents of a file, cut at `---` as kubectl cuts them, so that a broken one costs only itself.

    Each begins with as many empty lines as stood before it: the line numbers of errors are those of the file.
    """
    start = lines = 0
    for end, following in [*((found.start(), found.end()) for found in _SEPARATOR.finditer(text)), (len(text), 0)]:
        part = text[start:end]
        if _says_something(part):
            yield "\n" * lines + part
        lines += part.count("\n")
        start = following


def parse(text: str) -> object:
    """One document as a JSON value.

    Raises:
        NotYamlError: broken YAML, a key that stands twice, a value that JSON does not have.

    """
    try:
        value: object = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NotYamlError(f"{where}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise NotYamlError(" ".join(str(error).split())) from None
    except RecursionError:
        raise NotYamlError("nested too deeply") from None
    return value


def _says_something(document: str) -> bool:
    lines = (line.strip() for line in document.splitlines())
    return any(line and not line.startswith(("#", "%")) and line != "..." for line in lines)


class _Loader(yaml.SafeLoader):
    """A safe loader that knows Kubernetes' values only: no dates, sets or bytes."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - declared so by PyYAML
    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        None: yaml.SafeLoader.construct_undefined,
        f"{_TAG}null": yaml.SafeLoader.construct_yaml_null,
        f"{_TAG}str": yaml.SafeLoader.construct_yaml_str,
        f"{_TAG}seq": yaml.SafeLoader.construct_yaml_seq,
    }


def _boolean(_: _Loader, node: yaml.ScalarNode) -> bool:
    word: str = node.value
    if word.lower() not in _BOOLEANS:
        raise NotYamlError(f"line {node.start_mark.line + 1}: {word!r} is no boolean")
    return _BOOLEANS[word.lower()]


def _integer(_: _Loader, node: yaml.ScalarNode) -> int:
    digits: str = node.value.replace("_", "")
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    return int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)


def _float(_: _Loader, node: yaml.ScalarNode) -> int | float:
    text: str = node.value.replace("_", "")
    if text.lower().strip("+-") in {".inf", ".nan"}:
        raise NotYamlError(f"line {node.start_mark.line + 1}: JSON has no {text}")
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _LARGEST_PLAIN_FLOAT else number


def _text(_: _Loader, node: yaml.ScalarNode) -> str:
    value: str = node.value
    return value


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
            if key.value in seen:
                raise NotYamlError(f"line {key.start_mark.line + 1}: the key {key.value!r} stands twice")
            seen.add(key.value)
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        mapping[_key(key, key_node)] = loader.construct_object(value_node, deep=True)
    return mapping


def _key(key: object, node: yaml.Node) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise NotYamlError(f"line {node.start_mark.line + 1}: a key must be text")


_Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(f"{_TAG}bool", _WORDS, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver(f"{_TAG}int", _INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}merge", re.compile(r"^<<$"), ["<"])
_Loader.add_constructor(f"{_TAG}bool", _boolean)
_Loader.add_constructor(f"{_TAG}int", _integer)
_Loader.add_constructor(f"{_TAG}float", _float)
_Loader.add_constructor(f"{_TAG}timestamp", _text)
_Loader.add_constructor(f"{_TAG}map", _mapping)
