"""Envelopes: the audit events in any bytes, the same ones in one envelope more."""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from webhook.analysis.inputs import kinds
from webhook.analysis.inputs.documents import make_document
from webhook.analysis.inputs.envelopes import MAX_DEPTH, find_events
from webhook.analysis.inputs.items import Place
from webhook.kubernetes.decoding_errors import find_error

FOLDER: Final = Path(__file__).parents[1] / "data" / "envelopes"
_FEW: Final = 8000
"""Bytes of a seed: what is behind them is more of the same."""


def check(data: bytes) -> None:
    """Look for events; raises AssertionError for a law that does not hold."""
    events = list(find_events(data))
    for number, event in enumerate(events, 1):
        assert b"audit.k8s.io" in event, "not an event"
        kinds.interpret_for_history(make_document(Place("file", number), event))
    if data[:1] != b"{" or find_error(memoryview(data)):
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    assert list(find_events(b"[" + data + b"," + data + b"]")) == 2 * list(find_events(data, 1))
    wrapped = json.dumps({"records": [{"log": text}], "other": text}).encode()
    assert list(find_events(wrapped)) == list(find_events(text.strip().encode(), 4))
    assert list(find_events(data, MAX_DEPTH)) in ([], [data])


def seeds() -> Iterator[bytes]:
    """Yield one document of each service, of few events."""
    for path in sorted(FOLDER.glob("*.gz")):
        value, _ = json.JSONDecoder().raw_decode(gzip.decompress(path.read_bytes()).decode())
        while len(text := json.dumps(value, separators=(",", ":")).encode()) > _FEW:
            if not _shorten(value):
                break
        yield text


def _shorten(value: object) -> bool:
    """Halve each list of several members; False if there is none."""
    is_shorter = False
    if isinstance(value, list) and len(value) > 1:
        del value[(len(value) + 1) // 2 :]
        is_shorter = True
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    for item in inner:
        is_shorter = _shorten(item) or is_shorter
    return is_shorter
