"""Admission policies of an API server, evaluated by a CEL library: the shipped files themselves, not a copy in Python.

The library is that of the CEL project, in C++; an API server evaluates by the one in Go. Costs and types are not
checked: `make e2e E2E="--only stamp"` asks API servers.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, Final

import msgspec
from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from tests.factories import Document

_NAMES: Final = ("request", "object", "oldObject", "params", "namespaceObject", "variables")
_USED: Final = re.compile(r"variables\.(\w+)")
_OPERATION: Final = (("JSONPatch{op:", "{'op':"), (", path:", ", 'path':"), (", value:", ", 'value':"))
_LIST_FUNCTIONS: Final[Mapping[str, Callable[[list[Any]], Any]]] = {"sum": sum, "min": min, "max": max}
"""Functions of lists that are Kubernetes' own."""
_MISSING: Final = object()


class ExpressionError(Exception):
    """An expression errs; the text says which."""


class Policy:
    """A MutatingAdmissionPolicy or ValidatingAdmissionPolicy and what its binding does about a failure.

    Two of the same text are equal, and what the last few hundred writes came to is kept: several modes ask the same.
    """

    def __init__(self, document: Document, actions: Sequence[str] = ("Deny",)) -> None:
        self.name: str = document["metadata"]["name"]
        self.mutates: bool = document["kind"] == "MutatingAdmissionPolicy"
        self.denies = self.mutates or "Deny" in actions
        self._spec = document["spec"]
        self._variables = {one["name"]: one["expression"] for one in self._spec.get("variables", ())}
        self._fails = self._spec.get("failurePolicy", "Fail") == "Fail"
        self._text = msgspec.json.encode(document)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self._text == other._text

    @cached_property
    def _hash(self) -> int:
        return hash(self._text)

    def __hash__(self) -> int:
        return self._hash

    def concerns(self, operation: str, namespace: Mapping[str, str]) -> bool:
        """Return whether the policy is in force for an operation on a Lease in a namespace with these labels."""
        matched = self._spec["matchConstraints"]
        rules = matched["resourceRules"]
        if not any("leases" in rule["resources"] and operation in rule["operations"] for rule in rules):
            return False
        selector = matched.get("namespaceSelector") or {}
        if any(namespace.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
            return False
        return all(_selects(one, namespace) for one in selector.get("matchExpressions") or ())

    def mutated(self, data: Mapping[str, Any]) -> Document:
        """Return the object after the mutations. Raises ExpressionError if one errs and the policy fails then."""
        return _mutated(self, msgspec.json.encode(data))

    def refusal(self, data: Mapping[str, Any]) -> str:
        """Return why a write is refused, "" if it is not."""
        return _refusal(self, msgspec.json.encode(data))

    def evaluate_mutations(self, data: Mapping[str, Any]) -> Document:
        """As `mutated`."""
        evaluation = _Evaluation(self._variables, data)
        document: Document = data["object"]
        try:
            if not self._is_met(evaluation):
                return document
            for mutation in self._spec["mutations"]:
                document = patched(document, evaluation.value(_as_map(mutation["jsonPatch"]["expression"])))
        except ExpressionError:
            if self._fails:
                raise
            return document
        return document

    def evaluate_validations(self, data: Mapping[str, Any]) -> str:
        """As `refusal`."""
        evaluation = _Evaluation(self._variables, data)
        try:
            if not self._is_met(evaluation):
                return ""
        except ExpressionError as error:
            return str(error) if self._fails else ""
        for validation in self._spec["validations"]:
            try:
                if not evaluation.value(validation["expression"]):
                    return f"{self.name}: {validation.get('message', '')}"
            except ExpressionError as error:
                if self._fails:
                    return str(error)
        return ""

    def _is_met(self, evaluation: "_Evaluation") -> bool:
        return all(evaluation.value(one["expression"]) for one in self._spec.get("matchConditions", ()))


@lru_cache(maxsize=400)
def _mutated(policy: Policy, data: bytes) -> Document:
    return policy.evaluate_mutations(msgspec.json.decode(data))


@lru_cache(maxsize=800)
def _refusal(policy: Policy, data: bytes) -> str:
    return policy.evaluate_validations(msgspec.json.decode(data))


class _Evaluation:
    """Expressions about one write; a variable is evaluated where it is used first, as an API server does it."""

    def __init__(self, variables: Mapping[str, str], data: Mapping[str, Any]) -> None:
        self._variables = variables
        self._data = dict.fromkeys(_NAMES) | dict(data)
        self._values: dict[str, Any] = {}

    def value(self, expression: str) -> Any:
        """Return what an expression is; raises ExpressionError if it errs."""
        program, names, used = _compiled(expression)
        try:
            if used:
                data = {name: self._data[name] for name in names}
                data["variables"] = {name: value for name in used if (value := self._variable(name)) is not _MISSING}
                result = program.eval(data=data)
            else:
                result = program.eval(activation=self._without_variables)
            if result.type() == cel.Type.ERROR:
                raise ExpressionError(f"{result}: {expression[:200]}")
            return result.plain_value()
        except (RuntimeError, ValueError, TypeError) as error:
            raise ExpressionError(f"{error}: {expression[:200]}") from error

    @cached_property
    def _without_variables(self) -> Any:
        """What has no variables is given to the library once; that takes it as long as the objects are large."""
        return _environment().Activation(data={name: self._data[name] for name in _NAMES[:-1]})

    def _variable(self, name: str) -> Any:
        """Return the value of a variable; one that errs matters only if it is really used."""
        if name not in self._values:
            try:
                self._values[name] = self.value(self._variables[name])
            except ExpressionError:
                self._values[name] = _MISSING
        return self._values[name]


def policies(documents: Sequence[Document]) -> tuple[Policy, ...]:
    """Return the policies among these objects that change or refuse writes, those that mutate first, by name."""
    actions = {
        one["spec"]["policyName"]: one["spec"].get("validationActions", ["Deny"])
        for one in documents
        if one["kind"].endswith("PolicyBinding") and one["kind"].startswith("Validating")
    }
    selected = [
        Policy(one, actions.get(one["metadata"]["name"], ("Deny",)))
        for one in documents
        if one["kind"] in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
    ]
    return tuple(sorted((one for one in selected if one.denies), key=lambda policy: (not policy.mutates, policy.name)))


def patched(document: Document, operations: Sequence[Mapping[str, Any]]) -> Document:
    """Return the object after a JSON patch of additions, removals and replacements in objects."""
    if not operations:
        return document
    document = copy.copy(document)
    copied: dict[tuple[str, ...], Any] = {(): document}
    for operation in operations:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        place: Any = document
        for depth, step in enumerate(steps[:-1], 1):
            path = tuple(steps[:depth])
            if path not in copied:
                copied[path] = place[step] = copy.copy(place[step])
            place = copied[path]
        if operation["op"] == "remove":
            del place[steps[-1]]
        else:
            place[steps[-1]] = operation["value"]
            copied = {path: value for path, value in copied.items() if path[: len(steps)] != tuple(steps)}
    return document


def _selects(requirement: Document, labels: Mapping[str, str]) -> bool:
    value, operator = labels.get(requirement["key"]), requirement["operator"]
    is_met = value is not None if operator in ("Exists", "DoesNotExist") else value in requirement["values"]
    return is_met is (operator in ("Exists", "In"))


@cache
def _as_map(expression: str) -> str:
    """Return an expression of JSONPatch values as one of maps, which the library knows."""
    for before, after in _OPERATION:
        expression = expression.replace(before, after)
    return expression.replace("jsonpatch.escapeKey", "escapeKey")


@cache
def _compiled(expression: str) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    names = tuple(name for name in _NAMES[:-1] if re.search(rf"\b{name}\b", expression))
    used = tuple(dict.fromkeys(_USED.findall(expression)))
    return _environment().compile(expression), names, used


@cache
def _environment() -> Any:
    """As an API server's, as far as the policies use it."""
    text, anything = cel.Type.STRING, cel.Type.DYN
    functions = [
        cel.FunctionDecl("find", [cel.Overload("find_string", text, [text, text], is_member=True)]),
        cel.FunctionDecl("escapeKey", [cel.Overload("escape_key", text, [text], is_member=False)]),
        *(
            cel.FunctionDecl(name, [cel.Overload(f"{name}_list", anything, [cel.Type.List(anything)], is_member=True)])
            for name in _LIST_FUNCTIONS
        ),
    ]
    return cel.NewEnv(
        variables=dict.fromkeys(_NAMES, cel.Type.DYN),
        extensions=[ExtOptional(), ExtStrings()],
        functions=functions,
        function_impls={
            "find_string": _find,
            "escape_key": _escaped,
            **{f"{name}_list": _take_list(function) for name, function in _LIST_FUNCTIONS.items()},
        },
    )


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match[0] if match else ""


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _take_list(function: Callable[[list[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda values: function([one.plain_value() if isinstance(one, cel.Value) else one for one in values])
