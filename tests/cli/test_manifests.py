"""A manifest as a review: its writer."""

import pytest

from webhook.cli.checking.manifests import make_user_info


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("system:serviceaccount:shop:checkout", ["system:serviceaccounts", "system:serviceaccounts:shop"]),
        ("system:node:worker-1", ["system:nodes"]),
        ("ann", []),
    ],
)
def test_a_user_comes_with_the_groups_of_every_authenticator(user: str, groups: list[str]) -> None:
    info = make_user_info(user, ("more",))
    assert info == {"username": user, "groups": ["more", *groups, "system:authenticated"]}
