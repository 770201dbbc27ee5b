"""Policy files: any text is a policy or a PolicyError; what a policy means does not depend on how it is written."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
from msgspec import to_builtins

from tests.acceptance import is_plain
from tests.factories import make_candidate, make_lease, make_review, put, to_bytes
from tests.fuzz.reviews import assert_response
from tests.policy.test_parse_fuzz import GOOD
from tests.review_rows import WHEN
from tools.docs.policy_schema import make_json_schema
from webhook.admission.policy.explain import explain, list_oddities
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError

ROOT: Final = Path(__file__).parents[2]
BODIES: Final = (
    to_bytes(make_review(new=make_lease(), old=make_lease(put("spec.holderIdentity", "another")))),
    to_bytes(make_review(new=make_lease())),
    to_bytes(make_review(old=make_lease())),
    to_bytes(make_review(new=make_candidate(), old=make_candidate())),
)


def check(data: bytes) -> None:
    """Parse a text; raises AssertionError for a law that does not hold."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        policy = parse(text)
    except PolicyError as error:
        refused = error
    else:
        _assert_means_one_thing(policy)
        return
    assert refused.problem
    assert str(refused).isprintable()


def _assert_means_one_thing(policy: Policy) -> None:
    document: Any = to_builtins(policy.document)
    assert _schema().is_valid(document), "the JSON Schema refuses what the parser accepts"
    again = parse(json.dumps(document, ensure_ascii=False))
    assert (again.digest, again.document) == (policy.digest, policy.document), "as JSON it is another policy"
    assert [*explain(policy)]
    for note in list_oddities(policy, WHEN):
        assert is_plain(note), note
    for body in BODIES:
        assert assert_response(body, policy).status == 200


def seeds() -> Iterator[bytes]:
    """Yield the policy files of documents and tests."""
    yield GOOD.encode()
    files = [*(ROOT / "docs" / "examples").glob("*.yaml"), *(ROOT / "tests" / "data").glob("*/*.yaml")]
    for path in sorted(files):
        text = path.read_bytes()
        if b"lease-webhook/v1" in text:
            yield text


@cache
def _schema() -> Any:
    return jsonschema.Draft202012Validator(make_json_schema(), format_checker=jsonschema.FormatChecker())
