"""One write before a policy: the verdict, what kubectl would print, and the review as a file for `check`."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from webhook.admission.policy.file import make_preset_file
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PRESETS
from webhook.admission.verdict import encode
from webhook.analysis.history.audit_log.observed_requests import Writes
from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.files import CaptureIndex, read_for_check
from webhook.analysis.inputs.items import Input, OtherObject, Unreadable
from webhook.analysis.inputs.kinds import Manifest, Submitted
from webhook.browser.kubectl import format_as_kubectl
from webhook.cli.checking.evaluation import DocumentOutcome, Evaluation, Evaluator
from webhook.cli.checking.manifests import make_key, make_review, make_user_info
from webhook.cli.checking.text import format_subject, make_evaluation_json
from webhook.cli.rules import list_all_rules
from webhook.errors import InputError
from webhook.text.quoting import escape

Data = dict[str, Any]

MAX_DOCUMENTS: Final = 50
"""Writes of one text that are evaluated; `check` evaluates all of a file."""
MAX_BYTES: Final = 4_000_000
_LOG: Final = "this is a log or a watch, which has many writes: open it as a file, and see Check"
_NOTHING: Final = "nothing here is a Lease, a LeaseCandidate or an AdmissionReview"


def make_preset_files() -> dict[str, str]:
    """Return each preset as a policy file."""
    return {name: make_preset_file(name) for name in PRESETS}


def review(
    text: str, policy: str, *, old: str = "", user: str = "", groups: Sequence[str] = (), now: int | None = None
) -> list[Data]:
    """Return what a policy says of each write in a text: AdmissionReviews, or manifests.

    `old` has the stored objects that bare manifests update, `user` and `groups` write them. `now` is in microseconds
    since 1970. Raises PolicyError for the policy, and InputError for a text that has nothing to evaluate.
    """
    in_force = parse(policy)
    if len(text) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES} characters: open it as a file, and see Check")
    writer = make_user_info(user, groups) if user else None
    with TemporaryDirectory() as folder:
        new_path, old_path = (Path(folder) / name for name in ("object", "old"))
        new_path.write_text(text, encoding="utf-8", errors="surrogatepass")
        old_path.write_text(old, encoding="utf-8", errors="surrogatepass")
        items = _read_for_check(new_path)[:MAX_DOCUMENTS]
        replaced = _read_for_check(old_path) if old.strip() else []
        if broken := next((one for one in replaced if isinstance(one, Unreadable)), None):
            raise InputError(f"the stored object: {broken.error}")
        evaluator = Evaluator([in_force], CaptureIndex(()), now, writer, Writes())
        stored_at = str(old_path) if replaced else None
        outcomes = [outcome for (outcome,) in evaluator.evaluate_all(iter(items), stored_at, None)]
    stored = {make_key(one.document): one.document for one in replaced if isinstance(one, Manifest)}
    bodies = (
        _make_review(item, stored.get(make_key(item.document)) if isinstance(item, Manifest) else None, writer)
        for item in items
    )
    found = [
        _describe(outcome, body)
        for outcome, body in zip(outcomes, bodies, strict=True)
        if not isinstance(outcome, OtherObject)
    ]
    if not found:
        raise InputError(_NOTHING)
    return found


def _read_for_check(path: Path) -> list[Submitted]:
    found: list[Submitted] = []
    for item in read_for_check([str(path)]):
        if isinstance(item, Input):
            raise InputError(_LOG)
        found.append(item)
    return found


def _make_review(item: Submitted, stored: dict[str, Any] | None, writer: Data | None) -> str:
    """Return the review as one line of JSON: as it was, or as an API server would send it for a manifest."""
    if isinstance(item, Document):
        return msgspec.json.format(item.text, indent=-1).decode()
    if isinstance(item, Manifest):
        return make_review(item.document, stored, writer).decode()
    return ""


def _describe(outcome: DocumentOutcome, body: str) -> Data:
    if not isinstance(outcome, Evaluation):
        assert isinstance(outcome, Unreadable)
        return {"error": escape(outcome.error), "line": outcome.line}
    response = msgspec.json.format(encode(outcome.verdict, outcome.request), indent=2).decode()
    shown = make_evaluation_json(outcome)
    return {
        **shown,
        "findings": [{**one, "fix": list_all_rules()[one["rule"]].texts.fix} for one in shown["findings"]],
        "subject": format_subject(outcome),
        "kubectl": "\n".join(escape(line) for line in format_as_kubectl(outcome.verdict, outcome.request).split("\n")),
        "response": response,
        "review": body,
    }
