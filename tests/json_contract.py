"""docs/json-output.schema.json as tests read it: closed, so that a field that it does not list is an error."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tools.docs.json_output import make_schema


def problems(command: str, document: Any) -> list[str]:
    """What of a command's output is not as the contract says."""
    return [f"{error.json_path}: {error.message}" for error in _validator(command).iter_errors(document)]


def problems_of_lines(command: str, printed: str) -> list[str]:
    """The same for output with one object in a line; empty output is a problem."""
    lines = printed.splitlines()
    return [problem for line in lines for problem in problems(command, json.loads(line))] if lines else ["no output"]


@cache
def _validator(command: str) -> Draft202012Validator:
    document = _closed(make_schema())
    Draft202012Validator.check_schema(document)
    return Draft202012Validator({**document, "$ref": f"#/$defs/{command}"})


def _closed(schema_: Any) -> Any:
    if isinstance(schema_, list):
        return [_closed(item) for item in schema_]
    if not isinstance(schema_, dict):
        return schema_
    closed = {key: _closed(value) for key, value in schema_.items()}
    return {**closed, "additionalProperties": False} if "properties" in schema_ and schema_.get("type") else closed
