"""Reduced histories that once broke a law, as files: one JSON line for the law, then one for each write.

They replay without the field manager, because each line holds the objects that it made.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.evidence.laws import MUST, NO_VERDICT
from tests.evidence.reviews import Outcome, evaluate, review
from tests.evidence.world import Record

FOLDER: Final = Path(__file__).parent.parent / "data" / "evidence"


def store(law: str, records: Sequence[Record], folder: Path = FOLDER) -> Path:
    """Write the stored writes of a history and its last one to a file, named after the law and the content."""
    played = [record for record in records[:-1] if record.allowed and not record.probe] + [records[-1]]
    lines = [json.dumps({"law": law, "last_write_must": MUST[law]}), *(json.dumps(_line(record)) for record in played)]
    text = "\n".join(lines) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{law.replace(' ', '-')}-{digest}.jsonl"
    file.write_text(text)
    return file


def _line(record: Record) -> dict[str, Any]:
    """A write; the objects are texts, because some nest more deeply than a JSON reader follows."""
    write = record.write
    return {
        "by": "honest" if write.honest else "attacker",
        "kind": write.kind,
        "manager": write.manager,
        "mutations": write.mutations,
        "sent": record.sent,
        "operation": write.operation,
        "now": write.now,
        "user": write.user,
        "object": None if write.new is None else write.new.encode().decode(),
        "oldObject": None if write.old is None else write.old.encode().decode(),
    }


def complaint(file: Path) -> str:
    """Play a file again: why its law is broken still, or "".

    If a write before the last one is denied now, the rest of the history cannot happen any more.
    """
    head, *lines = map(json.loads, file.read_text().splitlines())
    for line in lines[:-1]:
        if line["sent"] and not _outcome(line).allowed:
            return ""
    outcome = _outcome(lines[-1])
    return "" if obeys(head["law"], outcome) else f"the last write must {head['last_write_must']}: {outcome}"


def obeys(law: str, outcome: Outcome) -> bool:
    """Whether the outcome of the last write is what the law asks for."""
    match MUST[law]:
        case "be denied":
            return not outcome.allowed
        case "be allowed":
            return outcome.allowed
        case "not be called tampered":
            return not outcome.tampered
        case "not be said to have no stamps":
            return not (outcome.without_stamps or outcome.weakened)
        case _:
            assert law == NO_VERDICT
            return not outcome.trouble


def _outcome(line: dict[str, Any]) -> Outcome:
    objects = [None if line[role] is None else line[role].encode() for role in ("object", "oldObject")]
    return evaluate(review(line["operation"], line["user"], *objects), line["now"])
