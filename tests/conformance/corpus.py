"""The recorded corpora: gzip-compressed JSON lines beside the tests."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

CORPORA = Path(__file__).parent.parent / "data" / "conformance"


@cache
def cases(name: str) -> list[dict[str, Any]]:
    """All cases of one corpus, in file order."""
    with gzip.open(CORPORA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
