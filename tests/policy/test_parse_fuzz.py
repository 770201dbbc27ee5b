"""Any text is a policy or a PolicyError, nothing else."""

from collections.abc import Iterable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from tools.docs.policy_schema import make_json_schema
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError


def words(value: object) -> Iterator[str]:
    """Yield the keys that a JSON Schema names, and the words that may stand there."""
    if isinstance(value, dict):
        yield from value.get("properties", {})
        yield from (str(one) for one in value.get("enum", ()))
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    for item in inner:
        yield from words(item)


WORDS = st.sampled_from(
    [
        *dict.fromkeys(words(make_json_schema())),
        *("https://example.com", "true", "null", "2027-01-31"),
        *("shop/db", "user:ci", "${pod}_*", "${node}", "*", "?", "-1", "1e9", "''"),
    ]
)
VALUES = st.recursive(
    WORDS | st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
PIECES = st.sampled_from([*": ", *"-[]{}&*!|>%@`'\"#,?\n\t\x00\x85\u2028\ufeff\ud800", ": ", "\n  ", "\n- ", "--- "])


def outcome(text: str) -> Policy | None:
    try:
        return parse(text)
    except PolicyError as error:
        refused = error
    assert refused.problem
    assert str(refused).isprintable()
    return None


@given(st.text())
def test_any_text(text: str) -> None:
    outcome(text)


@given(st.lists(WORDS | PIECES, max_size=30).map("".join))
def test_pieces_of_policies(text: str) -> None:
    outcome("apiVersion: lease-webhook/v1\n" + text)


@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_any_keys_and_values(keys: dict[str, object]) -> None:
    outcome("apiVersion: lease-webhook/v1\n" + "".join(f"{key}: {flow(value)}\n" for key, value in keys.items()))


def test_a_good_file_cut_off_anywhere() -> None:
    for cut in range(0, 600, 7):
        outcome(GOOD[:cut])


def test_the_good_file_is_good() -> None:
    assert outcome(GOOD)
    assert len(GOOD) > 600


def flow(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    return str(value)


GOOD = """\
apiVersion: lease-webhook/v1
preset: strict
mode: warn
without_stamps: enforce
docs_url: https://docs.example.com/rules
rules:
  duration-too-long: {mode: audit, warn_above_seconds: 3600}
exempt:
- {users: [velero], namespaces: ["team-*"], owner: ops, reason: restores, until: 2027-01-31}
- {groups: [ops], rules: [foreign-release], operations: [CREATE, DELETE], owner: ops, reason: drills}
overrides:
- {namespaces: [shop], leases: ["check*"], operations: [UPDATE], rules: {foreign-release: {mode: audit}}}
bindings:
- {namespace: shop, lease: checkout, writers: [shop/checkout, "user:ci"], holder: ["${pod}_*"]}
"""
