"""What a write to a Node sets of its taints, as a log of requests shows it."""

import json

import pytest

from webhook.analysis.inputs.node_taints import describe_taints

TAINT = {"key": "maintenance", "value": "kernel", "effect": "NoExecute"}


def describe(taints: object, verb: str = "patch") -> str:
    return describe_taints(verb, json.dumps({"spec": {"taints": taints}}).encode())


@pytest.mark.parametrize(
    ("taints", "words"),
    [
        ([TAINT], "which set the taint maintenance=kernel:NoExecute"),
        ([{"key": "a.example/b", "effect": "NoSchedule"}], "which set the taint a.example/b:NoSchedule"),
        (
            [{**TAINT, "key": key} for key in "abcd"],
            "which set the taints a=kernel:NoExecute, b=kernel:NoExecute, c=kernel:NoExecute and 1 more",
        ),
        (None, "which removed its taints"),
        ([], "which removed its taints"),
    ],
    ids=["one", "without a value", "many", "none", "an empty list"],
)
def test_a_patch_says_which_taints_a_node_has_then(taints: object, words: str) -> None:
    assert describe(taints) == words


@pytest.mark.parametrize(
    ("verb", "sent"),
    [
        ("update", b'{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}'),
        ("patch", b'{"spec":{"unschedulable":true}}'),
        ("patch", b'{"spec":{},"x":{"taints":1}}'),
        ("patch", b'[{"op":"remove","path":"/spec/taints","value":{"taints":1}}]'),
        ("patch", b'{"spec":{"taints":"many"}}'),
        ("patch", b'{"spec":{"taints":[{"key":"a b","effect":"NoExecute"}]}}'),
        ("patch", b'{"spec":{"taints":[{"key":"a","value":"\xe2\x80\xae","effect":"NoExecute"}]}}'),
    ],
    ids=["a whole object", "something else", "no taints", "a JSON patch", "no list", "no key", "no value"],
)
def test_of_what_says_nothing_of_taints_nothing_is_said(verb: str, sent: bytes) -> None:
    assert describe_taints(verb, sent) == ""
