"""A fence as a policy file may have it: start from this one, change one key."""

from typing import Any

import pytest

from tests.policy.files import policy, text
from webhook.admission.policy.fences import Fence
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError

FENCE: dict[str, Any] = {
    "name": "shop-operator",
    "lease": "shop/operator",
    "writers": ["shop/operator"],
    "resources": ["configmaps", "deployments.apps/scale"],
    "mode": "deny",
}


def fence(**keys: Any) -> Fence:
    return policy(fences=[{**FENCE, **keys}]).fences[0]


STAMPS = [{"suffix": "5f3a9c1e", "namespaces": ["shop"]}]


def stamped(**keys: Any) -> Fence:
    """A fence whose lease has stamps."""
    return policy(fences=[{**FENCE, **keys}], stamps=STAMPS).fences[0]


def refusal(**keys: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        parse(text(fences=[{**FENCE, **keys}]))
    return str(caught.value).removeprefix("line 1: fences[0].")
