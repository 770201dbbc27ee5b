"""A moment as people type it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook.cli.failure import Failure

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(text: str) -> int:
    """An RFC 3339 time in microseconds since 1970.

    Raises:
        Failure: the text is not such a time.

    """
    try:
        parsed = datetime.fromisoformat(text.upper()) if _RFC3339.fullmatch(text) else None
    except ValueError:
        parsed = None
    if parsed is None:
        raise Failure(f'"{text}" is not an RFC 3339 time; write 2026-01-31T23:59:59Z')
    return (parsed - _EPOCH) // timedelta(microseconds=1)
