"""The part of an API server that took most of the time of an answer, as that says in its log."""

import pytest

from webhook.analysis.history.audit_log.latency import find_slow_part

TOTAL = "apiserver.latency.k8s.io/total"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("validating-webhook", "validating webhooks"),
        ("mutating-webhook", "mutating webhooks"),
        ("etcd", "etcd"),
        ("authorization", "authorizers"),
        ("apf-queue-wait", "its queue"),
        ("response-write", ""),
    ],
)
def test_the_part_that_took_most_is_named(part: str, words: str) -> None:
    assert find_slow_part({TOTAL: "5.02s", f"apiserver.latency.k8s.io/{part}": "4.9s"}) == words


@pytest.mark.parametrize(
    ("total", "took", "is_most"),
    [
        ("4s", "3s", True),
        ("4s", "2999ms", False),
        ("1m4s", "1m0s", True),
        ("1h0m0s", "59m0s", True),
        ("1.5s", "1400000µs", True),
        ("1s", "999000000ns", True),
        ("", "3s", False),
        ("4s", "long", False),
        ("4s", "", False),
        ("4parsecs", "4s", False),
    ],
)
def test_durations_are_read_as_go_writes_them(total: str, took: str, *, is_most: bool) -> None:
    assert bool(find_slow_part({TOTAL: total, "apiserver.latency.k8s.io/etcd": took})) is is_most


def test_a_webhook_cannot_write_it() -> None:
    assert find_slow_part({TOTAL: "4s", "w.example.com/apiserver.latency.k8s.io/etcd": "4s"}) == ""
