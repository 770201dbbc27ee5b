"""From the values of a policy file to its typed document, or to an error that says what to correct."""

import ast
import re
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import inspect

from webhook.api.decoder_messages import (
    MISSING_FIELD,
    NAMES,
    UNKNOWN_FIELD,
    UNKNOWN_VALUE,
    WRONG_TYPE,
    located,
    reworded,
)
from webhook.api.text import quote
from webhook.policy.error import PolicyError, nearest, steps_of
from webhook.policy.schema_types import EXEMPTIBLE, OFFLINE, PolicyDocument
from webhook.rules.registry import OBJECT_TYPES, RULES
from webhook.yaml_reader import Value

FIXED: Final = (OBJECT_TYPES,)
"""Not configurable: a document of wrong types is not decoded further, so there is nothing left to evaluate."""

_DOCUMENT: Final = inspect.type_info(PolicyDocument)


def converted(value: Value) -> PolicyDocument:
    """The typed document; everything that can be checked for one key by itself is checked here.

    Raises:
        PolicyError: the first problem, with its path.

    """
    try:
        return msgspec.convert(value, PolicyDocument)
    except msgspec.ValidationError as error:
        raise PolicyError(*_explained(*located(error))) from error


def type_at(path: str) -> inspect.Type:
    """The type that the policy file's schema has at a path such as `exempt[0].owner`."""
    here: inspect.Type = _DOCUMENT
    for step in steps_of(path):
        if isinstance(here, inspect.ListType):
            here = here.item_type
        else:
            assert isinstance(here, inspect.StructType)
            here = next(field.type for field in here.fields if field.encode_name == step)
    return here


def why_never_exempt(name: str) -> str:
    """Why no exemption applies to a rule, as a verb phrase; "" for an exemptible rule and for an unknown name."""
    if name in OFFLINE:
        return "is not evaluated for a single write; set its mode instead"
    if name not in RULES or name in EXEMPTIBLE:
        return ""
    if RULES[name].parity:
        return "repeats a check of the API server, which applies to everybody"
    return "applies to everybody"


def _explained(problem: str, path: str) -> tuple[str, str]:
    """The problem in words for the writer of the file, and the path that it is about."""
    here = type_at(path)
    for pattern, explain in _EXPLANATIONS:
        if match := pattern.fullmatch(problem):
            return explain(match, here, path)
    return reworded(problem) or f"must be {_description(here)}", path


def _unknown_key(match: re.Match[str], here: inspect.Type, path: str) -> tuple[str, str]:
    assert isinstance(here, inspect.StructType)
    key = _child(path, match[1])
    if path.endswith("rules") and match[1] in FIXED:
        return "this rule cannot be changed: a document of wrong types is not decoded further", key
    word = "unknown rule" if path.endswith("rules") else "unknown key"
    return word + nearest(match[1], [field.encode_name for field in here.fields]), key


def _missing_key(match: re.Match[str], _: inspect.Type, path: str) -> tuple[str, str]:
    return "must be set", _child(path, match[1])


def _unknown_value(match: re.Match[str], here: inspect.Type, path: str) -> tuple[str, str]:
    assert isinstance(here, inspect.LiteralType)
    value = ast.literal_eval(match[1])
    known = [str(one) for one in here.values]
    why = why_never_exempt(value) if set(known) == set(EXEMPTIBLE) else ""
    return f"{quote(value)} {why}" if why else f"{quote(value)} is not known{nearest(value, known)}", path


def _wrong_type(match: re.Match[str], here: inspect.Type, path: str) -> tuple[str, str]:
    wanted, given = match[1], match[2]
    if isinstance(here, inspect.LiteralType):
        return f"must be one of {', '.join(str(value) for value in here.values)}, not {NAMES[given]}", path
    hint = "; put it in quotes" if wanted == "str" and given in ("int", "float", "bool") else ""
    return f"{reworded(match[0])}{hint}", path


_EXPLANATIONS: Final[list[tuple[re.Pattern[str], Callable[[re.Match[str], inspect.Type, str], tuple[str, str]]]]] = [
    (UNKNOWN_FIELD, _unknown_key),
    (MISSING_FIELD, _missing_key),
    (UNKNOWN_VALUE, _unknown_value),
    (WRONG_TYPE, _wrong_type),
]


def _description(here: inspect.Type) -> str:
    """What the schema says about the type, for patterns and lengths."""
    assert isinstance(here, inspect.Metadata)
    return str((here.extra_json_schema or {})["description"])


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
