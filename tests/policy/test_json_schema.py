"""The JSON Schema stands in the package, is current, and agrees with the parser."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from msgspec import to_builtins

from tests.policy.compiler.test_bindings import BINDING
from tests.policy.fences.made import FENCE
from tests.policy.files import ENTRY, text
from tools.docs.policy_schema import make_json_schema
from tools.docs.policy_schema import make_text as json_schema_text
from webhook.admission.policy import parse as document
from webhook.admission.policy.parse import make_preset, parse
from webhook.admission.policy.schema import PLAIN_SETTINGS, PRESETS, RULE_IDS, PolicyError

VALIDATOR = jsonschema.Draft202012Validator(make_json_schema(), format_checker=jsonschema.FormatChecker())


def test_the_file_is_current() -> None:
    """`make docs` writes it."""
    assert (
        files("webhook.admission.policy").joinpath("policy.schema.json").read_text(encoding="utf-8")
        == json_schema_text()
    )


def test_it_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json_schema_text()))


def test_every_rule_of_single_writes_is_explained() -> None:
    rules = make_json_schema()["$defs"]["Rules"]["properties"]
    assert set(rules) == set(RULE_IDS)
    assert rules["strategy-writer"]["description"].startswith("spec.strategy ")


@pytest.mark.parametrize("name", PLAIN_SETTINGS)
def test_a_plain_setting_is_valid_to_its_ends_and_not_beyond(name: str) -> None:
    about = make_json_schema()["$defs"]["PolicyDocument"]["properties"][name]
    good = about.get("enum") or [about[end] for end in ("minimum", "maximum") if end in about]
    bad = [about["minimum"] - 1, about["maximum"] + 1] if "minimum" in about else ["\n", 1]
    for values, is_good in ((good, True), (bad, False)):
        for value in values:
            document = {"apiVersion": "lease-webhook/v1", name: value}
            assert VALIDATOR.is_valid(document) is is_good, value
            assert is_parsed(document) is is_good, value


def is_parsed(document: Any) -> bool:
    try:
        parse(json.dumps(document))
    except PolicyError:
        return False
    return True


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name: str) -> None:
    VALIDATOR.validate(to_builtins(make_preset(name)))


@pytest.mark.parametrize(
    ("keys", "good"),
    [
        pytest.param({}, True, id="smallest"),
        pytest.param({"rules": {"duration-too-long": {"mode": "off", "deny_above_seconds": 90_000}}}, True, id="rules"),
        pytest.param({"rules": {"duration-to-long": {"mode": "off"}}}, False, id="unknown rule"),
        pytest.param({"rules": {"strategy-writer": {"mode": "on"}}}, False, id="unknown mode"),
        pytest.param({"rules": {"duration-too-long": {"deny_above_seconds": -1}}}, False, id="negative number"),
        pytest.param({"exempt": [{**ENTRY, "users": ["velero"], "until": "2027-01-31"}]}, True, id="exempt"),
        pytest.param({"exempt": [{**ENTRY, "users": ["velero"], "until": "2027-02-30"}]}, False, id="no such day"),
        pytest.param({"exempt": [{**ENTRY, "users": [], "leases": ["a"]}]}, True, id="one list is empty"),
        pytest.param(
            {"exempt": [{**ENTRY, "users": ["a"], "rules": ["foreign-release"], "operations": ["CREATE"]}]},
            True,
            id="exempt from a rule on an operation",
        ),
        pytest.param({"exempt": [{**ENTRY, "users": ["a"], "rules": ["lease-duration"]}]}, False, id="a field rule"),
        pytest.param({"exempt": [{**ENTRY, "users": ["a"], "rules": []}]}, False, id="exempt from no rule"),
        pytest.param({"exempt": [{**ENTRY, "users": ["a"], "operations": ["PATCH"]}]}, False, id="no operation"),
        pytest.param({"overrides": [{"rules": {}, "operations": ["DELETE"]}]}, True, id="override of an operation"),
        pytest.param({"overrides": [{"rules": ["foreign-release"]}]}, False, id="override with a list of rules"),
        pytest.param({"docs_url": "https://docs.example.com:8443/rules/"}, True, id="docs_url"),
        pytest.param({"docs_url": "https://docs.example.com/rules/{rule}.md"}, True, id="docs_url with the rule's id"),
        pytest.param({"docs_url": "https://docs.example.com/rules/{id}.md"}, False, id="docs_url with another word"),
        pytest.param({"docs_url": "http://docs.example.com"}, False, id="docs_url without TLS"),
        pytest.param({"docs_url": "https://docs.example.com/?rule="}, False, id="docs_url with a query"),
        pytest.param({"docs_url": "https://docs.example.com\n"}, False, id="docs_url with a line break"),
        pytest.param({"exempt": [{**ENTRY, "users": []}]}, False, id="exempts nobody"),
        pytest.param({"exempt": [{"owner": "ops", "users": ["velero"]}]}, False, id="no reason"),
        pytest.param({"exempt": [{**ENTRY, "service_accounts": ["velero"]}]}, False, id="no namespace"),
        pytest.param({"overrides": [{"rules": {}, "leases": ["a*"]}]}, True, id="override"),
        pytest.param({"fences": [FENCE]}, True, id="fence"),
        pytest.param({"stamps": [{"suffix": "1a2b3c4d", "namespaces": ["shop"]}]}, True, id="stamps"),
        pytest.param({"stamps": [{"suffix": "1a2b3c4d", "namespaces": []}]}, False, id="stamps nowhere"),
        pytest.param({"fences": [{**FENCE, "mode": "off"}]}, False, id="fence that is off"),
        pytest.param({"fences": [{**FENCE, "writers": []}]}, False, id="fence without writers"),
        pytest.param({"fences": [{**FENCE, "lease": "operator"}]}, False, id="fence of a lease without a namespace"),
        pytest.param({"bindings": [BINDING]}, True, id="binding"),
        pytest.param({"bindings": [{**BINDING, "writers": []}]}, False, id="binding without writers"),
        pytest.param({"bindings": [{**BINDING, "lease": "a*"}]}, False, id="binding with a glob"),
        pytest.param({"unknown": 1}, False, id="unknown key"),
    ],
)
def test_schema_and_parser_agree(keys: dict[str, Any], good: bool) -> None:
    value = document.read(text(**keys))
    assert VALIDATOR.is_valid(value) is good
    if good:
        parse(text(**keys))
    else:
        with pytest.raises(PolicyError):
            parse(text(**keys))
