"""The recorded reviews of real clients on real API servers (`tests/data/recordings`), and changes to them."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.factories import Document, to_bytes
from webhook.cli.options import parse_moment

FOLDER: Final = Path(__file__).parent / "data" / "recordings"
EXPECTED: Final = {
    name: Path(__file__).parent / "data" / f"expected-of-recordings-{name}.jsonl" for name in ("standard", "strict")
}
"""For the reviews that people made with kubectl: what `check --expect` would expect, the admin's exemption removed."""
NEEDING_NOW: Final = Path(__file__).parent / "data" / "recordings-needing-now.txt"
"""Those where a stamp is missing or a rule measures against the clock, so that another day may change the outcome."""


class Recording(Struct, frozen=True):
    """One recorded review; `received` in microseconds since 1970."""

    file: str
    client: str
    user: str
    received: int

    @property
    def body(self) -> bytes:
        """The bytes as the API server sent them."""
        return (FOLDER / self.file).read_bytes()

    @property
    def by_person(self) -> bool:
        """Whether a person made it, to show an honest or a dishonest write."""
        return self.client.startswith("kubectl")

    def document(self) -> Document:
        """The review as a JSON value."""
        document: Document = json.loads(self.body)
        return document

    def body_without_exemption(self) -> bytes:
        """The same write by a user outside of system:masters; the API server's own writes stay as they are."""
        if self.user != "admin":
            return self.body
        document = self.document()
        user: dict[str, Any] = document["request"]["userInfo"]
        user["groups"].remove("system:masters")
        return to_bytes(document)


@cache
def recordings() -> tuple[Recording, ...]:
    """All of them, in the order of the index."""
    entries = map(json.loads, (FOLDER / "index.jsonl").read_text().splitlines())
    return tuple(
        Recording(entry["file"], entry["client"], entry["user"], parse_moment(entry["received"])) for entry in entries
    )


def one_of_each_client() -> tuple[Recording, ...]:
    """The first recording of each client: what is sent over the wire, where only bytes can differ."""
    return tuple({one.client: one for one in reversed(recordings())}.values())
