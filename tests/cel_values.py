"""Values of the expressions of one policy, evaluated by a CEL library, with its variables where they are used.

The library is that of the CEL project, in C++; an API server evaluates by the one in Go.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from tests.factories import Document

_USED: Final = re.compile(r"variables\.(\w+)")
_NAMES: Final = ("request", "object", "oldObject", "params", "namespaceObject", "variables")


def value(spec: Document, expression: str, data: Mapping[str, Any]) -> Any:
    """Return what an expression is in a policy; raises ValueError if it errs."""
    expressions = {one["name"]: one["expression"] for one in spec.get("variables", ())}
    used: dict[str, Any] = {}
    for name in _USED.findall(expression):
        try:
            used[name] = value(spec, expressions[name], data)
        except ValueError:  # A variable that errs matters only where it is used.
            continue
    known = dict.fromkeys(_NAMES) | dict(data) | {"variables": used}
    found = _compiled(expression).eval(data={name: one for name, one in known.items() if name in expression})
    if found.type() == cel.Type.ERROR:
        raise ValueError(f"{found}: {expression}")
    return found.plain_value()


def variable(spec: Document, name: str, data: Mapping[str, Any]) -> Any:
    """Return one variable of a policy."""
    return value(spec, f"variables.{name}", data)


@cache
def _compiled(expression: str) -> Any:
    variables = {name: cel.Type.DYN for name in _NAMES if name in expression}
    return cel.NewEnv(variables=variables, extensions=[ExtOptional(), ExtStrings()]).compile(expression)
