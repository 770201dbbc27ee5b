"""Every way in which a policy file is refused, with the words that its writer reads."""

import pytest
from msgspec.structs import fields

from webhook.admission.policy import parse as parser
from webhook.admission.policy.parse import MAX_CHARACTERS, parse
from webhook.admission.policy.schema import PolicyDocument, PolicyError, suggest_nearest

HEAD = "apiVersion: lease-webhook/v1\n"
KEYS = [field.encode_name for field in fields(PolicyDocument)]
EXEMPT = HEAD + "exempt:\n- {owner: a, reason: b, "
BINDING = HEAD + "bindings:\n- {namespace: shop, lease: db, writers: [shop/db], "
GLOBS = "\n".join(f"- {{namespaces: ['*-{number}-*'], rules: {{}}}}" for number in range(501))


def refusal(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("# only a comment\n", "the file is empty", id="only a comment"),
        pytest.param("---\n", "line 2: must be an object, not null", id="an empty document"),
        pytest.param("standard", "line 1: must be an object, not a string", id="a word"),
        pytest.param("- standard", "line 1: must be an object, not a list", id="a list"),
        pytest.param(HEAD + "---\n" + HEAD, "line 2: only one document is allowed", id="two documents"),
        pytest.param(HEAD + "rules: {", "line 3: not YAML: did not find expected node content", id="syntax"),
        pytest.param(
            HEAD + "\tmode: warn", "line 2: not YAML: found a tab character that violates indentation", id="a tab"
        ),
        pytest.param(HEAD + "x: \x00", "not YAML: control characters and lone surrogates are not allowed", id="a NUL"),
        pytest.param(
            HEAD + "x: \ud800",
            "not YAML: control characters and lone surrogates are not allowed",
            id="half a character",
        ),
        pytest.param(HEAD + "mode: warn\nmode: deny", 'line 3: key "mode" appears twice', id="a key twice"),
        pytest.param(
            HEAD + "rules:\n  strategy-writer: {mode: off, mode: deny}",
            'line 3: key "mode" appears twice',
            id="a key twice inside",
        ),
        pytest.param(HEAD + "exempt: &all []", "line 2: anchors are not allowed", id="an anchor"),
        pytest.param(HEAD + "exempt: *all", "line 2: aliases are not allowed; repeat the value", id="an alias"),
        pytest.param(HEAD + "mode: !!str off", 'line 2: tag "tag:yaml.org,2002:str" is not allowed', id="a tag"),
        pytest.param(
            HEAD + "? [mode]\n: off", "line 2: a key must consist of letters, digits, - and _", id="a list as a key"
        ),
        pytest.param(
            HEAD + "rules: {'a` - at `$.mode': 1}",
            "line 2: a key must consist of letters, digits, - and _",
            id="a key that is not a word",
        ),
        pytest.param("[" * 40, "line 1: nested deeper than 16 levels", id="deep"),
        pytest.param(" " * (MAX_CHARACTERS + 1), f"the file is larger than {MAX_CHARACTERS} characters", id="large"),
        pytest.param("mode: deny", "line 1: apiVersion: must be set", id="no apiVersion"),
        pytest.param(
            "apiVersion: lease-webhook/v2",
            'line 1: apiVersion: "lease-webhook/v2" is not known; did you mean "lease-webhook/v1"?',
            id="another apiVersion",
        ),
        pytest.param(
            HEAD + "overides: []", 'line 2: overides: unknown key; did you mean "overrides"?', id="a key misspelt"
        ),
        pytest.param(
            HEAD + "x: []",
            f"line 2: x: unknown key{suggest_nearest('x', KEYS)}",
            id="a key like no other",
        ),
        pytest.param(
            HEAD + "rules:\n  takeover-befor-expiry: {mode: deny}",
            'line 3: rules.takeover-befor-expiry: unknown rule; did you mean "takeover-before-expiry"?',
            id="a rule misspelt",
        ),
        pytest.param(HEAD + "rules: {xyz: {}}", "line 2: rules.xyz: unknown rule", id="a rule like no other"),
        pytest.param(
            HEAD + "overrides:\n- rules:\n    strategy-writers: {}",
            'line 4: overrides[0].rules.strategy-writers: unknown rule; did you mean "strategy-writer"?',
            id="a rule misspelt in an override",
        ),
        pytest.param(
            HEAD + "rules: {strategy-writer: {mode: dney}}",
            'line 2: rules.strategy-writer.mode: "dney" is not known; did you mean "deny"?',
            id="a mode misspelt",
        ),
        pytest.param(
            HEAD + "mode: block",
            'line 2: mode: "block" is not known; known are audit, deny, off, warn',
            id="a mode like no other",
        ),
        pytest.param(
            HEAD + "mode: false",
            "line 2: mode: must be one of audit, deny, off, warn, not a boolean",
            id="a boolean as a mode",
        ),
        pytest.param(
            HEAD + "preset: strikt",
            'line 2: preset: "strikt" is not known; did you mean "strict"?',
            id="a preset misspelt",
        ),
        pytest.param(
            HEAD + "rules: {strategy-writer: deny}",
            "line 2: rules.strategy-writer: must be an object, not a string; a mode is written as {mode: off}",
            id="a mode where a mapping belongs",
        ),
        pytest.param(
            HEAD + "rules: {strategy-writer: {deny_above_seconds: 5}}",
            "line 2: rules.strategy-writer.deny_above_seconds: unknown key; known are mode",
            id="a number that the rule does not have",
        ),
        pytest.param(
            HEAD + "rules: {duration-too-long: {deny_above_second: 5}}",
            'line 2: rules.duration-too-long.deny_above_second: unknown key; did you mean "deny_above_seconds"?',
            id="a number misspelt",
        ),
        pytest.param(
            HEAD + "rules: {duration-too-long: {deny_above_seconds: -1}}",
            "line 2: rules.duration-too-long.deny_above_seconds: must be at least 0",
            id="a negative number",
        ),
        pytest.param(
            HEAD + "rules: {duration-too-long: {deny_above_seconds: 9223372036854775808}}",
            "line 2: rules.duration-too-long.deny_above_seconds: must be at most 9223372036854775807",
            id="a number beyond 64 bits",
        ),
        pytest.param(
            HEAD + "rules: {duration-too-long: {deny_above_seconds: 1.5}}",
            "line 2: rules.duration-too-long.deny_above_seconds: must be an integer, not a floating-point number",
            id="a fraction",
        ),
        pytest.param(
            HEAD + "rules: {duration-too-long: {deny_above_seconds: 1h}}",
            "line 2: rules.duration-too-long.deny_above_seconds: must be an integer, not a string",
            id="a number with a unit",
        ),
        pytest.param(
            HEAD + "rules: {duration-too-long: {warn_above_seconds: 100, deny_above_seconds: 50}}",
            "line 2: rules.duration-too-long: warn_above_seconds 100 must not be above deny_above_seconds 50",
            id="warn above deny",
        ),
        pytest.param(
            HEAD + "overrides:\n- rules: {holder-identity-shape: {deny_above_bytes: 400}}",
            "line 3: overrides[0].rules.holder-identity-shape: "
            "warn_above_bytes 512 must not be above deny_above_bytes 400",
            id="warn, from the layer below, above deny",
        ),
        pytest.param(HEAD + "rules:", "line 2: rules: must be an object, not null", id="nothing"),
        pytest.param(HEAD + "exempt: {}", "line 2: exempt: must be a list, not an object", id="no list"),
        pytest.param(HEAD + "exempt: [{reason: b}]", "line 2: exempt[0].owner: must be set", id="no owner"),
        pytest.param(HEAD + "exempt: [{owner: b}]", "line 2: exempt[0].reason: must be set", id="no reason"),
        pytest.param(
            HEAD + "exempt: [{owner: ' ', reason: b}]",
            "line 2: exempt[0].owner: must be a string that is not blank, without control characters",
            id="a blank owner",
        ),
        pytest.param(
            HEAD + "exempt:\n- {owner: 7, reason: b}",
            "line 3: exempt[0].owner: must be a string, not an integer; put it in quotes",
            id="a number as owner",
        ),
        pytest.param(
            EXEMPT + "users: []}",
            "line 3: exempt[0]: must have users, groups, service_accounts, namespaces or leases",
            id="nobody and nowhere",
        ),
        pytest.param(
            EXEMPT + "users: ['system:*']}",
            "line 3: exempt[0].users[0]: must be an exact name; wildcards have no meaning here",
            id="a wildcard in a user",
        ),
        pytest.param(
            EXEMPT + "service_accounts: [checkout]}",
            "line 3: exempt[0].service_accounts[0]: must be a service account as namespace/name, no wildcards",
            id="a service account without its namespace",
        ),
        pytest.param(
            EXEMPT + "leases: [a, 'a b']}",
            "line 3: exempt[0].leases[1]: must be a name, in which `*` matches any characters and `?` one character",
            id="a blank in a name",
        ),
        pytest.param(
            EXEMPT + "users: [a], until: 31.1.2027}",
            "line 3: exempt[0].until: must be a date such as 2027-01-31",
            id="a date in another form",
        ),
        pytest.param(
            EXEMPT + "users: [a], until: 2027-02-30}",
            "line 3: exempt[0].until: must be a date such as 2027-01-31",
            id="a day that does not exist",
        ),
        pytest.param(
            EXEMPT + "users: [a], until: 2027}",
            "line 3: exempt[0].until: must be a date such as 2027-01-31, not an integer",
            id="a year alone",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: [foreign-release, takeover-befor-expiry]}",
            'line 3: exempt[0].rules[1]: "takeover-befor-expiry" is not known; did you mean "takeover-before-expiry"?',
            id="an exemption from a rule misspelt",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: [xyz]}",
            'line 3: exempt[0].rules[0]: "xyz" is not known',
            id="an exemption from a rule like no other",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: [lease-duration]}",
            'line 3: exempt[0].rules[0]: "lease-duration" applies to everyone, so no exemption may name it',
            id="an exemption from a field rule",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: [time-unreadable]}",
            'line 3: exempt[0].rules[0]: "time-unreadable" applies to everyone, so no exemption may name it',
            id="an exemption from a rule that nobody is exempt from",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: ['*']}",
            'line 3: exempt[0].rules[0]: "*" is not known',
            id="a wildcard as a rule",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: []}",
            "line 3: exempt[0].rules: must have at least 1 entry",
            id="an empty list of rules, which must not mean all",
        ),
        pytest.param(
            EXEMPT + "users: [a], operations: []}",
            "line 3: exempt[0].operations: must have at least 1 entry",
            id="an empty list of operations",
        ),
        pytest.param(
            EXEMPT + "users: [a], operations: [PATCH]}",
            'line 3: exempt[0].operations[0]: "PATCH" is not known; known are CREATE, DELETE, UPDATE',
            id="an operation that never arrives",
        ),
        pytest.param(
            EXEMPT + "users: [a], operations: CREATE}",
            "line 3: exempt[0].operations: must be a list, not a string",
            id="an operation without a list",
        ),
        pytest.param(
            EXEMPT + "users: [a], rules: {foreign-release: {mode: off}}}",
            "line 3: exempt[0].rules: must be a list, not an object",
            id="modes in an exemption",
        ),
        pytest.param(
            EXEMPT + "rules: [foreign-release], operations: [CREATE]}",
            "line 3: exempt[0]: must have users, groups, service_accounts, namespaces or leases",
            id="rules are not a place",
        ),
        pytest.param(
            HEAD + "overrides: [{rules: [foreign-release]}]",
            "line 2: overrides[0].rules: must be an object, not a list",
            id="a list of rules in an override",
        ),
        pytest.param(
            HEAD + "overrides: [{rules: {}, operations: [UPDATE, create]}]",
            'line 2: overrides[0].operations[1]: "create" is not known; known are CREATE, DELETE, UPDATE',
            id="an operation in lower case",
        ),
        pytest.param(HEAD + "overrides: [{leases: [a]}]", "line 2: overrides[0].rules: must be set", id="no rules"),
        pytest.param(
            HEAD + "overrides:\n" + GLOBS,
            "line 503: overrides[500]: more than 500 globs would be matched for one lease; use names, or one glob",
            id="too many globs",
        ),
        pytest.param(BINDING + "holder: []}", "line 3: bindings[0].holder: must have at least 1 entry", id="no holder"),
        pytest.param(
            BINDING + "holder: ['']}",
            "line 3: bindings[0].holder[0]: must be a holder identity, in which `*` matches any characters, "
            "`?` one character, and `${pod}`, the only variable, the name of the writer's pod",
            id="an empty holder",
        ),
        pytest.param(
            BINDING + "holder: ['${node}']}",
            "line 3: bindings[0].holder[0]: must be a holder identity, in which `*` matches any characters, "
            "`?` one character, and `${pod}`, the only variable, the name of the writer's pod",
            id="another variable",
        ),
        pytest.param(
            BINDING.replace("lease: db", "lease: 'db*'") + "holder: [a]}",
            "line 3: bindings[0].lease: must be an exact name; wildcards have no meaning here",
            id="a glob as a bound lease",
        ),
        pytest.param(
            BINDING.replace("shop/db", "group:ops") + "holder: [a]}",
            'line 3: bindings[0].writers[0]: must be a service account as namespace/name, or a user as "user:NAME", '
            "no wildcards",
            id="a group as a writer",
        ),
        pytest.param(
            BINDING + "holder: [a], require_pod: yes}",
            "line 3: bindings[0].require_pod: must be a boolean, not a string",
            id="yes is not a boolean",
        ),
        pytest.param(
            BINDING + "holder: [a]}\n- {namespace: shop, lease: db, writers: [shop/x], holder: [b]}",
            "line 4: bindings[1]: shop/db is already bound by bindings[0]",
            id="a lease bound twice",
        ),
        pytest.param(
            HEAD + "stamps:\n- {suffix: SUFFIX, namespaces: [shop]}",
            "line 3: stamps[0].suffix: must be the suffix of the annotations: 8 to 32 lower case letters and digits",
            id="a suffix that was not chosen",
        ),
        pytest.param(
            HEAD + "stamps:\n- {suffix: 1a2b3c4d, namespaces: ['*']}",
            "line 3: stamps[0].namespaces[0]: must be the exact name of a namespace, no wildcards",
            id="stamps everywhere",
        ),
        pytest.param(
            HEAD + "stamps:\n- {suffix: 1a2b3c4d, namespaces: [shop]}\n- {suffix: 5e6f7a8b, namespaces: [a, shop]}",
            'line 4: stamps[1].namespaces[1]: "shop" has stamps already; name it once',
            id="a namespace that has stamps twice",
        ),
    ],
)
def test_how_a_policy_is_refused(text: str, words: str) -> None:
    assert refusal(text) == words


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        pytest.param(
            "exempt: [{owner: a, reason: b, users: [u], groups: [g], leases: [a, b]}]", "exempt[0]", id="exempt"
        ),
        pytest.param("overrides: [{namespaces: [a, b], leases: [c, d], rules: {}}]", "overrides[0]", id="overrides"),
        pytest.param(
            "overrides: [{operations: [CREATE], rules: {}}, {operations: [CREATE, UPDATE, DELETE], rules: {}}]",
            "overrides[1]",
            id="overrides by operation",
        ),
    ],
)
def test_too_many_combinations(keys: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "MAX_COMBINATIONS", 3)
    words = f"line 2: {path}: more than 3 combinations of requester, namespace, lease and operation so far; use globs"
    assert refusal(HEAD + keys) == words
    monkeypatch.setattr(parser, "MAX_COMBINATIONS", 4)
    assert parse(HEAD + keys).preset == "standard"


def test_an_error_carries_its_parts() -> None:
    with pytest.raises(PolicyError) as caught:
        parse(HEAD + "mode: dney")
    assert (caught.value.path, caught.value.line) == ("mode", 2)
    assert caught.value.problem == '"dney" is not known; did you mean "deny"?'


def test_a_hostile_value_is_cut_and_shown_on_one_line() -> None:
    words = refusal(HEAD + 'mode: "' + "x" * 100 + "\\e\\n' - at `$.rules`" + "x" * 100_000 + '"')
    assert words.startswith('line 2: mode: "' + "x" * 100 + "\\x1b\\n' - at `$.rules`x")
    assert words.isprintable()
    assert len(words) < 300


def test_a_long_key_is_cut() -> None:
    assert refusal(HEAD + f"{'x' * 500}: 1").startswith("line 2: " + "x" * 128 + "...: unknown key")


def test_thousands_of_digits_are_a_string() -> None:
    assert refusal(HEAD + "rules: {duration-too-long: {deny_above_seconds: " + "1" * 5000 + "}}").endswith(
        "not a string"
    )
