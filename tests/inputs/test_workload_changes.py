"""What a write to a workload sets that changes its pods: of a patch all of that, of a whole object what electors do."""

import json
from typing import Any

import pytest

from webhook.analysis.inputs.workload_changes import describe_workload_change

OFF = ["--leader-elect=false", "--password=secret", "--metrics-bind-address=:8080"]


def describe(verb: str, sent: Any) -> str:
    return describe_workload_change(verb, json.dumps(sent).encode())


def template(*containers: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"spec": {"template": {"metadata": metadata, "spec": {"containers": [*containers]}}}}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (template({"name": "m", "image": "a:2", "args": OFF}), "image, args (--leader-elect=false)"),
        (template({"name": "m", "args": ["-v"]}, {"name": "n", "command": ["x"], "env": []}), "args, command, env"),
        ({"spec": {"replicas": 0}}, "replicas 0"),
        (template(annotations={"kubectl.kubernetes.io/restartedAt": "now"}), "restartedAt"),
        (template(annotations={"a": "b"}), ""),
        ({"spec": {"template": {"spec": {}}}}, ""),
        ({"spec": {"paused": True}}, ""),
        ({"metadata": {"labels": {"a": "b"}}}, ""),
        ({"spec": {"template": {"spec": {"containers": "x"}}}}, ""),
        (
            template({"args": [f"--lease-{one}=1" for one in "abcdef"]}),
            f"args ({' '.join(f'--lease-{one}=1' for one in 'abcd')})",
        ),
    ],
)
def test_what_a_patch_sets_is_named(sent: Any, words: str) -> None:
    assert describe("patch", sent) == words


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "replace", "path": "/spec/replicas", "value": 3}, "replicas 3"),
        (
            {"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": OFF},
            "args (--leader-elect=false)",
        ),
        (
            {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": OFF[0]},
            "args (--leader-elect=false)",
        ),
        ({"op": "remove", "path": "/spec/template/spec/containers/0/env/3"}, "env"),
        ({"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": {}}, ""),
        ({"op": "replace", "path": "/metadata/labels/args", "value": ""}, ""),
    ],
)
def test_what_a_json_patch_sets_is_named(operation: dict[str, Any], words: str) -> None:
    assert describe("patch", [operation]) == words


@pytest.mark.parametrize("verb", ["create", "update"])
def test_of_a_whole_object_only_what_it_tells_electors_is_named(verb: str) -> None:
    whole = template({"name": "m", "image": "a:2", "args": ["--leader-elect", "--leader-elect-lease-duration=5s"]})
    whole["spec"]["replicas"] = 2
    assert describe(verb, whole) == "--leader-elect-lease-duration=5s"


@pytest.mark.parametrize("sent", [b"null", b"", b"[1]", b"{", b'{"spec": 1}'])
def test_a_request_that_is_not_shown_or_of_another_form_says_nothing(sent: bytes) -> None:
    assert describe_workload_change("patch", sent) == ""
