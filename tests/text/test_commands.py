"""Commands that people copy: what is one."""

import pytest

from webhook.text.commands import split_fix


@pytest.mark.parametrize(
    ("fix", "words", "command"),
    [
        ("", "", ""),
        ("kubectl -n shop get pods", "", "kubectl -n shop get pods"),
        ("lease-webhook doctor --policy FILE", "", "lease-webhook doctor --policy FILE"),
        ("if it is gone: kubectl -n shop delete lease db", "if it is gone", "kubectl -n shop delete lease db"),
        ("kubectl -n shop get pod 'a: kubectl b'", "", "kubectl -n shop get pod 'a: kubectl b'"),
        ("write it again, with `kubectl replace`", "write it again, with `kubectl replace`", ""),
    ],
)
def test_words_are_no_command(fix: str, words: str, command: str) -> None:
    assert split_fix(fix) == (words, command)
