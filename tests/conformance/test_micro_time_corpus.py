"""metav1.MicroTime: every recorded text is read, refused and printed again as by apimachinery v0.36.3."""

from tests.conformance.corpus import cases
from webhook.kubernetes import times

CASES = cases("microtime")
TEXTS = [case for case in CASES if isinstance(case["s"], str)]


def test_the_corpus_is_whole() -> None:
    assert len(CASES) == 1500
    assert sum(case["expected"]["valid"] for case in TEXTS) == 730


def test_only_texts_and_null_have_a_meaning() -> None:
    """Other JSON types never reach the parser: the decoder refuses them, as Go does."""
    others = [case for case in CASES if not isinstance(case["s"], str)]
    assert len(others) == 11
    assert [case["s"] for case in others if case["expected"]["valid"]] == [None]


def test_every_text_is_evaluated_as_upstream() -> None:
    assert [case["id"] for case in TEXTS if evaluated(case["s"]) != expected(case)] == []


def evaluated(text: str) -> tuple[int | None, str | None]:
    """Return what we say of a text: its instant, and how it prints."""
    try:
        micros = times.parse(text)
    except ValueError:
        return None, None
    return micros, None if micros == times.ZERO else times.format_micro_time(micros)


def expected(case: dict[str, dict[str, object]]) -> tuple[object, object]:
    """The same of the recording."""
    verdict = case["expected"]
    return verdict["unix_micros"], verdict["canonical"]
