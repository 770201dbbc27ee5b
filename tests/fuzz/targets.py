"""The targets of `make fuzz-guided`, and the inputs of each that are kept in tests/data/corpora."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.fuzz import documents, envelopes, histories, managed_fields, policies, reviews, yaml

CORPORA: Final = Path(__file__).parents[1] / "data" / "corpora"
MAX_SIZE: Final = 64 * 1024
"""Bytes of an input."""
MAX_SECONDS: Final = 10.0
"""Seconds of CPU for one input while its lines are counted, which makes it several times slower."""


class Target(Struct, frozen=True):
    """A reader of bytes: `check` raises for what must not be, fuzzing begins with `seeds`; `is_json`: most are JSON."""

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    is_json: bool = True


TARGETS: Final[Mapping[str, Target]] = {
    "reviews": Target(reviews.check, reviews.seeds),
    "policies": Target(policies.check, policies.seeds, is_json=False),
    "yaml": Target(yaml.check, yaml.seeds, is_json=False),
    "documents": Target(documents.check, documents.seeds),
    "managed-fields": Target(managed_fields.check, managed_fields.seeds),
    "envelopes": Target(envelopes.check, envelopes.seeds),
    "histories": Target(histories.check, histories.seeds),
}


def corpus(name: str) -> list[bytes]:
    """Return the inputs that are kept for a target: each one runs lines that no smaller one does."""
    with zipfile.ZipFile(CORPORA / f"{name}.zip") as archive:
        return [archive.read(entry) for entry in sorted(archive.namelist())]


def beginning(name: str) -> list[bytes]:
    """Return what fuzzing of a target begins with: its seeds, and what is kept."""
    kept = corpus(name) if (CORPORA / f"{name}.zip").exists() else []
    return [data[:MAX_SIZE] for data in (*TARGETS[name].seeds(), *kept)]


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Write the corpus of a target."""
    CORPORA.mkdir(exist_ok=True)
    write(CORPORA / f"{name}.zip", inputs)


def write(path: Path, inputs: Iterable[bytes]) -> None:
    """Write an archive of inputs, the form of OSS-Fuzz's corpora: the same inputs give the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, data in enumerate(sorted(set(inputs), key=lambda data: (len(data), data))):
            archive.writestr(zipfile.ZipInfo(f"{number:04}"), data, zipfile.ZIP_DEFLATED)
