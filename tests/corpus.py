"""Every review that the tests have, whoever evaluates it."""

from collections.abc import Iterator

from tests.attacks.recorded import every_review
from tests.recordings import recordings
from tests.review_rows import cases


def corpus() -> Iterator[tuple[str, bytes]]:
    """Every recorded review, every review of a recorded attack and every bad input."""
    yield from ((one.file, one.body) for one in recordings())
    yield from ((case.name, case.body) for case in cases())
    yield from (("attack", one.body) for one in every_review())
