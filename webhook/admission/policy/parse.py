"""Parse the text of a policy file, with errors that say what to correct; and the presets.

The YAML is a small part of YAML 1.2, without what a policy never needs and what has caused incidents: aliases, anchors,
tags, repeated keys, a second document, deep nesting. Plain scalars are read as in its core schema: `off` is a string.
"""

import ast
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, Final

import msgspec
import yaml
from msgspec import inspect

from webhook.admission.policy import schema
from webhook.admission.policy.fences import make_fences
from webhook.admission.policy.model import (
    ExemptRules,
    LeaseIndex,
    LeasePolicy,
    Overrides,
    Policy,
    apply_settings,
)
from webhook.admission.rules.holders import Binding
from webhook.admission.rules.registry import EXEMPTIBLE, OBJECT_TYPES_ID, RULES
from webhook.admission.rules.stamps import Stamps
from webhook.kubernetes.decoding_errors import (
    MISSING_FIELD,
    NAMES,
    UNKNOWN_FIELD,
    UNKNOWN_VALUE,
    WRONG_TYPE,
    explain_problem,
    split_path,
)
from webhook.text import yaml_reader
from webhook.text.quoting import quote
from webhook.text.yaml_reader import LOADER, Dialect, Scalar, YamlError

BOUND: Final[Mapping[schema.Setting, schema.Value]] = {
    (rule.id, schema.MODE): rule.bound for rule in RULES.values() if rule.bound is not None
}
"""Defaults that a binding sets."""
MAX_COMBINATIONS: Final = 200_000
"""Far more than people write by hand, and few enough to index in a second."""

_USER: Final = "user:"
MAX_CHARACTERS: Final = 4 * 1024 * 1024
"""Four times the largest ConfigMap."""
_WORDS: Final[dict[str, Scalar]] = {
    "": None,
    **dict.fromkeys(["~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,100}")
_FRACTION: Final = re.compile(r"[-+]?([0-9]{1,100}\.[0-9]{0,100}|\.[0-9]{1,100})")
_STEP: Final = re.compile(r"[^.\[\]]+|\[\d+\]")
"""A step of a path: a key, or a position in brackets."""
_TYPE: Final = inspect.type_info(schema.PolicyDocument)


def parse(text: str) -> Policy:
    """Return the policy that a file describes; raises PolicyError, and no other error, for any text."""
    value = read(text)
    try:
        return _compile(convert(value))
    except schema.PolicyError as error:
        raise schema.PolicyError(error.problem, error.path, find_line(text, error.path)) from error


@cache
def make_preset(name: str) -> schema.PolicyDocument:
    """Return the preset of a name as a policy file would say it, made from the modes in each rule."""
    rules: dict[str, yaml_reader.Value] = {rule.id: {"mode": getattr(rule, name).word} for rule in RULES.values()}
    cap = "warn" if name == "observe" else "deny"
    return convert({"apiVersion": schema.API_VERSION, "preset": name, "mode": cap, "rules": rules})


# ---- from text to the document ---------------------------------------------------------------------------------------


def read(text: str) -> yaml_reader.Value:
    """Return the value of the one YAML document of a text; raises PolicyError for what a policy file may not have."""
    if len(text) > MAX_CHARACTERS:
        raise schema.PolicyError(f"the file is larger than {MAX_CHARACTERS} characters")
    try:
        value: yaml_reader.Value = yaml_reader.read(text, _POLICY)
    except YamlError as error:
        problem = f"not YAML: {error.problem}" if error.is_syntax else error.problem
        raise schema.PolicyError(problem, line=error.line) from error
    return value


def find_line(text: str, path: str) -> int:
    """Return the line, from 1, of a path such as `overrides[0].rules`, or of the innermost value around it."""
    node: Any = yaml.compose(text, Loader=LOADER)
    line: int = node.start_mark.line
    for step in _STEP.findall(path):
        if step.startswith("["):
            found = [(item, item) for item in node.value[int(step[1:-1]) :][:1]]
        else:
            found = [(key, value) for key, value in node.value if key.value == step]
        if not found:
            break
        key, node = found[0]
        line = key.start_mark.line
    return line + 1


def convert(value: yaml_reader.Value) -> schema.PolicyDocument:
    """Return the typed document; raises PolicyError, with the path, for the first key that is wrong by itself."""
    try:
        return msgspec.convert(value, schema.PolicyDocument)
    except msgspec.ValidationError as error:
        raise schema.PolicyError(*_explain(*split_path(error))) from error


def _read_plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


_POLICY: Final = Dialect(
    plain=_read_plain,
    max_depth=16,
    keys=re.compile(r"[A-Za-z0-9_-]+"),
    key_form="must consist of letters, digits, - and _",
)


def _explain(problem: str, path: str) -> tuple[str, str]:
    """Return the problem in words for the writer of the file, and the path that it is about."""
    here = _find_type(path)
    if unknown_key := UNKNOWN_FIELD.fullmatch(problem):
        return _explain_unknown_key(unknown_key[1], here, path), _join_path(path, unknown_key[1])
    if missing := MISSING_FIELD.fullmatch(problem):
        return "must be set", _join_path(path, missing[1])
    if unknown_value := UNKNOWN_VALUE.fullmatch(problem):
        return _explain_unknown_value(ast.literal_eval(unknown_value[1]), here), path
    if wrong_type := WRONG_TYPE.fullmatch(problem):
        wanted, given = wrong_type.groups()
        if isinstance(here, inspect.LiteralType):
            return f"must be one of {', '.join(map(str, here.values))}, not {NAMES[given]}", path
        hint = "; put it in quotes" if wanted == "str" and given in ("int", "float", "bool") else ""
        if given == "str" and re.search(r"(^|\.)rules\.[a-z-]+$", path):
            hint = "; a mode is written as {mode: off}"
        return f"{explain_problem(problem)}{hint}", path
    if words := explain_problem(problem):
        return words, path
    # Patterns and lengths are described in the schema.
    assert isinstance(here, inspect.Metadata)
    assert here.extra is not None
    return f"must be {here.extra[schema.FORM]}", path


def _find_type(path: str) -> inspect.Type:
    here: inspect.Type = _TYPE
    for step in _STEP.findall(path):
        here = _strip_description(here)
        if isinstance(here, inspect.ListType):
            here = here.item_type
        else:
            assert isinstance(here, inspect.StructType)
            here = next(field.type for field in here.fields if field.encode_name == step)
    return here if _has_form(here) else _strip_description(here)


def _has_form(here: inspect.Type) -> bool:
    return isinstance(here, inspect.Metadata) and schema.FORM in (here.extra or {})


def _strip_description(here: inspect.Type) -> inspect.Type:
    """Return the type itself of a key that is described."""
    return here.type if isinstance(here, inspect.Metadata) else here


def _explain_unknown_key(key: str, here: inspect.Type, path: str) -> str:
    assert isinstance(here, inspect.StructType)
    if path.endswith("rules") and key == OBJECT_TYPES_ID:
        return "this rule cannot be changed: a document of wrong types is not decoded further"
    word = "unknown rule" if path.endswith("rules") else "unknown key"
    return word + schema.suggest_nearest(key, [field.encode_name for field in here.fields])


def _explain_unknown_value(value: Any, here: inspect.Type) -> str:  # noqa: ANN401 - any JSON value
    assert isinstance(here, inspect.LiteralType)
    known = [str(one) for one in here.values]
    if value in RULES and {*known} >= EXEMPTIBLE:
        return f"{quote(value)} applies to everyone, so no exemption may name it"
    return f"{quote(value)} is not known{schema.suggest_nearest(value, known)}"


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# ---- from the document to the policy ---------------------------------------------------------------------------------


def _compile(document: schema.PolicyDocument) -> Policy:
    """Return the policy of a document on top of its preset."""
    base = make_preset(document.preset)
    default = _make_default(base, document)
    stamps = _index_stamps(document.stamps or ())
    return Policy(
        document=document,
        preset=document.preset,
        digest=hashlib.sha256(msgspec.json.encode([base, document], order="deterministic")).hexdigest()[:8],
        mode=min(schema.parse_mode(base.mode), schema.parse_mode(document.mode)),
        enforce_without_stamps=document.without_stamps == "enforce",
        default=default,
        bound=_make_default(base, document, BOUND),
        overrides=_index_overrides(document.overrides, default),
        bindings=_index_bindings(document.bindings),
        exemptions=_index_exemptions(document.exempt),
        docs_url=document.docs_url or "",
        fences=make_fences(document.fences or (), stamps),
        stamps=stamps,
    )


def _count_combinations(before: int, path: str, *lists: Sequence[str]) -> int:
    """Add those of an entry to the combinations before it; raises PolicyError if they become too many to be indexed."""
    combinations = before + prod(max(1, len(one)) for one in lists)
    if combinations > MAX_COMBINATIONS:
        problem = f"more than {MAX_COMBINATIONS} combinations of requester, namespace, lease and operation so far"
        raise schema.PolicyError(f"{problem}; use globs", path)
    return combinations


def _make_default(
    base: schema.PolicyDocument, document: schema.PolicyDocument, between: Mapping[schema.Setting, schema.Value] = {}
) -> LeasePolicy:
    """Return what holds for all leases; `between` is a layer above the preset and below the file's own rules."""
    settings = schema.list_settings(document.rules)
    default = apply_settings(LeasePolicy(modes={}), schema.list_settings(base.rules) | dict(between) | settings)
    _check_numbers(default, settings, "rules")
    return default


def _index_overrides(overrides: list[schema.Override], default: LeasePolicy) -> Overrides:
    indexes: Overrides = {one: LeaseIndex() for one in schema.OPERATIONS}
    combinations = 0
    for position, override in enumerate(overrides):
        path = f"overrides[{position}]"
        values = schema.list_settings(override.rules)
        _check_numbers(apply_settings(default, values), values, f"{path}.rules")
        lists = (override.operations or (), override.namespaces, override.leases)
        combinations = _count_combinations(combinations, path, *lists)
        for operation in schema.list_operations(override):
            indexes[operation].put(override.namespaces, override.leases, (position, values), path)
    return indexes


def _index_exemptions(exemptions: list[schema.Exemption]) -> dict[str, LeaseIndex[ExemptRules]]:
    found: dict[str, LeaseIndex[ExemptRules]] = {}
    combinations = 0
    for position, exemption in enumerate(exemptions):
        path = f"exempt[{position}]"
        names = [f"user:{user}" for user in schema.list_users(exemption)]
        names += [f"group:{group}" for group in exemption.groups]
        if not (names or exemption.namespaces or exemption.leases):
            raise schema.PolicyError("must have users, groups, service_accounts, namespaces or leases", path)
        combinations = _count_combinations(combinations, path, names, exemption.namespaces, exemption.leases)
        rules = frozenset(exemption.rules or EXEMPTIBLE)
        exempt = ExemptRules(rules, schema.list_operations(exemption), schema.find_end(exemption))
        for requester in names or [""]:  # anyone
            found.setdefault(requester, LeaseIndex()).put(exemption.namespaces, exemption.leases, exempt, path)
    return found


def _index_bindings(bindings: list[schema.LeaseBinding]) -> dict[tuple[str, str], Binding]:
    found: dict[tuple[str, str], Binding] = {}
    for position, binding in enumerate(bindings):
        key = (binding.namespace, binding.lease)
        if key in found:
            problem = f"{'/'.join(key)} is already bound by bindings[{list(found).index(key)}]"
            raise schema.PolicyError(problem, f"bindings[{position}]")
        accounts = [writer.partition("/") for writer in binding.writers if not writer.startswith(_USER)]
        found[key] = Binding(
            service_accounts=frozenset((namespace, name) for namespace, _, name in accounts),
            users=frozenset(writer.removeprefix(_USER) for writer in binding.writers if writer.startswith(_USER)),
            holders=tuple(binding.holder),
            require_pod=binding.require_pod,
        )
    return found


def _index_stamps(settings: Sequence[schema.StampSetting]) -> dict[str, Stamps]:
    found: dict[str, Stamps] = {}
    for position, setting in enumerate(settings):
        for number, namespace in enumerate(setting.namespaces):
            if namespace in found:
                path = f"stamps[{position}].namespaces[{number}]"
                raise schema.PolicyError(f"{quote(namespace)} has stamps already; name it once", path)
            found[namespace] = Stamps(setting.suffix, by_user=setting.writer == "user")
    return found


def _check_numbers(policy: LeasePolicy, settings: Mapping[schema.Setting, schema.Value], path: str) -> None:
    """Refuse a warn tier above the deny tier of the same unit: it would never apply."""
    for rule, name in settings:
        if name == schema.MODE:
            continue
        numbers = policy.numbers(rule)
        for warn, value in numbers.items():
            deny = warn.replace("warn_", "deny_", 1)
            if deny in numbers and value > numbers[deny]:
                raise schema.PolicyError(f"{warn} {value} must not be above {deny} {numbers[deny]}", f"{path}.{rule}")
