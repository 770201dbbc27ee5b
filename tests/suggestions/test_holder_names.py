"""Holder templates: the narrowest that cover the holders that were seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.admission.rules.holders import holder_matches
from webhook.analysis.suggestions.bindings import EVERY, MAX_NAMES, find_templates

RANDOM = [f"host_{number:04x}-{number:04x}" for number in range(20)]


@pytest.mark.parametrize(
    ("holders", "pods", "templates"),
    [
        pytest.param([("a-0_1f", "a-0"), ("a-1_2a", "a-1")], [], ["${pod}_*"], id="a pod and something random"),
        pytest.param([("a-0", "a-0")], [], ["${pod}"], id="the pod's name alone"),
        pytest.param(
            [("a-0", None), ("a-1_x", None)], ["a-0", "a-1"], ["${pod}", "${pod}_*"], id="pods that are known"
        ),
        pytest.param([("a-0-x", None)], ["a-0", "a"], ["${pod}-*"], id="the longest pod that fits"),
        pytest.param([("a-0", "")], ["a-0"], ["a-0"], id="a token that names no pod"),
        pytest.param([("a-01", "a-0")], [], ["a-01"], id="another pod"),
        pytest.param([("node-1", "")], [], ["node-1"], id="a name"),
        pytest.param([(one, "") for one in RANDOM], [], ["host_*"], id="a name and something random"),
        pytest.param([("host_", ""), ("host_1f0e", "")], [], ["host_", "host_*"], id="the name before it, too"),
        pytest.param([(f"node-{number}", "") for number in range(9)], [], [EVERY], id="many names"),
        pytest.param([], ["a"], [], id="nothing"),
    ],
)
def test_templates_are_as_narrow_as_the_holders_allow(
    holders: list[tuple[str, str | None]], pods: list[str], templates: list[str]
) -> None:
    suggested = find_templates(holders, pods)
    assert suggested == (tuple(templates), ())


@pytest.mark.parametrize("holder", ["a*", "${pod}", "a\nb", " a", "a-0*"])
def test_a_name_with_another_meaning_is_unsuited(holder: str) -> None:
    templates = find_templates([(holder, "a-0" if holder.startswith("a-0") else "")], [])
    assert templates == ((), (holder,))


NAMES = st.one_of(st.sampled_from(["a-0", "a-1", "b"]), st.text("ab-_.*?1$", max_size=6), st.just("a" * 70))


@given(st.lists(st.tuples(NAMES, NAMES, st.booleans()), max_size=MAX_NAMES + 4))
def test_every_holder_is_covered_or_unsuited(parts: list[tuple[str, str, bool]]) -> None:
    holders = [(f"{pod}{rest}" if joined else rest, pod) for pod, rest, joined in parts]
    templates, unsuited = find_templates([one for one in holders if one[0]], ["b"])
    for holder, pod in holders:
        assert any(holder_matches(one, holder, pod) for one in templates) or holder in {"", *unsuited}


@given(st.lists(NAMES.filter(bool)), st.lists(NAMES))
def test_a_holder_of_an_unknown_writer_is_covered_by_one_of_the_pods(holders: list[str], pods: list[str]) -> None:
    templates, unsuited = find_templates([(one, None) for one in holders], pods)
    for holder in {*holders} - {*unsuited}:
        assert any(holder_matches(one, holder, pod) for one in templates for pod in [*pods, ""])
