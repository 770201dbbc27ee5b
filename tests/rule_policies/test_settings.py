"""Each setting of a policy file is in the exported policies, or it is said that it is not."""

from typing import Any, Final

import pytest
import yaml

from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyDocument
from webhook.api_server.rule_policies import list_unexported, make_manifests, make_stamp_policies

BASE: Final[dict[str, Any]] = {
    "apiVersion": "lease-webhook/v1",
    "preset": "strict",
    "stamps": [{"suffix": "1a2b3c4d", "namespaces": ["shop"]}],
}
SAMPLES: Final[dict[str, Any]] = {
    "preset": "standard",
    "mode": "warn",
    "rules": {"transitions-jump": {"mode": "audit"}},
    "exempt": [{"owner": "o", "reason": "r", "users": ["ann"]}],
    "overrides": [{"namespaces": ["shop"], "rules": {"transitions-jump": {"mode": "off"}}}],
    "bindings": [{"namespace": "shop", "lease": "checkout", "writers": ["shop/op"], "holder": ["*"]}],
    "stamps": [{"suffix": "9a2b3c4d", "namespaces": ["shop"]}],
}
ELSEWHERE: Final = {"apiVersion", "without_stamps", "docs_url", "fences"}
"""The version; what only the webhook does, as the pages say; what `export fence` makes."""


def exported(document: dict[str, Any]) -> object:
    policy = parse(yaml.safe_dump(document))
    return make_manifests(policy, 0, "true", []), make_stamp_policies(policy, 0), [*list_unexported(policy, 0)]


def test_each_setting_has_a_sample() -> None:
    missing = {*PolicyDocument.__struct_encode_fields__} - SAMPLES.keys() - ELSEWHERE
    assert missing == set(), "a sample in SAMPLES, or in ELSEWHERE if a policy of the API server cannot say it"
    assert (SAMPLES.keys() | ELSEWHERE) <= {*PolicyDocument.__struct_encode_fields__}


@pytest.mark.parametrize("key", SAMPLES)
def test_a_setting_changes_what_is_exported(key: str) -> None:
    assert exported(BASE | {key: SAMPLES[key]}) != exported(BASE)
