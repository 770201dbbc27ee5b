"""Who writes, out of userInfo, which an authenticator filled in or an attacker on the port."""

import pytest
from msgspec import Raw

from webhook.kubernetes.request import UserInfo, decode_user


@pytest.mark.parametrize("text", ["null", "5", '"x"', "[]", '{"username":5}', '{"extra":{"a":5}}'])
def test_what_names_nobody_readable_is_nobody(text: str) -> None:
    assert decode_user(Raw(text.encode())) is None


def test_nulls_are_absent() -> None:
    assert decode_user(Raw(b'{"username":null,"groups":null,"extra":{"a":null}}')) == UserInfo(extra={"a": ()})


def test_a_user_longer_than_any_authenticator_writes_is_nobody() -> None:
    text = b'{"username":"' + b"a" * (3 * 1024 * 1024) + b'"}'
    assert decode_user(Raw(text)) is None
    assert decode_user(Raw(text.replace(b"a" * 1024, b"", 1))) is not None
