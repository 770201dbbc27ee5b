"""What exported policies decide about a request, evaluated by a CEL library, and what the engine says of the same.

The library is that of the CEL project, in C++; an API server evaluates by the one in Go.
`python -m lab.e2e --only policies` compares the two.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings
from msgspec import Struct

from tests.factories import Document
from tests.match_condition import EXPRESSION
from webhook.admission.policy.model import Policy
from webhook.api_server.fence.objects import POLICY
from webhook.api_server.rule_policies import make_manifests

_USED: Final = re.compile(r"variables\.(\w+)")
_NAMES: Final = ("request", "object", "oldObject", "variables")


class Broken(Struct, frozen=True, order=True):
    """One validation that failed: the mode of its policy, the rule, and the text for the writer."""

    mode: str
    rule: str
    text: str = ""


class ExportedPolicies:
    """The policies of a policy file."""

    def __init__(self, policy: Policy, now: int = 0, condition: str = EXPRESSION, excluded: Sequence[str] = ()) -> None:
        manifests = make_manifests(policy, now, condition, excluded)
        self._policies = [(one["metadata"]["name"], one["spec"]) for one in manifests if one["kind"] == POLICY]

    def broken(self, request: Document) -> list[Broken]:
        """Every validation that fails, in order. Raises ValueError where an expression errs."""
        objects = {name: request.get(name) for name in ("object", "oldObject")}
        data = objects | {"request": {key: value for key, value in request.items() if key not in objects}}
        broken: list[Broken] = []
        values: dict[str, Any] = {}
        for name, spec in self._policies:
            rule = spec["matchConstraints"]["resourceRules"][0]
            if (
                request["resource"]["resource"] not in rule["resources"]
                or request["operation"] not in rule["operations"]
            ):
                continue
            if all(evaluated(one["expression"], data) for one in spec.get("matchConditions", ())):
                broken += self._failed(spec, name.rpartition("-")[2], data, values)
        return broken

    def _failed(self, spec: Document, mode: str, data: Document, values: dict[str, Any]) -> list[Broken]:
        """`values` are those of variables that were evaluated before: policies share most of them."""
        expressions = {one["name"]: one["expression"] for one in spec["variables"]}

        def value(expression: str) -> Any:
            used: dict[str, Any] = {}
            for name in _USED.findall(expression):
                key = f"{name} {expressions[name]}"
                # An API server evaluates a variable when it is used, so that one that errs matters only then.
                with suppress(ValueError):
                    if key not in values:
                        values[key] = value(expressions[name])
                    used[name] = values[key]
            return evaluated(expression, data | {"variables": used})

        failed = []
        for validation in spec["validations"]:
            ok, text = value(validation["expression"]), value(validation["messageExpression"])
            assert ok == (text == ""), validation
            if not ok:
                failed.append(Broken(mode, re.findall(r"\(lease webhook, rule ([\w-]+)[,)]", text)[-1], text))
        return failed


def evaluated(expression: str, data: Mapping[str, Any]) -> Any:
    """The value of an expression; raises ValueError if it errs."""
    result = _compiled(expression).eval(data={name: value for name, value in data.items() if name in expression})
    if result.type() == cel.Type.ERROR:
        raise ValueError(f"{result}: {expression}")
    return result.plain_value()


@cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


@cache
def _environment() -> Any:
    """As an API server's, as far as the policies use it; `find` is a function of Kubernetes."""
    parameters = [cel.Type.STRING, cel.Type.STRING]
    find = cel.FunctionDecl("find", [cel.Overload("find_string", cel.Type.STRING, parameters, is_member=True)])
    return cel.NewEnv(
        variables=dict.fromkeys(_NAMES, cel.Type.DYN),
        extensions=[ExtOptional(), ExtStrings()],
        functions=[find],
        function_impls={"find_string": _find},
    )


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match[0] if match else ""
