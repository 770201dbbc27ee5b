"""The taints that a write to a Node sets, as a log of requests, or of answers, shows them."""

import json

import pytest

from webhook.analysis.inputs.node_taints import describe_change, describe_taints, find_taints

TAINT = {"key": "maintenance", "value": "kernel", "effect": "NoExecute"}


def describe(taints: object, verb: str = "patch") -> str:
    return describe_taints(verb, json.dumps({"spec": {"taints": taints}}).encode())


@pytest.mark.parametrize(
    ("taints", "words"),
    [
        ([TAINT], "which left it with the taint maintenance=kernel:NoExecute"),
        ([{"key": "a.example/b", "effect": "NoSchedule"}], "which left it with the taint a.example/b:NoSchedule"),
        (
            [{**TAINT, "key": key} for key in "abcd"],
            "which left it with the taints a=kernel:NoExecute, b=kernel:NoExecute, c=kernel:NoExecute and 1 more",
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
    assert find_taints(verb, sent, b"null") is None


def answer(taints: object, kind: str = "Node") -> bytes:
    return json.dumps({"kind": kind, "spec": {"taints": taints}}).encode()


@pytest.mark.parametrize(
    ("given", "taints"),
    [
        (answer([TAINT]), ("maintenance=kernel:NoExecute",)),
        (answer(None), ()),
        (b'{"kind":"Node","spec":{}}', ()),
        (b'{"kind":"Node","spec":{"taints":1}}', None),
        (answer([TAINT], "Nodes of Node") + b' "Node"', None),
        (b'{"kind":"PartialObjectMetadata","metadata":{"ownerReferences":[{"kind":"Node"}]}}', None),
        (answer([{**TAINT, "key": f"k{number}"} for number in range(51)]), None),
        (b"null", ("sent:NoExecute",)),
    ],
    ids=[
        "one",
        "none",
        "not named",
        "no list",
        "no JSON",
        "another object",
        "too many",
        "an answer that is not logged",
    ],
)
def test_the_answer_says_which_taints_a_node_has_then(given: bytes, taints: tuple[str, ...] | None) -> None:
    sent = b'{"spec":{"taints":[{"key":"sent","effect":"NoExecute"}]}}'
    assert find_taints("patch", sent, given) == taints


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((), ("a:NoExecute",), "which set the taint a:NoExecute"),
        (("a:NoExecute",), ("a:NoExecute", "b:NoExecute"), "which set the taint b:NoExecute"),
        (("a:NoExecute", "b:NoExecute"), ("a:NoExecute",), "which removed the taint b:NoExecute"),
        (("a:X", "b:X"), ("c:X",), "which set the taint c:X and removed the taints a:X, b:X"),
        (("a:X",), ("a:X",), ""),
    ],
    ids=["the first", "one more", "one less", "others", "the same"],
)
def test_only_what_was_not_there_before_was_set(before: tuple[str, ...], after: tuple[str, ...], words: str) -> None:
    assert describe_change(before, after) == words
