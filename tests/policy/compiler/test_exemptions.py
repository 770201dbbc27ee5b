"""Who is exempt, where, and until when."""

from typing import Any

import pytest

from tests.policy.files import ENTRY, UPDATE, policy
from webhook.kubernetes.request import UserInfo

RULE = "takeover-before-expiry"
DAY = 86_400 * 1_000_000
JANUARY_31 = 1_801_353_600_000_000
"""2027-01-31T00:00:00Z in microseconds since 1970."""


def exempts(
    exempt: list[dict[str, Any]], user: str = "ann", *groups: str, lease: str = "shop/checkout", now: int = 0
) -> bool:
    namespace, name = lease.split("/")
    return RULE in policy(exempt=exempt).find_exempt_rules(UserInfo(user, groups), namespace, name, UPDATE, now)


@pytest.mark.parametrize(
    ("user", "groups", "expected"),
    [
        pytest.param("system:apiserver", (), True, id="the API server"),
        pytest.param("ann", ("system:authenticated", "system:masters"), True, id="cluster administrators"),
        pytest.param("ann", ("system:authenticated",), False, id="anybody else"),
        pytest.param("system:masters", (), False, id="a user with the name of the group"),
        pytest.param("ann", ("system:apiserver",), False, id="a group with the name of the user"),
        pytest.param("", (), False, id="nobody"),
    ],
)
def test_built_in(user: str, groups: tuple[str, ...], expected: bool) -> None:
    assert exempts([], user, *groups) is expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({"users": ["ann"]}, True, id="a user"),
        pytest.param({"users": ["bob"]}, False, id="another user"),
        pytest.param({"users": ["an"]}, False, id="a user's beginning"),
        pytest.param({"groups": ["ops"]}, True, id="a group"),
        pytest.param({"users": ["bob"], "groups": ["ops"]}, True, id="requesters are alternatives"),
        pytest.param({"service_accounts": ["shop/checkout"]}, False, id="a service account, asked for a person"),
        pytest.param({"users": ["ann"], "namespaces": ["shop"]}, True, id="on a namespace"),
        pytest.param({"users": ["ann"], "namespaces": ["bank", "s?op"]}, True, id="namespaces are alternatives"),
        pytest.param({"users": ["ann"], "namespaces": ["bank"]}, False, id="on another namespace"),
        pytest.param({"users": ["ann"], "namespaces": ["shop"], "leases": ["check*"]}, True, id="on a lease"),
        pytest.param(
            {"users": ["ann"], "namespaces": ["bank"], "leases": ["check*"]}, False, id="both must fit: namespace"
        ),
        pytest.param({"users": ["ann"], "namespaces": ["shop"], "leases": ["db"]}, False, id="both must fit: lease"),
        pytest.param({"leases": ["checkout"]}, True, id="no requesters: anybody"),
        pytest.param({"namespaces": ["*"]}, True, id="anybody anywhere, said aloud"),
        pytest.param({"namespaces": ["bank"]}, False, id="anybody elsewhere"),
    ],
)
def test_whom_an_entry_exempts(keys: dict[str, Any], expected: bool) -> None:
    assert exempts([{**ENTRY, **keys}], "ann", "ops") is expected


def test_a_service_account_is_the_user_of_its_token() -> None:
    exempt = [{**ENTRY, "service_accounts": ["velero/server"]}]
    assert exempts(exempt, "system:serviceaccount:velero:server")
    assert not exempts(exempt, "system:serviceaccount:shop:server")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(JANUARY_31 - DAY, True, id="before"),
        pytest.param(JANUARY_31 + DAY - 1, True, id="in the last microsecond of the day"),
        pytest.param(JANUARY_31 + DAY, False, id="the day after"),
    ],
)
def test_until_when_an_entry_exempts(now: int, expected: bool) -> None:
    assert exempts([{**ENTRY, "users": ["ann"], "until": "2027-01-31"}], now=now) is expected


def test_the_longest_of_two_entries_counts() -> None:
    exempt = [{**ENTRY, "users": ["ann"], "until": until} for until in ("2027-01-31", "2027-01-01")]
    assert exempts(exempt, now=JANUARY_31)
    assert exempts([*exempt, {**ENTRY, "users": ["ann"]}], now=JANUARY_31 * 2)


def test_the_last_day_that_a_date_can_name() -> None:
    assert exempts([{**ENTRY, "users": ["ann"], "until": "9999-12-31"}], now=JANUARY_31)
    assert not exempts([{**ENTRY, "users": ["ann"], "until": "0001-01-01"}], now=0)
