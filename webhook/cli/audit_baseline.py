"""Findings of an earlier audit, which a later one skips."""

import json
from pathlib import Path

from webhook.cli.failure import Failure


def known_findings(path: str) -> frozenset[str]:
    """The fingerprints in the JSON lines that `audit --format json` printed; raises Failure."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    return frozenset(_fingerprint(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _fingerprint(path: str, number: int, line: bytes) -> str:
    try:
        one = json.loads(line)
        parts = [one[key] for key in ("kind", "namespace", "name", "check")]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(f"{path}, line {number}: not a finding; write it with `audit --format json`") from None
    return "/".join(map(str, parts))
