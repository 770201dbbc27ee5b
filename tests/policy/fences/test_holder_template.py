"""Which holder identities a template matches, and which templates are refused."""

from typing import Any

import pytest

from tests.policy.fences.made import fence, refusal

FORM = (
    "holder[0]: must be a holder identity with `${pod}` or `${node}` once, such as `${pod}_*`, of at most 256 "
    "characters of printable ASCII, with `*` only at the end"
)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param(
            {"holder": ["${pod}*"]},
            "holder[0]: `*` also matches longer names: that of op-1 matches op-10; put a character that no name has "
            'between them, as in "${pod}_*"',
            id="no separator",
        ),
        pytest.param(
            {"holder": ["${pod}-*"]},
            "holder[0]: `*` also matches longer names: that of op-1 matches op-10; put a character that no name has "
            'between them, as in "${pod}_*"',
            id="a separator that names hold",
        ),
        pytest.param(
            {"holder": ["*_${pod}"]},
            FORM,
            id="a star before",
        ),
        pytest.param(
            {"holder": ["${pod}_?"]},
            FORM,
            id="a question mark",
        ),
        pytest.param({"holder": ["${pid}_*"]}, FORM, id="another variable"),
        pytest.param({"holder": ["${pod}${node}"]}, FORM, id="two variables"),
        pytest.param({"holder": ["${pod}\t_*"]}, FORM, id="a tab"),
        pytest.param({"holder": ["${pod}_\n"]}, FORM, id="a line break at the end"),
        pytest.param({"holder": ["${pod}_é"]}, FORM, id="not ASCII"),
        pytest.param({"holder": ["*"]}, FORM, id="any holder"),
        pytest.param(
            {"holder": ["${pod}_*", "${pod}-leader"]},
            "holder[1]: next to other templates, the name must be separated by a character that no name has, such as "
            "_: "
            "otherwise two pods match one holder",
            id="two templates that one holder fits",
        ),
    ],
)
def test_what_is_refused(keys: dict[str, Any], words: str) -> None:
    assert refusal(**keys) == words


@pytest.mark.parametrize(
    ("template", "name", "holder", "fits"),
    [
        pytest.param("${pod}_*", "op-1", "op-1_x", True, id="the pod"),
        pytest.param("${pod}_*", "op-1", "op-10_x", False, id="a longer name"),
        pytest.param("${pod}_*", "", "_x", False, id="no name"),
        pytest.param("${pod}", "op-1", "op-1", True, id="the name alone"),
        pytest.param("${pod}", "op-1", "op-1_x", False, id="more than the name"),
        pytest.param("x-${pod}-leader", "op-1", "x-op-1-leader", True, id="text around the name"),
        pytest.param("${pod}_*", "a" * 62 + "-bcd", "a" * 62 + "_x", True, id="a host name cut at a dash"),
        pytest.param("${node}_*", "n1", "n1_x", True, id="the node"),
    ],
)
def test_which_holders_match(template: str, name: str, holder: str, fits: bool) -> None:
    assert fence(holder=[template]).holders[0].fits(name, holder) is fits
