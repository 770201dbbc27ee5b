"""Reduced histories that once broke a law, as files: one JSON line for the law, then one for each write.

They replay without the field manager, because each line holds the objects that it made.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.evidence.laws import MUST, NO_VERDICT
from tests.evidence.records import Record
from tests.evidence.reviews import Outcome, evaluate, review, text_of
from tests.evidence.stored_lease import Lease

FOLDER: Final = Path(__file__).parents[1] / "data" / "evidence"
DEEPEST: Final = 200
"""Levels of an entry that is stored as JSON."""


def store(law: str, records: Sequence[Record], folder: Path = FOLDER) -> Path:
    """Write the stored writes of a history and its last one to a file, named after the law and the content."""
    played = [record for record in records[:-1] if record.allowed and not record.probe] + [records[-1]]
    listed = {"listed": True} if records[-1].write.listed else {}
    lines = [
        json.dumps({"law": law, "last_write_must": MUST[law], **listed}),
        *(json.dumps(_line(record)) for record in played),
    ]
    text = "\n".join(lines) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{law.replace(' ', '-')}-{digest}.jsonl"
    file.write_text(text)
    return file


def _line(record: Record) -> dict[str, Any]:
    """A write, in the form of the conformance corpus."""
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
        **_object("object", write.new),
        **_object("oldObject", write.old),
    }


def _object(role: str, lease: Lease | None) -> dict[str, Any]:
    """An object, as text if it nests more deeply than every JSON reader follows."""
    if lease is None:
        return {role: None}
    text = lease.encode()
    if any(entry.fields.count("{") > DEEPEST for entry in lease.entries or ()):
        return {role: None, f"{role}Text": text.decode()}
    return {role: json.loads(text)}


def complaint(file: Path) -> str:
    """Play a file again: why its law is broken still, or "".

    If a write before the last one is denied now, the rest of the history cannot happen any more.
    """
    head, *lines = map(json.loads, file.read_text().splitlines())
    listed = head.get("listed", False)
    for line in lines[:-1]:
        if line["sent"] and not _outcome(line, listed=listed).allowed:
            return ""
    outcome = _outcome(lines[-1], listed=listed)
    return "" if obeys(head["law"], outcome) else f"the last write must {head['last_write_must']}: {outcome}"


def obeys(law: str, outcome: Outcome) -> bool:
    """Return whether the outcome of the last write is what the law asks for."""
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


def _outcome(line: dict[str, Any], *, listed: bool) -> Outcome:
    body = review(line["operation"], line["user"], text_of(line, "object"), text_of(line, "oldObject"))
    return evaluate(body, line["now"], listed=listed)
