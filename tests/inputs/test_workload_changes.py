"""Changes to the pods of a workload: all that a patch sets, and the election arguments of a whole object."""

import json
from typing import Any

import pytest

from webhook.analysis.inputs.workload_changes import describe_workload_change, is_test_alone

OFF = ["--leader-elect=false", "--password=secret", "--metrics-bind-address=:8080"]


def describe(verb: str, sent: Any) -> str:
    return describe_workload_change(verb, json.dumps(sent).encode()).words.removeprefix("which set ")


def template(*containers: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"spec": {"template": {"metadata": metadata, "spec": {"containers": [*containers]}}}}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (template({"name": "m", "image": "a:2", "args": OFF}), "image (a:2), args (--leader-elect=false)"),
        (template({"name": "m", "args": ["-v"]}, {"name": "n", "command": ["x"], "env": []}), "args, command, env"),
        ({"spec": {"replicas": 0}}, "replicas 0"),
        (template(annotations={"kubectl.kubernetes.io/restartedAt": "now"}), "restartedAt"),
        (template(annotations={"a": "b"}), ""),
        ({"spec": {"template": {"spec": {}}}}, ""),
        ({"spec": {"paused": True}}, ""),
        ({"spec": {"replicas": None}}, "which removed replicas"),
        ({"spec": {"replicas": -1}}, ""),
        (template({"args": None, "image": "a:2"}), "image (a:2) and removed args"),
        (template({"env": [{"name": "A", "$patch": "delete"}]}), "which removed part of env"),
        (template({"image": "a:2", "$patch": "delete"}), ""),
        (template(annotations={"kubectl.kubernetes.io/restartedAt": None}), "which removed restartedAt"),
        (template({"args": ["--leader-elect=\u05d0", "--leader-elect-x=\u0661"]}), "args"),
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
    ("images", "words"),
    [
        (["r.example.com:5000/a/b:v1"], "image (r.example.com:5000/a/b:v1)"),
        (["a:1", "b:2"], "image (a:1, b:2)"),
        ([f"a@sha256:{'0123456789abcdef' * 4}"], "image (a@sha256:0123456789ab...)"),
        (["a", "b", "c", "d"], "image"),
        (["a:1", "b\nc"], "image"),
        ([["a:1"]], "image"),
    ],
    ids=["of a registry", "two", "by digest", "many", "one with a line break", "a list"],
)
def test_images_are_repeated_if_they_are_written_like_one(images: list[Any], words: str) -> None:
    assert describe("patch", template(*({"image": one} for one in images))) == words


WHOLE = {"op": "replace", "path": "/spec/template"}


@pytest.mark.parametrize(
    ("operations", "words"),
    [
        ([WHOLE | {"value": template({"image": "a:1"})["spec"]["template"]}], " (image a:1)"),
        (
            [WHOLE | {"value": template({"image": "a:1", "args": OFF})["spec"]["template"]}],
            " (image a:1; args --leader-elect=false)",
        ),
        ([WHOLE | {"value": template({"args": ["-v"]})["spec"]["template"]}], ""),
        ([WHOLE | {"value": "x"}], ""),
        (
            [
                WHOLE | {"value": template({"image": "a:1"})["spec"]["template"]},
                {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "a:2"},
            ],
            ", image (a:2)",
        ),
    ],
    ids=["an image", "and arguments", "neither", "no template", "of which a part is set again"],
)
def test_a_rollback_sets_the_whole_template(operations: list[Any], words: str) -> None:
    assert describe("patch", operations) == f"the whole pod template{words}"


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
        ({"op": "remove", "path": "/spec/template/spec/containers/0/env/3"}, "which removed part of env"),
        ({"op": "remove", "path": "/spec/template/spec/containers/0/args"}, "which removed args"),
        ({"op": "remove", "path": "/spec/replicas"}, "which removed replicas"),
        ({"op": "add", "path": "/spec/replicas", "value": True}, ""),
        ({"op": ["add"], "path": "/spec/replicas", "value": 3}, ""),
        ({"op": "test", "path": "/spec/replicas", "value": 3}, ""),
        ({"op": "copy", "from": "/spec/a", "path": "/spec/replicas"}, ""),
        ({"op": "remove", "path": "/spec/paused"}, ""),
        ({"op": "replace", "path": "/spec/template/spec/containers/0/livenessProbe/exec/command", "value": []}, ""),
        ({"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": {}}, ""),
        ({"op": "replace", "path": "/metadata/labels/args", "value": ""}, ""),
    ],
)
def test_what_a_json_patch_sets_is_named(operation: dict[str, Any], words: str) -> None:
    assert describe("patch", [operation]) == words


ARGS = "/spec/template/spec/containers/0/args"


def operation(op: str, path: str, value: Any = None) -> dict[str, Any]:
    return {"op": op, "path": path, "value": value}


@pytest.mark.parametrize(
    ("operations", "words"),
    [
        ([operation("test", "/spec/replicas", 3), operation("replace", "/spec/replicas", 2)], "replicas 2"),
        ([operation("replace", "/spec/replicas", 3), operation("replace", "/spec/replicas", 2)], "replicas 2"),
        ([operation("add", ARGS, OFF), operation("remove", ARGS)], "which removed args"),
        ([operation("replace", f"{ARGS}/0", OFF[0]), operation("remove", f"{ARGS}/0")], "which removed part of args"),
        ([operation("add", ARGS, OFF), operation("replace", f"{ARGS}/0", "-v")], "args"),
        ([operation("add", f"{ARGS}/1", OFF[0]), operation("add", f"{ARGS}/0", "-v")], "args"),
        ([operation("add", f"{ARGS}/-", OFF[0]), operation("add", f"{ARGS}/-", "-v")], "args (--leader-elect=false)"),
        (
            [operation("replace", f"{ARGS}/0", OFF[0]), operation("replace", f"{ARGS}/1", "-v")],
            "args (--leader-elect=false)",
        ),
        ([operation("add", ARGS, OFF), operation("remove", "/spec/template/spec/containers/0")], ""),
        ([operation("add", f"{ARGS}/-", OFF[0]), operation("remove", f"{ARGS}/2")], "which removed part of args"),
        ([operation("add", ARGS, OFF), {"op": "move", "from": f"{ARGS}/0", "path": "/spec/a"}], ""),
    ],
)
def test_what_operations_leave_is_named(operations: list[dict[str, Any]], words: str) -> None:
    assert describe("patch", operations) == words


def find_off(verb: str, sent: Any) -> str:
    return describe_workload_change(verb, json.dumps(sent).encode()).switched_off


@pytest.mark.parametrize(
    ("sent", "container"),
    [
        (template({"name": "m", "args": OFF}), "container m"),
        (template({"name": "n", "args": []}, {"name": "m", "args": ["-enable-leader-election=F"]}), "container m"),
        (template({"name": "m\n", "args": OFF}), "a container"),
        (template({"name": "m", "args": ["--leader-election-leader-elect=false"]}), ""),
        (template({"name": "m", "args": [*OFF, "--leader-elect"]}), ""),
        ([operation("add", ARGS, OFF)], "the container at index 0"),
        ([operation("add", ARGS, OFF), operation("replace", f"{ARGS}/0", "-v")], ""),
        ([operation("test", f"{ARGS}/0", OFF[0]), operation("replace", f"{ARGS}/0", "--leader-elect=true")], ""),
    ],
)
def test_the_container_that_is_told_not_to_elect_is_named(sent: Any, container: str) -> None:
    assert find_off("patch", sent) == container


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_a_whole_object_does_not_say_that_it_switched_an_election_off(verb: str) -> None:
    whole = {"kind": "Deployment", "apiVersion": "apps/v1", **template({"name": "m", "args": OFF})}
    assert find_off(verb, whole) == ""
    assert describe(verb, whole) == "which has --leader-elect=false"


def test_of_several_containers_each_is_named_with_what_it_tells_electors() -> None:
    whole = template({"name": "m", "args": OFF}, {"name": "n", "args": ["-v"]}, {"args": ["--leader-elect=true"]})
    assert (
        describe("update", whole) == "which has --leader-elect=false in container m, --leader-elect=true in a container"
    )


def test_of_an_object_that_is_applied_the_replicas_are_named() -> None:
    whole = {"kind": "Deployment", "apiVersion": "apps/v1", **template({"name": "m", "image": "a:2"})}
    whole["spec"]["replicas"] = 0
    assert describe("patch", whole) == "which has replicas 0"


def test_a_patch_that_only_tests_changes_nothing() -> None:
    test = operation("test", "/spec/replicas", 3)
    assert is_test_alone("patch", json.dumps([test]).encode())
    assert not is_test_alone("patch", json.dumps([test, operation("remove", "/spec/replicas")]).encode())
    assert not is_test_alone("patch", b"[1]")
    assert not is_test_alone("patch", b'[{"op": ["test"]}]')
    assert not is_test_alone("patch", b"{}")
    assert not is_test_alone("update", b"[]")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (json.dumps(template({"args": ["--leader-elect=" + "a" * 2**20]})), "which set args"),
        (json.dumps(template({"args": [f"--lease-{one}=1" for one in "ab"] + ["-v"] * 10000})), "which set args ("),
        ('{"spec": {"replicas": 1e400}}', ""),
        (f'[{{"op": "add", "path": "{ARGS}", "value": 1e400}}]', ""),
        (json.dumps([operation("add", ARGS, [])])[:-3] + "[" * 100000 + "]" * 100000 + "}]", ""),
        ('{"spec": ' * 100000 + "1" + "}" * 100000, ""),
    ],
    ids=["a long argument", "many arguments", "a number", "a number of an operation", "deep lists", "deep objects"],
)
def test_hostile_sizes_are_read(sent: str, words: str) -> None:
    assert describe_workload_change("patch", sent.encode()).words.startswith(words)


@pytest.mark.parametrize("verb", ["create", "update"])
def test_of_a_whole_object_only_what_it_tells_electors_is_named(verb: str) -> None:
    whole = template({"name": "m", "image": "a:2", "args": ["--leader-elect", "--leader-elect-lease-duration=5s"]})
    whole["spec"]["replicas"] = 2
    assert describe(verb, whole) == "which has --leader-elect-lease-duration=5s"


@pytest.mark.parametrize("sent", [b"null", b"", b"[1]", b"{", b'{"spec": 1}'])
def test_a_request_that_is_not_shown_or_of_another_form_says_nothing(sent: bytes) -> None:
    assert describe_workload_change("patch", sent).words == ""
