"""The shipped match condition, evaluated by a CEL library: which writes the API server skips before the webhook.

The library is that of the CEL project, in C++; an API server evaluates by the one in Go.
`python -m lab.e2e --only conditions` compares the two.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional

from tests.factories import Document

EXPRESSION: Final[str] = yaml.safe_load(
    (Path(__file__).parents[1] / "deploy" / "base" / "90-webhook.yaml").read_text(encoding="utf-8")
)["webhooks"][0]["matchConditions"][0]["expression"]
MAX_ENTRIES: Final = 50
"""Entries of managedFields above which every write is reviewed."""


def is_reviewed(request: Document, expression: str = EXPRESSION) -> bool:
    """True if the API server calls the webhook; raises ValueError if the expression fails.

    `request` is that of an AdmissionReview; only resource, operation, object and oldObject are read.
    """
    result = _compiled(expression).eval(
        data={
            "request": {"resource": request["resource"], "operation": request["operation"]},
            "object": request.get("object"),
            "oldObject": request.get("oldObject"),
        }
    )
    if result.type() == cel.Type.ERROR:
        raise ValueError(str(result))
    return bool(result.value())


def is_update_reviewed(new: Document, old: Document) -> bool:
    """Return the same for an update of a Lease, without a request."""
    return is_reviewed({"resource": {"resource": "leases"}, "operation": "UPDATE", "object": new, "oldObject": old})


@cache
def _compiled(expression: str) -> Any:
    variables = dict.fromkeys(("request", "object", "oldObject"), cel.Type.DYN)
    return cel.NewEnv(variables=variables, extensions=[ExtOptional()]).compile(expression)
