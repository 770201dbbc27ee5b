"""What is wrong with a value in a policy file, in words for the person who wrote it, with the nearest valid name."""

import ast
import difflib
import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import inspect

from webhook.api.text import quote
from webhook.policy.rule_ids import EXEMPTIBLE, FIXED, why_never_exempt
from webhook.policy.schema_types import PolicyDocument

LONGEST_NAME: Final = 64
"""Characters of a mistyped name that are compared; no valid name is longer."""

_AT: Final = " - at `$"
_STEP: Final = re.compile(r"[^.\[\]]+|\[\d+\]")
_DOCUMENT: Final = inspect.type_info(PolicyDocument)
_KINDS: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number with a fraction",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "nothing",
    "date": "a date such as 2027-01-31",
}


def complaint(message: str) -> tuple[str, str]:
    """A message of msgspec about a `PolicyDocument` as (problem, path); the path is "" for the whole file."""
    # The last one counts: a bad value, quoted before it, may hold the same characters; a key may not.
    problem, _, path = message.rpartition(_AT) if _AT in message else (message, "", "")
    path = path.removeprefix(".").removesuffix("`")
    here = type_at(path)
    for pattern, explain in _EXPLANATIONS:
        if match := pattern.fullmatch(problem):
            return explain(match, here, path)
    return f"must be {_description(here)}", path


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint: the valid name that looks most like this one, or all of them where none does and they are few."""
    near = difflib.get_close_matches(name[:LONGEST_NAME], known, n=1)
    if near:
        return f"; did you mean {quote(near[0])}?"
    return f"; known are {', '.join(sorted(known))}" if len(known) <= 10 else ""


def type_at(path: str) -> inspect.Type:
    """The type that the policy file's schema has at a path such as `exempt[0].owner`."""
    here: inspect.Type = _DOCUMENT
    for step in _STEP.findall(path):
        if isinstance(here, inspect.ListType):
            here = here.item_type
        else:
            assert isinstance(here, inspect.StructType)
            here = next(field.type for field in here.fields if field.encode_name == step)
    return here


def _unknown_key(match: re.Match[str], here: inspect.Type, path: str) -> tuple[str, str]:
    assert isinstance(here, inspect.StructType)
    if path.endswith("rules") and match[1] in FIXED:
        return "this rule cannot be changed: a document of wrong types is read no further", _child(path, match[1])
    word = "unknown rule" if path.endswith("rules") else "unknown key"
    return word + nearest(match[1], [field.encode_name for field in here.fields]), _child(path, match[1])


def _missing(match: re.Match[str], _: inspect.Type, path: str) -> tuple[str, str]:
    return "must be given", _child(path, match[1])


def _unknown_word(match: re.Match[str], here: inspect.Type, path: str) -> tuple[str, str]:
    assert isinstance(here, inspect.LiteralType)
    word = ast.literal_eval(match[1])
    known = [str(value) for value in here.values]
    if set(known) == set(EXEMPTIBLE):
        why = why_never_exempt(word)
        if why:
            return f"{quote(word)} {why}", path
    return f"{quote(word)} is not known{nearest(word, known)}", path


def _wrong_kind(match: re.Match[str], here: inspect.Type, path: str) -> tuple[str, str]:
    wanted, given = match[1], match[2]
    if isinstance(here, inspect.LiteralType):
        return f"must be one of {', '.join(str(value) for value in here.values)}, not {_KINDS[given]}", path
    hint = "; put it in quotes" if wanted == "str" and given in ("int", "float", "bool") else ""
    return f"must be {_KINDS[wanted]}, not {_KINDS[given]}{hint}", path


def _out_of_bounds(match: re.Match[str], _: inspect.Type, path: str) -> tuple[str, str]:
    return f"must be {'at least' if match[1] == '>=' else 'at most'} {match[2]}", path


def _empty(_: re.Match[str], __: inspect.Type, path: str) -> tuple[str, str]:
    return "must have at least one entry", path


def _too_many(match: re.Match[str], _: inspect.Type, path: str) -> tuple[str, str]:
    return f"must have at most {match[1]} entries", path


def _bad_date(_: re.Match[str], __: inspect.Type, path: str) -> tuple[str, str]:
    return f"must be {_KINDS['date']}", path


_EXPLANATIONS: Final[list[tuple[re.Pattern[str], Callable[[re.Match[str], inspect.Type, str], tuple[str, str]]]]] = [
    (re.compile(r"Object contains unknown field `(.*)`"), _unknown_key),
    (re.compile(r"Object missing required field `(.*)`"), _missing),
    (re.compile(r"Invalid enum value (.*)"), _unknown_word),
    (re.compile(r"Expected `(\w+)`, got `(\w+)`"), _wrong_kind),
    (re.compile(r"Expected `int` (>=|<=) (\d+)"), _out_of_bounds),
    (re.compile(r"Expected `array` of length >= 1"), _empty),
    (re.compile(r"Expected `array` of length <= (\d+)"), _too_many),
    (re.compile(r"Invalid RFC3339 encoded date"), _bad_date),
]


def _description(here: inspect.Type) -> str:
    """What the type's own description says, for patterns and lengths."""
    assert isinstance(here, inspect.Metadata)
    return str((here.extra_json_schema or {})["description"])


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
