"""`lease-webhook check`: evaluates manifests, reviews and histories as the webhook would, by one policy or two.

A bare manifest is evaluated as the AdmissionReview that an API server would send for it. A verdict is some lines for
people, or one line of JSON.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click
from msgspec import Struct, field
from msgspec.structs import replace

from webhook.api.field import not_supported
from webhook.api.request import GROUP, KIND_OF, VERSIONS_OF, AdmissionRequest
from webhook.api.review import ReviewError, decode
from webhook.api.text import escape, truncate
from webhook.claims.words import count
from webhook.cli.options import Command, files, format_option, moment, policy_option
from webhook.cli.reading import cluster_options, everywhere, observed, skipped_text
from webhook.cli.terminal import Failure, indent, json_line, print_message, style, table, width
from webhook.evaluate import evaluate
from webhook.history.merge import Merged
from webhook.history.writes import Writes
from webhook.inputs.cluster import Cluster
from webhook.inputs.documents import Document, Value, encoded
from webhook.inputs.files import Received, submitted
from webhook.inputs.items import STANDARD_INPUT, Foreign, Input, Item, Observation, Place, Unreadable
from webhook.inputs.kinds import Manifest, Submitted
from webhook.policy.model import Policy
from webhook.policy_file import load
from webhook.rules.change import change_made_by
from webhook.rules.election.renewal_stamp import stamp_of_writer
from webhook.rules.expiry import BOUND
from webhook.rules.rule import Mode
from webhook.verdict import Cause, Result, Verdict

Counts = Counter[tuple[str, Mode]]
"""The number of documents with a finding of each rule, by mode."""

_UNREADABLE: Final = 2
_DENIED: Final = 1

_WORDS: Final = {Mode.DENY: ("denied", "red"), Mode.WARN: ("warned", "yellow"), Mode.OFF: ("allowed", "green")}
"""For a verdict and its color."""
_MARGIN: Final = 11
_DEFAULT_NAMESPACE: Final = "default"
"""The namespace of a manifest that names no namespace."""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_STORED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Fields that a manifest leaves out and the API server fills in from the stored object."""

Key = tuple[str, str, str]

_DESCRIPTION = """\
Evaluates what it is given as the webhook would, before a webhook is installed or a policy changed. A PATH is a file, a
directory or - for standard input, and contains manifests of Leases and LeaseCandidates, an audit log at level
RequestResponse, a watch, or AdmissionReviews that were captured. Other kinds are skipped and counted. Without a PATH,
kubectl lists the leases of the cluster, with your own credentials.

A manifest is evaluated as a creation, or as an update of the object of its name in --old, which compares whole
objects: a field that the manifest leaves out counts as removed. Without a namespace it goes to "default". Rules
about the writer are evaluated only with --user.

Each write of a log, a watch or a recording is evaluated at its own moment, against what was stored before it; it is
counted instead where the input does not show that. Of these, text shows what is denied or warned about; with --against,
what the second policy would change.
"""

_EPILOG = """\
Exit codes:
  0  nothing is denied (with --against: nothing newly denied)
  1  something is denied (with --against: newly denied)
  2  something could not be read, too little found (--require), or wrong usage

Examples:
  lease-webhook check lease.yaml
  lease-webhook check --ignore charts deploy
  lease-webhook check --old live.yaml --user system:node:worker-1 lease.yaml
  lease-webhook check --policy strict --all-logs /var/log/kubernetes/audit/*.log
  lease-webhook check --policy standard --against strict captured
  kubectl lease check --policy strict
"""

_OLD = "what is stored now; bare manifests are evaluated as updates of it"
_IGNORE = "leave out what matches, by name or by path below a directory; may be repeated"
_SKIP = "skip files that are not Kubernetes objects even if they are named, for a list of changed files"
_NOW = "evaluate manifests at this time; else at the latest time in managedFields, else now"
_ALL_LOGS = "the audit logs are those of all API servers, whole: evaluate patches and deletions in them too"
_REQUIRE = "fail if fewer than N are evaluated; 1 unless given, 0 with --skip-foreign"
_UNKNOWN = "not evaluated, as the input does not show what they changed: {}; docs/check.md says what does"
_NOT_WHOLE = "; if these are the whole audit logs of all API servers, --all-logs evaluates more"
_CHANGES = ("newly denied", "newly warned", "no longer denied", "no longer warned", "other rules")
"""The changes that another policy makes to the outcome of a write, the worst first."""


@click.command("check", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="[PATH]...", nargs=-1, shell_complete=files)
@click.option("--old", metavar="PATH", help=_OLD, shell_complete=files)
@click.option("--ignore", metavar="GLOB", multiple=True, help=_IGNORE)
@click.option("--skip-foreign", is_flag=True, help=_SKIP)
@click.option("--require", metavar="N", type=click.IntRange(0), help=_REQUIRE)
@policy_option("observe, standard (default), strict, or a policy file")
@policy_option("the policy to compare with: show what it would change", "--against")
@click.option("--all-logs", is_flag=True, help=_ALL_LOGS)
@click.option("--user", metavar="NAME", help="who writes the bare manifests")
@click.option("--group", "groups", metavar="G", multiple=True, help="a group of --user; may be repeated")
@click.option("--now", type=moment, metavar="RFC3339", help=_NOW)
@cluster_options
@format_option("json prints one line per document")
def command(
    *,
    paths: tuple[str, ...],
    old: str | None,
    ignore: tuple[str, ...],
    skip_foreign: bool,
    require: int | None,
    policy: str | None,
    against: str | None,
    all_logs: bool,
    user: str | None,
    groups: tuple[str, ...],
    now: int | None,
    cluster: Cluster,
    output: str,
) -> int:
    if groups and not user:
        raise Failure("--group needs --user: a group alone writes nothing")
    if paths and cluster.namespace:
        raise Failure("--namespace is for the cluster: what a PATH has is evaluated whole")
    first = load(policy)
    policies = [first] if against is None else [first, load(against)]
    names = [policy or first.preset] if against is None else [policy or first.preset, against]
    received = Received([path for path in paths if path != STANDARD_INPUT])
    # Of a recording, which has an index, every file counts.
    items = submitted(paths, ignore, skip_found=not received.moments, skip_named=skip_foreign)
    history = None if paths else observed((), everywhere(cluster))
    evaluator = _Evaluator(policies, received, now, user_info(user, groups) if user else None, Writes(all_logs))
    outcomes = evaluator.outcomes(items, old, history)
    code, evaluated = (_show if against is None else _compare)(outcomes, names, output, evaluator.writes)
    if unknown := evaluator.writes.unknown:
        print_message(_UNKNOWN.format(count(unknown, "write")) + ("" if all_logs else _NOT_WHOLE))
    least = require if require is not None else int(not skip_foreign)
    if evaluated < least and code != _UNREADABLE:
        raise Failure(f"{evaluated} evaluated, and at least {least} must be: --require {evaluated} lets that pass")
    return code


class Evaluation(Struct, frozen=True):
    """A document with its verdict; `is_past`: it was sent to an API server once."""

    place: Place
    request: AdmissionRequest
    verdict: Verdict
    is_past: bool = True

    @property
    def level(self) -> Mode:
        """DENY, WARN or OFF: whether it is denied, admitted with warnings, or just admitted."""
        return Mode.DENY if not self.verdict.allowed else Mode.WARN if self.verdict.warnings else Mode.OFF


Outcome = Evaluation | Unreadable | Foreign


class _Evaluator(Struct):
    """Evaluates documents by each policy; `now` is for manifests, and for reviews without a time."""

    policies: Sequence[Policy]
    received: Received
    now: int | None
    writer: Value | None
    writes: Writes

    def outcomes(
        self, items: Iterator[Submitted | Input], old: str | None, history: Iterable[Item] | None
    ) -> Iterator[list[Outcome]]:
        """Yield what each policy says of each document, and then of each write of a history, in order."""
        replaced = [*submitted([old])] if old else []
        if any(isinstance(one, Input) for one in replaced):
            raise Failure("--old is what is stored at one moment: it takes no log and no watch")
        stored = {key_of(one.document): one.document for one in replaced if isinstance(one, Manifest)}
        broken = [one for one in replaced if isinstance(one, Unreadable)]
        for unreadable in (*self.received.unreadable, *broken):
            yield [unreadable] * len(self.policies)
        if broken:
            # An update evaluated as if it were a creation could look harmless.
            return
        logs: list[Input] = []
        for one in items:
            if isinstance(one, Input):
                logs.append(one)
            elif isinstance(one, Document | Manifest):
                yield [self._evaluated(one, stored, policy) for policy in self.policies]
            else:
                yield [one] * len(self.policies)
        for item in Merged(logs, time.time_ns() // 1000 + BOUND) if history is None else history:
            if isinstance(item, Unreadable | Foreign):
                yield [item] * len(self.policies)
            elif isinstance(item, Observation) and (request := self.writes.request(item)):
                yield [
                    _evaluated(item.place, request, policy, item.at, writer_known=item.user is not None)
                    for policy in self.policies
                ]

    def _evaluated(self, item: Document | Manifest, stored: Mapping[Key, Value], policy: Policy) -> Outcome:
        try:
            if isinstance(item, Document):
                at = self.now if self.now is not None else self.received.of(item.place.path)
                return _evaluated(item.place, decode(item.text), policy, at, writer_known=True)
            body = review_of(item.document, stored.get(key_of(item.document)), self.writer)
            found = _evaluated(item.place, decode(body), policy, self.now, writer_known=self.writer is not None)
            return replace(found, is_past=False)
        except (ReviewError, ValueError) as error:
            return Unreadable(item.place, str(error))
        except RecursionError:
            return Unreadable(item.place, "nested too deeply")


def _evaluated(
    place: Place, request: AdmissionRequest, policy: Policy, now: int | None, *, writer_known: bool
) -> Evaluation:
    """Evaluate one write as `serve` would: by the same rules, to the same verdict.

    `now` is in microseconds since 1970; None takes the latest time that an API server stamped into the request, else
    the clock. Without `writer_known` the rules about the writer are left out.
    """
    at = _received_at(request) if now is None else now
    verdict = evaluate(request, policy, at, writer_known=writer_known)
    is_unknown_version = request.group == GROUP and request.resource in KIND_OF and not request.is_ours
    if policy.mode is Mode.DENY and is_unknown_version:
        verdict = _deny_version(request, verdict)
    return Evaluation(place, request, verdict)


def _received_at(request: AdmissionRequest) -> int:
    """Return when an API server received the write, as far as it shows; a stamp of the future is a forged one."""
    clock = time.time_ns() // 1000
    change = change_made_by(request, clock)
    written_at = stamp_of_writer(change.was_set.owners_among(change.new_entries))
    if written_at is not None:
        return written_at
    for entries in (change.new_entries, change.old_entries):
        stamp = max((at for entry in entries if (at := entry.stamp) is not None and at <= clock), default=None)
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


def _show(outcomes: Iterator[list[Outcome]], names: Sequence[str], output: str, writes: Writes) -> tuple[int, int]:
    """Print what one policy says, and return the exit code and the number of documents that were evaluated."""
    tally, rules = _Tally(), Counts()
    for (outcome,) in outcomes:
        tally.count(outcome)
        is_shown = True
        if isinstance(outcome, Evaluation) and outcome.is_past:
            rules.update(_rules_and_modes(outcome))
            # As text, among thousands of writes, only those that are denied or warned about.
            is_shown = output != "text" or outcome.level > Mode.AUDIT
        if is_shown:
            _print(outcome, output)
    _finish(output, [*_counts([(names[0], rules)]), *tally.lines(writes.unknown)], tally)
    code = _UNREADABLE if tally.unreadable else _DENIED if tally.levels[Mode.DENY] else 0
    return code, tally.levels.total()


def _compare(outcomes: Iterator[list[Outcome]], names: Sequence[str], output: str, writes: Writes) -> tuple[int, int]:
    """Print what the second policy would change, and return the same."""
    tally, changes = _Tally(), Counter[str]()
    counts = (Counts(), Counts())
    for before, after in outcomes:
        tally.count(before)
        if not isinstance(before, Evaluation) or not isinstance(after, Evaluation):
            _print(before, output)
            continue
        change = _change(before, after)
        changes[change] += 1
        for counter, outcome in zip(counts, (before, after), strict=True):
            counter.update(_rules_and_modes(outcome))
        if output == "json":
            print(json_line({**_as_json(before), "against": _as_json(after), "change": change}))
        elif change:
            _print(after, output, change)
    summary = ", ".join(f"{changes[change]} {change}" for change in _CHANGES if changes[change])
    total = f"{count(changes.total(), 'write')}, {names[0]} against {names[1]}: {summary or 'no change'}"
    total += f"; {writes.unknown} not evaluated" if writes.unknown else ""
    _finish(output, [*_counts(list(zip(names, counts, strict=True))), total])
    code = _UNREADABLE if tally.unreadable else _DENIED if changes[_CHANGES[0]] else 0
    return code, changes.total()


def _change(before: Evaluation, after: Evaluation) -> str:
    """Return the change in words, "" for none."""
    old, new = before.level, after.level
    if new != old:
        return f"newly {_WORDS[new][0]}" if new > old else f"no longer {_WORDS[old][0]}"
    return "" if _seen_by_writer(before) == _seen_by_writer(after) else "other rules"


def _rules_and_modes(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    return {(finding.rule, finding.mode) for finding in evaluation.verdict.findings}


def _seen_by_writer(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    """Return what the writer is shown; audit findings are for the log only."""
    return {(rule, mode) for rule, mode in _rules_and_modes(evaluation) if mode > Mode.AUDIT}


def _counts(columns: list[tuple[str, Counts]]) -> list[str]:
    """Return how many writes each rule denies, warns about or notes; of several columns, where they differ."""
    rules = sorted({rule for _, counter in columns for rule, _ in counter})
    rows = [(rule, *(_count(counter, rule) for _, counter in columns)) for rule in rules]
    shown = [row for row in rows if len(columns) == 1 or len(set(row[1:])) > 1]
    return ["", *table([("rule", *(name for name, _ in columns)), *shown]), ""] if shown else []


def _count(counter: Counts, rule: str) -> str:
    found = (f"{counter[rule, mode]} {mode.word}" for mode in (Mode.DENY, Mode.WARN, Mode.AUDIT) if counter[rule, mode])
    return ", ".join(found) or "-"


class _Tally(Struct):
    """The counts of a run; `skipped` counts objects of other kinds."""

    levels: Counter[Mode] = field(default_factory=Counter)
    unreadable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    denying_rule: str = ""

    def count(self, outcome: Outcome) -> None:
        """Add one document."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
        elif isinstance(outcome, Foreign):
            self.skipped[outcome.kind] += 1
        else:
            self.levels[outcome.level] += 1
            self.denying_rule = self.denying_rule or next((one.rule for one in _denying(outcome)), "")

    def lines(self, unknown: int) -> Iterator[str]:
        """Yield the summary, with the number of writes that were not evaluated, and where to read on."""
        counts = ((Mode.DENY, "denied"), (Mode.WARN, "allowed with warnings"), (Mode.OFF, "allowed"))
        found = ", ".join(f"{self.levels[level]} {word}" for level, word in counts if self.levels[level])
        evaluated = self.levels.total()
        text = f"{evaluated} evaluated{f': {found}' if found else ''}"
        text += f"; {self.unreadable} unreadable" if self.unreadable else ""
        text += f"; {unknown} not evaluated" if unknown else ""
        text += f"; {skipped_text(self.skipped)}" if self.skipped else ""
        if not evaluated and not self.unreadable:
            text += ": no Lease, LeaseCandidate or AdmissionReview here can be"
        yield text
        if self.denying_rule:
            yield f"Why a rule exists: lease-webhook rules {self.denying_rule}"


def _print(outcome: Outcome, output: str, label: str = "") -> None:
    """Print an outcome as text or JSON; in text, `label` replaces the word for the verdict."""
    if isinstance(outcome, Foreign):
        return
    for line in [json_line(_as_json(outcome))] if output == "json" else _lines(outcome, label):
        print(line)


def _finish(output: str, lines: Iterable[str], tally: _Tally | None = None) -> None:
    """Print these lines at the end of text; with a format for programs, name on standard error what was skipped."""
    if output == "text":
        for line in lines:
            print(line)
    elif tally and tally.skipped:
        print_message(skipped_text(tally.skipped))


def _denying(evaluation: Evaluation) -> list[Result]:
    return [finding for finding in evaluation.verdict.findings if finding.mode is Mode.DENY]


def _lines(outcome: Evaluation | Unreadable, label: str) -> list[str]:
    where = escape(outcome.place.short)
    if isinstance(outcome, Unreadable):
        return [f"{style('unreadable', fg='red')} {where}", *_wrapped([escape(outcome.error)], _MARGIN)]
    word, color = _WORDS[outcome.level]
    margin = max(_MARGIN, len(label) + 2)
    head = style((label or word).ljust(margin), fg=color) + style(where, bold=True)
    subject = _subject(outcome)
    if margin + len(where) + len("  ") + len(subject) <= width():
        lines = [f"{head}  {style(subject, dim=True)}"]
    else:
        lines = [head, *(style(line, dim=True) for line in _wrapped([subject], margin))]
    return lines + _wrapped(_reasons(outcome), margin)


def _subject(evaluation: Evaluation) -> str:
    """Return what was evaluated: `Lease shop/checkout, takeover`."""
    request = evaluation.request
    name = "/".join(filter(None, (request.namespace, request.name)))
    event = evaluation.verdict.event or request.operation.lower()
    return ", ".join(filter(None, (escape(truncate(f"{request.kind} {name}".strip())), event)))


def _reasons(evaluation: Evaluation) -> Iterable[str]:
    verdict = evaluation.verdict
    found = _denying(evaluation)
    yield from (f"{finding.rule}: {finding.error}" for finding in found)
    if not verdict.allowed and not found:
        yield verdict.message
    yield from (f"warning: {warning}" for warning in verdict.warnings)


def _wrapped(texts: Iterable[str], margin: int) -> list[str]:
    columns = width()
    return [line for text in texts for line in indent(text, margin, columns).splitlines()]


def _as_json(evaluation: Evaluation | Unreadable) -> dict[str, Any]:
    """Return the document and its verdict, or why it could not be read, as a JSON object."""
    if isinstance(evaluation, Unreadable):
        return {"source": str(evaluation.place), "error": evaluation.error}
    request, verdict = evaluation.request, evaluation.verdict
    return {
        "source": str(evaluation.place),
        "uid": request.uid,
        "apiVersion": "/".join(filter(None, (request.group, request.version))),
        "kind": request.kind,
        "operation": request.operation.value,
        "event": verdict.event,
        "namespace": request.namespace,
        "name": request.name,
        "user": request.user.username if request.user else "",
        "allowed": verdict.allowed,
        "code": verdict.code,
        "reason": verdict.reason,
        "message": verdict.message,
        "causes": verdict.causes,
        "warnings": verdict.warnings,
        "auditAnnotations": dict(verdict.audit_annotations),
        "findings": [
            {
                "rule": one.rule,
                "mode": one.mode.word,
                "type": one.error.type.value,
                "field": one.error.field,
                "value": truncate(one.error.value) if isinstance(one.error.value, str) else one.error.value,
                "detail": one.error.detail,
            }
            for one in verdict.findings
        ],
    }


def user_info(name: str, groups: Sequence[str] = ()) -> Value:
    """Return `request.userInfo` of the writer of a manifest, with the groups that every authenticator adds."""
    found = [*groups]
    if name.startswith(_SERVICE_ACCOUNT):
        namespace = name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
        found += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    if name.startswith("system:node:"):
        found.append("system:nodes")
    return {"username": name, "groups": list(dict.fromkeys([*found, "system:authenticated"]))}


def key_of(document: Value) -> Key:
    """Return (kind, namespace, name) of the stored object that a manifest is about."""
    metadata = _mapping(document, "metadata")
    return (str(document["kind"]), str(metadata.get("namespace") or _DEFAULT_NAMESPACE), str(metadata.get("name", "")))


def review_of(new: Value, old: Value | None, writer: Value | None) -> bytes:
    """Return the review of creating `new`, or of updating `old` to it; `writer` is its userInfo.

    Raises ValueError if the manifest is larger than any API server would take.
    """
    version, kind = str(new["apiVersion"]).partition("/")[2], str(new["kind"])
    _, namespace, name = key_of(new)
    new = _with(new, "namespace", _DEFAULT_NAMESPACE)
    if old is not None:
        # What is stored has a resourceVersion; a manifest that was written by hand may have none, and is as good.
        revision = _mapping(new, "metadata").get("resourceVersion") or "1"
        old = _with(_with(old, "namespace", _DEFAULT_NAMESPACE), "resourceVersion", revision)
        old = old | {"apiVersion": new["apiVersion"]}
    request: Value = {
        "uid": "manifest",
        "kind": {"group": GROUP, "version": version, "kind": kind},
        "resource": {"group": GROUP, "version": version, "resource": f"{kind.lower()}s"},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": namespace,
        "name": name,
        "object": new if old is None else _stored(new, old),
        "oldObject": old,
    }
    if writer:
        request["userInfo"] = writer
    return encoded({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _mapping(value: object, field: str) -> Value:
    """Return a field of a mapping that is a mapping itself; an empty one for anything else."""
    found = value.get(field) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _with(document: Value, field: str, value: object) -> Value:
    """Return the document with a field of metadata that it lacks, if its metadata can hold one."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get(field):
        return document
    return {**document, "metadata": {**metadata, field: value}}


def _stored(new: Value, old: Value) -> Value:
    """Return `new` as the API server would store it over `old`: fields of the server's own that it leaves out stay."""
    if not isinstance(new.get("metadata"), dict):
        return new
    kept = {field: value for field, value in _mapping(old, "metadata").items() if field in _STORED}
    entries = kept.get("managedFields")
    if _holder(new) != _holder(old) and isinstance(entries, list):
        # The write moves holderIdentity to its writer's entry; the old owners' stamps say nothing about this write.
        kept["managedFields"] = [_entry_without_holder(entry) for entry in entries]
    return {**new, "metadata": kept | new["metadata"]}


def _holder(document: Value) -> object:
    return _mapping(document, "spec").get("holderIdentity") or ""


def _entry_without_holder(entry: object) -> object:
    fields = _mapping(entry, "fieldsV1")
    spec = _mapping(fields, "f:spec")
    if not isinstance(entry, dict) or not spec:
        return entry
    rest = {field: value for field, value in spec.items() if field != "f:holderIdentity"}
    return {**entry, "fieldsV1": {**fields, "f:spec": rest}}
