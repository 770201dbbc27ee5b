"""The policy that the README shows is a good one, and its refusal is word for word."""

import re
from pathlib import Path

import pytest

from tests.policy.files import UPDATE
from webhook.policy.document import parse
from webhook.policy.error import PolicyError
from webhook.policy.lint import notes

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## The policy: from observe to strict")[2].partition("\n## ")[0]


def example() -> str:
    (found,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    return str(found)


def test_the_example_is_good_and_nothing_about_it_is_odd() -> None:
    policy = parse(example())
    assert policy.for_lease("shop", "checkout", UPDATE).binding
    assert notes(policy, now=0) == []


def test_the_refusal_is_what_people_see() -> None:
    with pytest.raises(PolicyError) as caught:
        parse("apiVersion: lease-webhook/v1\npreset: standard\n\nrules:\n  takeover-befor-expiry: {mode: deny}\n")
    assert f"policy.yaml: {caught.value}\n" in SECTION
