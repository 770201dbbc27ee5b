"""Evaluates each document, and each write of a history, by each policy, with the rules that `serve` uses."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import Policy
from webhook.admission.rules.change import make_change
from webhook.admission.rules.expiry import BOUND, find_latest_stamp_of_writer
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.stamps import find_stamp, is_constant
from webhook.admission.verdict import Cause, Outcome, Verdict
from webhook.analysis.history.audit_log.observed_requests import Writes
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.documents import Document, Value
from webhook.analysis.inputs.files import CaptureIndex, read_for_check
from webhook.analysis.inputs.items import Input, Item, Observation, OtherObject, Place, Unreadable
from webhook.analysis.inputs.kinds import Manifest, Submitted
from webhook.analysis.inputs.lines import NOWHERE, Source
from webhook.cli.checking.manifests import Key, UnknownField, find_unknown_fields, make_key, make_review
from webhook.cli.terminal import Failure
from webhook.kubernetes.field import not_supported
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import GROUP, KIND_OF, VERSIONS_OF, AdmissionRequest, Operation
from webhook.kubernetes.review import decode


class Evaluation(Struct, frozen=True):
    """A document with its verdict by a policy; `is_past`: it was sent to an API server once.

    `unknown` are fields of a manifest.
    """

    place: Place
    request: AdmissionRequest
    verdict: Verdict
    policy: Policy
    is_past: bool = True
    source: Source = NOWHERE
    unknown: tuple[UnknownField, ...] = ()

    @property
    def level(self) -> Mode:
        """DENY, WARN or OFF: whether it is denied, admitted with warnings, or just admitted."""
        return _LEVELS[self.word]

    @property
    def word(self) -> Outcome:
        """`denied`, `warned` or `allowed`: the outcome of the verdict, except that an unknown field is a warning."""
        outcome = self.verdict.outcome
        return "warned" if outcome == "allowed" and self.unknown else outcome

    @property
    def subject(self) -> str:
        """`Lease shop/checkout`."""
        name = "/".join(filter(None, (self.request.namespace, self.request.name)))
        return f"{self.request.kind} {name}".strip()

    @property
    def line(self) -> int:
        """The line on which the document begins, of a review its object; 0 if it is not known."""
        return self.source.find_line()

    def find_line(self, path: str) -> int:
        """Return the line of a field of the object, or of the nearest one around it."""
        if not self.is_past:
            return self.source.find_line(path)
        part = "oldObject" if self.request.operation is Operation.DELETE else "object"
        return self.source.find_line(f"request.{part}.{path}")


_LEVELS: Final[dict[Outcome, Mode]] = {"denied": Mode.DENY, "warned": Mode.WARN, "allowed": Mode.OFF}

DocumentOutcome = Evaluation | Unreadable | OtherObject


class Evaluator(Struct):
    """Evaluates documents by each policy; `now` is for manifests, and for reviews without a time."""

    policies: Sequence[Policy]
    received: CaptureIndex
    now: int | None
    writer: Value | None
    writes: Writes
    is_writer_missing: bool = False
    """A manifest was evaluated without its writer."""
    creations: dict[Key, None] = field(default_factory=dict)
    """The manifests of objects that are not in --old, in order."""

    def evaluate_all(
        self, items: Iterator[Submitted | Input], old: str | None, history: Iterable[Item] | None
    ) -> Iterator[list[DocumentOutcome]]:
        """Yield what each policy says of each document, and then of each write of a history, in order."""
        replaced = [*read_for_check([old])] if old else []
        if any(isinstance(one, Input) for one in replaced):
            raise Failure("--old is what is stored at one moment: it takes no log and no watch")
        stored = (
            {make_key(one.document): one.document for one in replaced if isinstance(one, Manifest)} if old else None
        )
        broken = [one for one in replaced if isinstance(one, Unreadable)]
        for unreadable in (*self.received.unreadable, *broken):
            yield [unreadable] * len(self.policies)
        if broken:
            # An update evaluated as if it were a creation could look harmless.
            return
        logs: list[Input] = []
        for document in items:
            if isinstance(document, Input):
                logs.append(document)
            elif isinstance(document, Document | Manifest):
                yield [self._evaluate_document(document, stored, policy) for policy in self.policies]
            else:
                yield [document] * len(self.policies)
        for item in Merged(logs, time.time_ns() // 1000 + BOUND) if history is None else history:
            if isinstance(item, Unreadable | OtherObject):
                yield [item] * len(self.policies)
            elif isinstance(item, Observation) and (request := self.writes.make_request(item)):
                yield [
                    _evaluate_request(item.place, request, policy, item.at, writer_known=item.user is not None)
                    for policy in self.policies
                ]

    def _find_stored(self, document: Value, stored: Mapping[Key, Value] | None) -> Value | None:
        """Return what is stored of a manifest's object, None if it is created; `stored` is None without --old."""
        if stored is None:
            return None
        key = make_key(document)
        # An API server chooses the name of an object that has none, which is a creation in any case.
        if key not in stored and key[-1]:
            self.creations[key] = None
        return stored.get(key)

    def _evaluate_document(
        self, item: Document | Manifest, stored: Mapping[Key, Value] | None, policy: Policy
    ) -> DocumentOutcome:
        try:
            if isinstance(item, Document):
                at = self.now if self.now is not None else self.received.find_moment(item.place.path)
                found = _evaluate_request(item.place, decode(item.text), policy, at, writer_known=True)
                return replace(found, source=item.source)
            self.is_writer_missing = self.is_writer_missing or self.writer is None
            body = make_review(item.document, self._find_stored(item.document, stored), self.writer)
            found = _evaluate_request(item.place, decode(body), policy, self.now, writer_known=self.writer is not None)
            return replace(found, is_past=False, source=item.source, unknown=find_unknown_fields(item.document))
        except (ReviewError, ValueError) as error:
            return Unreadable(item.place, str(error), line=item.source.find_line())
        except RecursionError:
            return Unreadable(item.place, "nested too deeply", line=item.source.find_line())


def _evaluate_request(
    place: Place, request: AdmissionRequest, policy: Policy, now: int | None, *, writer_known: bool
) -> Evaluation:
    """Evaluate one write as `serve` would: by the same rules, to the same verdict.

    `now` is in microseconds since 1970; None takes the latest time that an API server stamped into the request, else
    the clock. Without `writer_known` the rules about the writer are left out.
    """
    at = _date_request(request, policy) if now is None else now
    verdict = evaluate(request, policy, at, writer_known=writer_known)
    is_unknown_version = request.group == GROUP and request.resource in KIND_OF and not request.is_ours
    if policy.mode is Mode.DENY and is_unknown_version:
        verdict = _deny_version(request, verdict)
    return Evaluation(place, request, verdict, policy)


def _date_request(request: AdmissionRequest, policy: Policy) -> int:
    """Return when an API server received the write, as far as it shows; a stamp of the future is a forged one.

    The constant entry of stamped leases is of no time; the stamp is, where the policy says that there are some.
    """
    clock = time.time_ns() // 1000
    change = make_change(request, clock)
    stamps = policy.stamps.get(request.namespace)
    for entries, stored in ((change.new_entries, request.new), (change.old_entries, request.old)):
        if stamps and stored and (found := find_stamp(stamps, stored.metadata.annotations, entries)) and found.written:
            return min(found.written, clock)
    if not is_constant(change.new_entries):
        written_at = find_latest_stamp_of_writer(change.set_fields.find_owners(change.new_entries))
        if written_at is not None:
            return written_at
    for entries in (change.new_entries, change.old_entries):
        dated = () if is_constant(entries) else entries
        stamp = max((at for entry in dated if (at := entry.stamp) is not None and at <= clock), default=None)
        if stamp is not None:
            return stamp
    return clock


def _deny_version(request: AdmissionRequest, verdict: Verdict) -> Verdict:
    """Deny an unknown version, which `serve` admits: a typo in its configuration must not stop a cluster."""
    known = tuple(f"{GROUP}/{version}" for version in VERSIONS_OF[request.resource])
    error = not_supported("apiVersion", f"{GROUP}/{request.version}", known)
    text = f"{error.body} (lease webhook)"
    cause = Cause(error.type.value, text, error.field)
    message = f"{error.field}: {text}"
    return replace(verdict, allowed=False, code=422, reason="Invalid", message=message, causes=(cause,), warnings=())
