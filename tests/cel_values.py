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
_PATCH: Final = re.compile(r"""JSONPatch\{op: (['"]\w+['"]), path: """)
_LISTS: Final = cel.Type.List(cel.Type.DYN)


def value(spec: Document, expression: str, data: Mapping[str, Any]) -> Any:
    """Return what an expression is in a policy; raises ValueError if it errs."""
    return _value({one["name"]: one["expression"] for one in spec.get("variables", ())}, expression, data, {})


def variable(spec: Document, name: str, data: Mapping[str, Any]) -> Any:
    """Return one variable of a policy."""
    return value(spec, f"variables.{name}", data)


def values(spec: Document, expressions: list[str], data: Mapping[str, Any]) -> list[Any]:
    """Return what several expressions are in a policy, an error where one errs; each variable is evaluated once."""
    variables = {one["name"]: one["expression"] for one in spec.get("variables", ())}
    known: dict[str, Any] = {}
    results: list[Any] = []
    for expression in expressions:
        try:
            results.append(_value(variables, expression, data, known))
        except ValueError as error:
            results.append(error)
    return results


def _value(variables: Mapping[str, str], expression: str, data: Mapping[str, Any], known: dict[str, Any]) -> Any:
    """`known` are values of variables, and the errors of those that err: such a one matters only where it is used."""
    used: dict[str, Any] = {}
    for name in _USED.findall(expression):
        if name not in known:
            try:
                known[name] = _value(variables, variables[name], data, known)
            except ValueError as error:
                known[name] = error
        if not isinstance(known[name], ValueError):
            used[name] = known[name]
    given = dict.fromkeys(_NAMES) | dict(data) | {"variables": used}
    result = _compiled(expression).eval(data={name: one for name, one in given.items() if name in expression})
    if result.type() == cel.Type.ERROR:
        raise ValueError(f"{result}: {expression}")
    return result.plain_value()


@cache
def _compiled(expression: str) -> Any:
    variables = {name: cel.Type.DYN for name in _NAMES if name in expression}
    return _environment(tuple(variables)).compile(_as_maps(expression))


@cache
def _environment(names: tuple[str, ...]) -> Any:
    """As an API server's, as far as these policies use it: three functions are those of Kubernetes."""
    text = cel.Type.STRING
    functions = [
        *(
            cel.FunctionDecl(name, [cel.Overload(name, cel.Type.DYN, [_LISTS], is_member=True)])
            for name in ("sum", "max")
        ),
        cel.FunctionDecl("jsonpatch.escapeKey", [cel.Overload("escape_key", text, [text])]),
    ]
    return cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DYN),
        extensions=[ExtOptional(), ExtStrings()],
        functions=functions,
        function_impls={"sum": sum, "max": max, "escape_key": _escape_key},
    )


def _as_maps(expression: str) -> str:
    """Replace the type JSONPatch by maps."""
    return _PATCH.sub(r"{'op': dyn(\1), 'path': ", expression).replace(", value: ", ", 'value': ")


def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")
