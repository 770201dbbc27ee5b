"""metav1.MicroTime: every recorded text is read, refused and printed again as by apimachinery v0.36.3."""

from tests.conformance.corpus import cases
from webhook.api import micro_time
from webhook.api.go_time import TimeError

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


def test_every_text_is_judged_as_upstream() -> None:
    assert [case["id"] for case in TEXTS if judged(case["s"]) != expected(case)] == []


def judged(text: str) -> tuple[int | None, str | None, str | None]:
    """What we say of a text: its instant, how it prints, and why it is refused."""
    try:
        micros = micro_time.parse(text)
    except TimeError as error:
        return None, None, str(error)
    return micros, None if micros == micro_time.ZERO else micro_time.canonical(micros), None


def expected(case: dict[str, dict[str, object]]) -> tuple[object, object, object]:
    """The same of the recording."""
    verdict = case["expected"]
    return verdict["unix_micros"], verdict["canonical"], verdict.get("error")
