"""Random reviews, each answered in every way that the code has: `make verdicts` compares the bytes of a million.

The application answers before Flask's routing, or by it; the decoder reads a review in one pass, or part by part. A
review is a recorded one of which some values are replaced by those of another one at the same place, or by anything
else, or removed, or of which some bytes are changed.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pool
from typing import Any, Final

from flask import Flask

from tests.corpus import corpus
from tests.review_rows import WHEN
from tests.server.test_app import answer, environ_of, service
from webhook.admission.policy.model import Policy
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import AdmissionRequest
from webhook.kubernetes.review import _decode_parts, decode
from webhook.server.app import ReviewApp, make_review_app
from webhook.server.logs import LOG
from webhook.server.reviewer import ReviewResponse, respond

POLICIES: Final = ("observe", "standard", "strict")
MAX_BODY: Final = 20_000
MAX_DEPTH: Final = 9
CHUNK: Final = 5_000
FACES: Final[Sequence[Any]] = (
    None, True, False, 0, -1, 1, 1.5, 15.0, 2**31 - 1, 2**31, 2**63, 10**30, 1e300, "", "x", "a/b", "1.36.0", "\u202e",
    "x" * 300, "system:apiserver", "system:node:n1", "2025-11-20T12:00:00Z", "2025-11-20T12:00:00.000000Z",
    "10000-01-01T00:00:00.000000Z", [], [None], [1], {}, {"a": None}, {"f:spec": {"f:renewTime": {}}},
)  # fmt: skip
Path = tuple[str | int, ...]


def find_places(value: Any, path: Path = ()) -> list[Path]:
    """Return the path of every value in a document, down to MAX_DEPTH, but for the document itself."""
    inner: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    if len(path) == MAX_DEPTH:
        return []
    return [found for key, item in inner for found in ((*path, key), *find_places(item, (*path, key)))]


def find_value(document: Any, path: Path) -> Any:
    """Return the value at a path, or the document itself if there is none."""
    value = document
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return document
    return value


class Reviews:
    """Random reviews made of recorded ones."""

    def __init__(self) -> None:
        bodies = sorted({body for _, body in corpus() if len(body) < MAX_BODY})
        self._documents = []
        for body in bodies:
            try:
                document = json.loads(body)
            except (ValueError, RecursionError):
                continue
            if isinstance(document, dict):
                self._documents.append((json.dumps(document, separators=(",", ":")), document, find_places(document)))

    def draw(self, numbers: random.Random) -> bytes:
        """Return one review."""
        text, _, paths = numbers.choice(self._documents)
        changed = json.loads(text)
        for _ in range(numbers.choice((1, 1, 1, 2, 2, 3))):
            if paths:
                _change(changed, numbers.choice(paths), numbers.choice(self._documents)[1], numbers)
        body = bytearray(
            json.dumps(changed, separators=(",", ":"), ensure_ascii=numbers.random() < 0.5).encode(
                "utf-8", "surrogatepass"
            )
        )
        if numbers.random() < 0.05:
            place = numbers.randrange(len(body))
            body[place : place + numbers.randrange(4)] = numbers.randbytes(numbers.randrange(4))
        return bytes(body)


def _change(document: Any, path: Path, other: Any, numbers: random.Random) -> None:
    parent: Any = find_value(document, path[:-1])
    replaces, same = numbers.random() < 0.8, find_value(other, path)
    value = same if same is not other and numbers.random() < 0.7 else numbers.choice(FACES)
    # An earlier change may have taken the place away.
    with suppress(KeyError, IndexError, TypeError):
        if replaces:
            parent[path[-1]] = json.loads(json.dumps(value))
        else:
            del parent[path[-1]]


def _decode(body: bytes, *, in_parts: bool) -> AdmissionRequest | tuple[int, str]:
    try:
        return _decode_parts(body) if in_parts else decode(body)
    except ReviewError as error:
        return error.status, error.text
    except RecursionError:
        return decode(body)  # it is cut before it is read


def _create_apps() -> list[ReviewApp]:
    def evaluate_at_moment(body: bytes, policy: Policy, _now: int) -> ReviewResponse:
        return respond(body, policy, WHEN)

    LOG.disabled = True
    return [make_review_app(service(policy, evaluate_at_moment)) for policy in POLICIES]


def compare(chunk: tuple[int, int]) -> tuple[Counter[str], list[str], bytes]:
    """Compare the answers to so many reviews of a seed; return outcomes, differences and a digest of all answers."""
    seed, count = chunk
    numbers, reviews, apps = random.Random(seed), Reviews(), _create_apps()
    outcomes: Counter[str] = Counter()
    differences, digest = [], hashlib.sha256()
    for body in (reviews.draw(numbers) for _ in range(count)):
        app = apps[numbers.randrange(len(apps))]
        short = answer(app.wsgi_app, environ_of(body))
        routed = answer(lambda *arguments, app=app: Flask.wsgi_app(app, *arguments), environ_of(body))
        if short != routed:
            differences.append(f"{short} is not {routed}: {body!r}")
        if _is_utf8(body) and _decode(body, in_parts=False) != _decode(body, in_parts=True):
            differences.append(f"not the same read part by part: {body!r}")
        outcomes[_summarize(*short)] += 1
        digest.update(short[2])
    return outcomes, differences, digest.digest()


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _summarize(status: str, _headers: list[tuple[str, str]], body: bytes) -> str:
    if not status.startswith("200"):
        return status[:3]
    response = json.loads(body)["response"]
    if response["allowed"]:
        return "allowed with warnings" if response.get("warnings") else "allowed"
    return f"denied with {response['status']['code']}"


def list_chunks(seed: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield seeds and counts, so that the same reviews are drawn whatever the number of processes."""
    for number, begin in enumerate(range(0, count, CHUNK)):
        yield seed * 1_000_000 + number, min(CHUNK, count - begin)


def main() -> int:
    """Compare and print the counts; return 1 if two answers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    differences: list[str] = []
    digest, began = hashlib.sha256(), time.monotonic()
    with Pool(arguments.processes) as pool:
        for some, different, bits in pool.imap(compare, list_chunks(arguments.seed, arguments.count)):
            outcomes += some
            differences += different
            digest.update(bits)
            if sys.stderr.isatty():
                print(f"\r{outcomes.total():,}", end="", file=sys.stderr, flush=True)
    for difference in differences[:10]:
        print(difference[:3000])
    print(f"{outcomes.total():,} reviews in {time.monotonic() - began:.0f} s, {len(differences)} answered differently")
    for outcome, number in sorted(outcomes.items()):
        print(f"{number:>10,}  {outcome}")
    print(f"sha256 of all answers: {digest.hexdigest()}")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
