"""YAML becomes the JSON that kubectl would send."""

import pytest

from webhook.cli.kubernetes_yaml import NotYamlError, documents, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2026-01-31T12:00:00.000000Z", "2026-01-31T12:00:00.000000Z", id="a time stays text"),
        pytest.param("2026-01-31", "2026-01-31", id="a day stays text"),
        pytest.param("12:30:45", "12:30:45", id="base 60 does not exist"),
        pytest.param("yes", True, id="yes"),
        pytest.param("Off", False, id="Off"),
        pytest.param("y", True, id="y"),
        pytest.param("yEs", "yEs", id="yEs is text"),
        pytest.param("'yes'", "yes", id="quoted yes"),
        pytest.param("15", 15, id="an integer"),
        pytest.param("-1_000", -1000, id="underscores"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("017", 15, id="octal as in YAML 1.1"),
        pytest.param("0o17", 15, id="octal as in YAML 1.2"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("08", 8, id="eight with a zero is a float, and whole"),
        pytest.param("15.0", 15, id="a whole float is an integer"),
        pytest.param("1e3", 1000, id="an exponent"),
        pytest.param("1.5", 1.5, id="a float"),
        pytest.param("~", None, id="a tilde"),
        pytest.param("", None, id="nothing"),
        pytest.param("!!str 15", "15", id="told to be text"),
        pytest.param("{on: 1, 2: x}", {"true": 1, "2": "x"}, id="keys are text"),
        pytest.param("{<<: {a: 1, b: 1}, b: 2}", {"a": 1, "b": 2}, id="a merge key"),
        pytest.param("[&a x, *a]", ["x", "x"], id="an alias"),
    ],
)
def test_a_value(text: str, value: object) -> None:
    found = parse(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("a: 1\na: 2", "line 2: the key 'a' stands twice", id="a key twice"),
        pytest.param(".nan", "line 1: JSON has no .nan", id="not a number"),
        pytest.param("-.inf", "line 1: JSON has no -.inf", id="infinity"),
        pytest.param("!!bool maybe", "line 1: 'maybe' is no boolean", id="told to be a boolean"),
        pytest.param("? [a]\n: 1", "line 1: a key must be text", id="a list as a key"),
        pytest.param("a: b: c", "line 1, column 5: mapping values are not allowed here", id="broken"),
        pytest.param("!!binary aGk=", "could not determine a constructor", id="bytes"),
        pytest.param("!!set {a}", "could not determine a constructor", id="a set"),
        pytest.param("\x00", "special characters are not allowed", id="a control character"),
    ],
)
def test_what_is_refused(text: str, error: str) -> None:
    with pytest.raises(NotYamlError) as refused:
        parse(text)
    assert error in str(refused.value)
    assert "\n" not in str(refused.value)


def test_documents_keep_their_line_numbers() -> None:
    text = "%YAML 1.1\n--- # first\na: 1\n---\n# nothing\n---\r\nb: [\n"
    first, last = documents(text)
    assert parse(first) == {"a": 1}
    with pytest.raises(NotYamlError, match=r"^line 8"):
        parse(last)


def test_dashes_inside_a_value_do_not_cut() -> None:
    (only,) = documents("a: |\n  x\n  ---\n  y\nb: --- c\n")
    assert parse(only) == {"a": "x\n---\ny\n", "b": "--- c"}
