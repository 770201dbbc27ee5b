"""Formats of names, labels and keys: what is right, and the words for what is wrong."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.kubernetes import formats

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
QUALIFIED = f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@given(st.text(alphabet="aZ0-._/\n\u00e9", max_size=12))
@example("a" * 64)
def test_a_label_and_a_subdomain_are_what_their_printed_patterns_say(value: str) -> None:
    for form, words in ((formats.dns_label, LABEL), (formats.dns_subdomain, SUBDOMAIN)):
        pattern = words.rpartition("'")[0].rpartition("'")[2]
        long = "must be no more than 63 characters"
        assert (form(value) in {(), (long,)}) == bool(re.fullmatch(pattern, value))


@pytest.mark.parametrize(
    ("form", "value", "wrong"),
    [
        pytest.param(formats.dns_label, "a-0", (), id="label: right"),
        pytest.param(formats.dns_label, "a" * 63, (), id="label: 63"),
        pytest.param(formats.dns_label, "a" * 64, ("must be no more than 63 characters",), id="label: 64"),
        pytest.param(formats.dns_label, "a.b", ("must not contain dots",), id="label: a dot"),
        pytest.param(formats.dns_label, "-a", (LABEL,), id="label: a dash first"),
        pytest.param(formats.dns_label, "a\n", (LABEL,), id="label: a line end"),
        pytest.param(formats.dns_label, "\u00e9", (LABEL,), id="label: not ASCII"),
        pytest.param(
            formats.dns_label, "\u00e9" * 32, ("must be no more than 63 characters", LABEL), id="label: 64 bytes"
        ),
        pytest.param(formats.dns_subdomain, "a.b-c.0", (), id="subdomain: right"),
        pytest.param(formats.dns_subdomain, "a..b", (SUBDOMAIN,), id="subdomain: two dots"),
        pytest.param(formats.dns_subdomain, "", (SUBDOMAIN,), id="subdomain: empty"),
        pytest.param(formats.dns_subdomain, "a.-b", (SUBDOMAIN,), id="subdomain: a dash first in a label"),
        pytest.param(formats.dns_subdomain, "a-.b", (SUBDOMAIN,), id="subdomain: a dash last in a label"),
        pytest.param(formats.dns_subdomain, ".a", (SUBDOMAIN,), id="subdomain: a dot first"),
        pytest.param(formats.dns_subdomain, "a-", (SUBDOMAIN,), id="subdomain: a dash last"),
        pytest.param(formats.dns_subdomain, "a" * 254, ("must be no more than 253 characters",), id="subdomain: 254"),
        pytest.param(formats.dns_subdomain_prefix, "a-", (), id="prefix of a subdomain: a dash last"),
        pytest.param(formats.dns_subdomain_prefix, "a.-", (), id="prefix of a subdomain: the last two are not seen"),
        pytest.param(formats.dns_subdomain_prefix, "-", (SUBDOMAIN,), id="prefix of a subdomain: a dash alone"),
        pytest.param(formats.dns_subdomain_prefix, "a.", (SUBDOMAIN,), id="prefix of a subdomain: a dot last"),
        pytest.param(formats.config_map_key, "A_b.c-", (), id="key: right"),
        pytest.param(formats.config_map_key, "...", ("must not start with '..'",), id="key: dots first"),
        pytest.param(formats.config_map_key, ".", ("must not be '.'",), id="key: a dot"),
        pytest.param(formats.config_map_key, "..", ("must not be '..'",), id="key: two dots"),
        pytest.param(formats.config_map_key, "a b", (CONFIG_KEY,), id="key: a blank"),
        pytest.param(formats.config_map_key, "a" * 254, ("must be no more than 253 characters",), id="key: 254"),
        pytest.param(formats.path_segment, "a b", (), id="path: right"),
        pytest.param(formats.path_segment, ".", ("may not be '.'",), id="path: a dot"),
        pytest.param(formats.path_segment, "%/", ("may not contain '/'", "may not contain '%'"), id="path: both marks"),
        pytest.param(formats.path_segment_prefix, "..", (), id="prefix of a path: dots"),
        pytest.param(formats.qualified_name, "example.com/My_Name", (), id="qualified: right"),
        pytest.param(formats.qualified_name, f"{'a.' * 126}b/{'c' * 63}", (), id="qualified: the longest"),
        pytest.param(formats.qualified_name, f"{'a' * 64}/b", (), id="qualified: a label of the prefix may be long"),
        pytest.param(formats.qualified_name, "a/b/c", (QUALIFIED,), id="qualified: two slashes"),
        pytest.param(formats.qualified_name, "/a", ("prefix part must be non-empty",), id="qualified: no prefix"),
        pytest.param(formats.qualified_name, "A/a", (f"prefix part {SUBDOMAIN}",), id="qualified: a capital prefix"),
        pytest.param(
            formats.qualified_name,
            f"{'a' * 254}/b",
            ("prefix part must be no more than 253 bytes",),
            id="qualified: a long prefix",
        ),
        pytest.param(
            formats.qualified_name,
            "",
            ("name part must be non-empty", f"name part {KEY}"),
            id="qualified: an empty name is wrong twice",
        ),
        pytest.param(
            formats.qualified_name, "a" * 64, ("name part must be no more than 63 bytes",), id="qualified: a long name"
        ),
        pytest.param(formats.annotation_key, "A.B/c", (), id="annotation: capitals"),
        pytest.param(formats.annotation_key, "\u0130", (), id="annotation: a capital that Go lowers to ASCII"),
        pytest.param(formats.annotation_key, "a b", (f"name part {KEY}",), id="annotation: a blank"),
        pytest.param(formats.label_value, "", (), id="value: empty"),
        pytest.param(formats.label_value, "a.B_c", (), id="value: right"),
        pytest.param(formats.label_value, "a" * 64, ("must be no more than 63 bytes",), id="value: 64"),
        pytest.param(formats.label_value, "a/b", (VALUE,), id="value: a slash"),
    ],
)
def test_a_format_says_what_is_wrong(form: formats.Format, value: str, wrong: tuple[str, ...]) -> None:
    assert form(value) == wrong
