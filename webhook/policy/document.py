"""From the text of a policy file to its typed document, or to an error that says what to correct; and the presets.

The YAML is a small part of YAML 1.2. Refused, because a policy never needs them and each has caused incidents: aliases
and anchors (a few lines that expand to gigabytes), tags (`!!python/object`), a key twice, a second document, deep
nesting. Plain scalars are read as in the core schema, so `off` is a string, and so is a date; numbers in other
notations are strings.
"""

import ast
import re
from functools import cache
from typing import Any, Final

import msgspec
import yaml
from msgspec import inspect

from webhook.api.field import MISSING_FIELD, NAMES, UNKNOWN_FIELD, UNKNOWN_VALUE, WRONG_TYPE, located, reworded
from webhook.api.text import quote
from webhook.inputs import yaml_reader
from webhook.inputs.yaml_reader import LOADER, Dialect, Scalar, Value, YamlError
from webhook.policy.error import PolicyError, nearest, steps_of
from webhook.policy.schema import API_VERSION, EXEMPTIBLE, OFFLINE, PolicyDocument
from webhook.rules.registry import OBJECT_TYPES, OFFLINE_RULES, RULES
from webhook.rules.rule import Mode, Rule

MAX_CHARACTERS: Final = 4 * 1024 * 1024
"""Four times the largest ConfigMap."""
FIXED: Final = (OBJECT_TYPES,)
"""Not configurable: a document of wrong types is not decoded further, so there is nothing left to evaluate."""

_CAPS: Final = {"observe": Mode.WARN, "standard": Mode.DENY, "strict": Mode.DENY}
"""The cap of each preset: `observe` denies nothing."""
_WORDS: Final[dict[str, Scalar]] = {
    "": None,
    **dict.fromkeys(["~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,100}")
_FRACTION: Final = re.compile(r"[-+]?([0-9]{1,100}\.[0-9]{0,100}|\.[0-9]{1,100})")
_TYPE: Final = inspect.type_info(PolicyDocument)


def read(text: str) -> Value:
    """Return the value of the one YAML document of a text.

    Raises:
        PolicyError: the text is too large, not YAML, empty, or has what a policy file may not have.

    """
    if len(text) > MAX_CHARACTERS:
        raise PolicyError(f"the file is larger than {MAX_CHARACTERS} characters")
    try:
        value: Value = yaml_reader.read(text, _POLICY)
    except YamlError as error:
        problem = f"not YAML: {error.problem}" if error.is_syntax else error.problem
        raise PolicyError(problem, line=error.line) from error
    return value


def line_of(text: str, path: str) -> int:
    """Return the line of a path such as `overrides[0].rules`, from 1, or of the innermost value around it.

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


def converted(value: Value) -> PolicyDocument:
    """Return the typed document; everything that can be checked for one key by itself is checked here.

    Raises:
        PolicyError: the first problem, with its path.

    """
    try:
        return msgspec.convert(value, PolicyDocument)
    except msgspec.ValidationError as error:
        raise PolicyError(*_explained(*located(error))) from error


@cache
def preset(name: str) -> PolicyDocument:
    """Return a preset as a policy file would say it, made from the modes in each rule.

    The name is one that `PolicyDocument.preset` allows.
    """
    rules: dict[str, Value] = {
        rule.id: {"mode": _mode_in(name, rule).word} for rule in (*RULES.values(), *OFFLINE_RULES.values())
    }
    return converted({"apiVersion": API_VERSION, "preset": name, "mode": _CAPS[name].word, "rules": rules})


def denied_by(name: str) -> frozenset[str]:
    """Return the ids of the rules that a preset denies by, before its cap."""
    return frozenset(rule.id for rule in RULES.values() if _mode_in(name, rule) is Mode.DENY)


def why_never_exempt(name: str) -> str:
    """Return why no exemption applies to a rule, as a verb phrase; "" for other rules and for an unknown name."""
    if name in OFFLINE:
        return "is not evaluated for a single write; set its mode instead"
    if name not in RULES or name in EXEMPTIBLE:
        return ""
    if RULES[name].parity:
        return "repeats a check of the API server, which applies to everybody"
    return "applies to everybody"


def _mode_in(name: str, rule: Rule) -> Mode:
    return {"observe": rule.observe, "standard": rule.standard, "strict": rule.strict}[name]


def _plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


_POLICY: Final = Dialect(
    plain=_plain,
    max_depth=16,
    keys=re.compile(r"[A-Za-z0-9_-]+"),
    key_form="must consist of letters, digits, - and _",
)


def _explained(problem: str, path: str) -> tuple[str, str]:
    """Return the problem in words for the writer of the file, and the path that it is about."""
    here = _type_at(path)
    if unknown_key := UNKNOWN_FIELD.fullmatch(problem):
        return _unknown_key(unknown_key[1], here, path), _child(path, unknown_key[1])
    if missing := MISSING_FIELD.fullmatch(problem):
        return "must be set", _child(path, missing[1])
    if unknown_value := UNKNOWN_VALUE.fullmatch(problem):
        return _unknown_value(ast.literal_eval(unknown_value[1]), here), path
    if wrong_type := WRONG_TYPE.fullmatch(problem):
        wanted, given = wrong_type.groups()
        if isinstance(here, inspect.LiteralType):
            return f"must be one of {', '.join(map(str, here.values))}, not {NAMES[given]}", path
        hint = "; put it in quotes" if wanted == "str" and given in ("int", "float", "bool") else ""
        return f"{reworded(problem)}{hint}", path
    return reworded(problem) or f"must be {_description(here)}", path


def _type_at(path: str) -> inspect.Type:
    """Return the type that the schema has at a path such as `exempt[0].owner`."""
    here: inspect.Type = _TYPE
    for step in steps_of(path):
        if isinstance(here, inspect.ListType):
            here = here.item_type
        else:
            assert isinstance(here, inspect.StructType)
            here = next(field.type for field in here.fields if field.encode_name == step)
    return here


def _unknown_key(key: str, here: inspect.Type, path: str) -> str:
    assert isinstance(here, inspect.StructType)
    if path.endswith("rules") and key in FIXED:
        return "this rule cannot be changed: a document of wrong types is not decoded further"
    word = "unknown rule" if path.endswith("rules") else "unknown key"
    return word + nearest(key, [field.encode_name for field in here.fields])


def _unknown_value(value: Any, here: inspect.Type) -> str:  # noqa: ANN401 - any JSON value
    assert isinstance(here, inspect.LiteralType)
    known = [str(one) for one in here.values]
    why = why_never_exempt(value) if set(known) == set(EXEMPTIBLE) else ""
    return f"{quote(value)} {why}" if why else f"{quote(value)} is not known{nearest(value, known)}"


def _description(here: inspect.Type) -> str:
    """Return what the schema says about the type, for patterns and lengths."""
    assert isinstance(here, inspect.Metadata)
    return str((here.extra_json_schema or {})["description"])


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
