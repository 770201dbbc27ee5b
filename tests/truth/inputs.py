"""What the commands read of a history: a watch, an audit log at each level, a list, a record, and parts of these."""

import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tests.factories import Document
from tests.inputs.reading import read
from tests.truth.plans import NAMESPACE, SUFFIX
from tests.truth.records import History, Process, Request, State
from tests.truth.servers import GROUP, RESOURCES
from tests.truth.stage import MILLISECOND
from webhook.analysis.inputs.items import Item, Observation
from webhook.analysis.live.recorder import Condenser
from webhook.kubernetes.times import format_micro_time, format_time

POLICY: Final = f"apiVersion: lease-webhook/v1\nstamps:\n- suffix: {SUFFIX}\n  namespaces: [{NAMESPACE}]\n"
"""The policy file of stamped histories."""


class Kind(StrEnum):
    """What is read."""

    WATCH = "watch"
    LATE_WATCH = "watch that begins late"
    LOG = "audit log"
    METADATA = "audit log at Metadata"
    MIXED = "audit log at mixed levels"
    NO_FIELDS = "audit log without managedFields"
    THREE = "audit log in a file for each API server"
    HOLE = "audit log with a hole"
    LATE_LOG = "audit log that begins late"
    LIST = "list"
    PLAIN_LIST = "list without managedFields"
    RECORD = "record"
    BROKEN_RECORD = "record with a gap"
    BOTH = "audit log and watch"
    SENT = "audit log at Request and watch"
    ASKED = "audit log at Request"
    PATCHES = "audit log with patches at Request and watch"
    WATCH_WITH_POLICY = "watch, --policy"
    LOG_WITH_POLICY = "audit log, --policy"
    RECORD_WITH_POLICY = "record, --policy"
    LIST_WITH_POLICY = "list, --policy"


WITH_POLICY: Final = {
    Kind.WATCH_WITH_POLICY: Kind.WATCH,
    Kind.LOG_WITH_POLICY: Kind.LOG,
    Kind.RECORD_WITH_POLICY: Kind.RECORD,
    Kind.LIST_WITH_POLICY: Kind.LIST,
}
LISTS: Final = {Kind.LIST, Kind.PLAIN_LIST, Kind.LIST_WITH_POLICY}
LOGS: Final = {
    Kind.LOG,
    Kind.METADATA,
    Kind.MIXED,
    Kind.NO_FIELDS,
    Kind.THREE,
    Kind.HOLE,
    Kind.LATE_LOG,
    Kind.BOTH,
    Kind.SENT,
    Kind.ASKED,
    Kind.PATCHES,
    Kind.LOG_WITH_POLICY,
}


class Input(Struct, frozen=True):
    """Files by name; `shown` are the times of the history that they show, by true time."""

    kind: Kind
    files: dict[str, bytes]
    has_policy: bool = False
    now: int | None = None
    shown: tuple[tuple[int, int], ...] = ()
    last: int = 0
    """The true time of the last thing that it shows."""

    def shows(self, at: int) -> bool:
        """Return whether what happened then is in the input."""
        return any(begin <= at <= end for begin, end in self.shown)


def input_of(history: History, kind: Kind) -> Input | None:
    """Return one input made of a history; None where it cannot be made."""
    if kind in WITH_POLICY:
        plain = input_of(history, WITH_POLICY[kind]) if history.plan.is_stamped else None
        return plain and replace(plain, kind=kind, has_policy=True)
    files = _MAKERS[kind](history)
    now = history.end if kind in LISTS else None
    if not files:
        return None
    given = Input(kind, files, now=now, shown=_list_shown(history, kind))
    return replace(given, last=_last(history, given))


def _last(history: History, given: Input) -> int:
    if given.kind in LISTS:
        return history.end
    if given.kind in LOGS:
        moments = [one.answered for one in history.requests]
    else:
        moments = [one.stored_at for one in history.stores if one.stored_at and one.kind == "Lease"]
    listed = _late(history) if given.kind is Kind.LATE_WATCH else history.begin
    listed = _hole(history)[1] if given.kind is Kind.BROKEN_RECORD else listed
    return max([listed, *(at for at in moments if given.shows(at))])


def _list_shown(history: History, kind: Kind) -> tuple[tuple[int, int], ...]:
    begin, end = history.begin, history.end
    if kind in LISTS:
        return ((end, end),)
    if kind in (Kind.HOLE, Kind.BROKEN_RECORD):
        first, last = _hole(history)
        return ((begin, first), (last, end))
    return ((_late(history) if kind in (Kind.LATE_WATCH, Kind.LATE_LOG) else begin, end),)


def _late(history: History) -> int:
    return min(history.begin + history.plan.late * MILLISECOND, history.end)


def _hole(history: History) -> tuple[int, int]:
    begin, end = (min(history.begin + at * MILLISECOND, history.end) for at in history.plan.hole)
    return begin, end


def _log_in_files(history: History) -> dict[str, bytes]:
    """The log of each API server, where there are several."""
    count = len(history.plan.offsets)
    parts = {number: _log(one for one in history.requests if one.server == number) for number in range(count)}
    return {f"audit-{number}.log": part for number, part in parts.items() if part} if count > 1 else {}


def _whole(_: Request) -> str:
    return "RequestResponse"


def _metadata(_: Request) -> str:
    return "Metadata"


def _sent(request: Request) -> str:
    return "Metadata" if request.verb in ("get", "list") else "Request"


def _patches(request: Request) -> str:
    return "Request" if request.verb == "patch" else "Metadata"


def _choose_level(request: Request) -> str:
    """Return the level by a policy that keeps reads short, and of persons what they asked for."""
    if request.verb in ("get", "list"):
        return "Metadata"
    return "RequestResponse" if request.uid or request.user is None else "Request"


def _log_with_hole(history: History) -> dict[str, bytes]:
    begin, end = _hole(history)
    return {"audit.log": _log(one for one in history.requests if not begin <= one.answered < end)}


# ---- a watch, and what a recorder keeps of it -----------------------------------------------------------------------


def _changes(history: History, begin: int, end: int, *, has_fields: bool = True) -> Iterator[bytes]:
    """Yield the events of a watch of all leases."""

    def text_of(state: State) -> bytes:
        return state.text if has_fields else _drop_fields(state.text)

    known = {key: state for key, state in _states(history, begin).items() if key[0] == "Lease"}
    yield from (_event("ADDED", text_of(state)) for _, state in sorted(known.items()))
    for request in history.stores:
        assert request.stored_at is not None
        if request.kind != "Lease" or not begin < request.stored_at <= end:
            continue
        if request.after is None:
            assert request.before is not None
            yield _event("DELETED", text_of(request.before))
        else:
            yield _event("MODIFIED" if request.before else "ADDED", text_of(request.after))


def _event(change: str, text: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (change.encode(), text)


def _watch(history: History, begin: int, *, has_fields: bool = True) -> bytes:
    return b"".join(_changes(history, begin, history.end, has_fields=has_fields))


def _states(history: History, at: int) -> dict[tuple[str, str, str], State]:
    states: dict[tuple[str, str, str], State] = {}
    for request in history.stores:
        assert request.stored_at is not None
        if request.stored_at > at:
            break
        if request.after is None:
            states.pop(request.key, None)
        else:
            states[request.key] = request.after
    return states


def _record(history: History, gap: tuple[int, int] | None) -> dict[str, bytes]:
    condenser = Condenser()
    lines: list[bytes] = []
    _take(condenser, _changes(history, history.begin, gap[0] if gap else history.end), lines)
    if gap:
        reason = "the recorder did not run, or could not write"
        start, end = (format_time(at) for at in gap)
        lines.append(_event("GAP", json.dumps({"from": start, "to": end, "reason": reason}).encode()))
        there = {key[1:] for key in _states(history, gap[1]) if key[0] == "Lease"}
        gone = sorted(condenser.get_names("Lease") - there)
        before = _states(history, gap[0])
        _take(condenser, (_event("DELETED", before["Lease", *key].text) for key in gone), lines)
        _take(condenser, _changes(history, gap[1], history.end), lines)
    return {"leases-000000000000001.jsonl": b"".join(lines), "latest.jsonl": b"".join(condenser.make_snapshot())}


def _take(condenser: Condenser, events: Iterable[bytes], lines: list[bytes]) -> None:
    for item in _items("watch.json", b"".join(events)):
        if isinstance(item, Observation):
            lines.extend(condenser.observe(item))


def _items(name: str, data: bytes) -> Iterator[Item]:
    return read(name, [data])


# ---- a list ---------------------------------------------------------------------------------------------------------


def _list(history: History, *, has_fields: bool) -> bytes:
    items = [json.loads(state.text) for _, state in sorted(_states(history, history.end).items())]
    if not has_fields:
        for item in items:
            item["metadata"].pop("managedFields", None)
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}, indent=4).encode()


# ---- an audit log ---------------------------------------------------------------------------------------------------


def _log(requests: Iterable[Request], level_of: Callable[[Request], str] = _whole, *, has_fields: bool = True) -> bytes:
    ordered = sorted(requests, key=lambda request: (request.answered_clock, request.number))
    return b"".join(_write_event(one, level_of(one), has_fields) for one in ordered)


@cache
def _user(name: str, groups: tuple[str, ...], pod: str, uid: str) -> bytes:
    token = "authentication.kubernetes.io"
    user: Document = {"username": name, "groups": list(groups)}
    if uid:
        user["extra"] = {f"{token}/pod-name": [pod], f"{token}/pod-uid": [uid]}
    return json.dumps(user, separators=(",", ":")).encode()


def pod_of(process: Process) -> str:
    """Return the pod that the API server knows of a process."""
    return process.pod if process.uid else ""


def _locate(request: Request) -> tuple[str, Document]:
    """Return the URI of a request, and its objectRef."""
    resource = RESOURCES[request.kind]
    path = f"/apis/{GROUP}/v1/namespaces/{request.namespace}/{resource}"
    query = "?dryRun=All" if request.is_dry_run else ""
    uri = f"{path}{query}" if request.verb == "create" else f"{path}/{request.name}{query}"
    version = "v1" if request.kind == "Lease" else "v1beta1"
    reference: Document = {"resource": resource, "namespace": request.namespace, "name": request.name}
    if request.verb == "update" and request.before is not None:
        reference["uid"] = request.before.uid
    reference |= {"apiGroup": GROUP, "apiVersion": version}
    if request.replaces:
        reference["resourceVersion"] = request.replaces
    return uri, reference


def _locate_pod(request: Request) -> tuple[str, Document]:
    """Return the same of a deletion or an eviction; clients send options, and so dry runs, in the body."""
    below = "/eviction" if request.verb == "create" else ""
    uri = f"/api/v1/namespaces/{request.namespace}/pods/{request.name}{below}"
    reference: Document = {"resource": RESOURCES["Pod"], "namespace": request.namespace, "name": request.name}
    return uri, reference | {"apiVersion": "v1"} | ({"subresource": "eviction"} if below else {})


def _write_event(request: Request, level: str, has_fields: bool) -> bytes:
    uri, reference = _locate_pod(request) if request.kind == "Pod" else _locate(request)
    status: Document = {"metadata": {}, "code": request.code}
    refused = request.refused
    if refused:
        status |= {"status": "Failure", "message": refused.message, "reason": refused.reason}
    head: Document = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level,
        "auditID": f"00000000-0000-4000-8000-{request.number:012}",
        "stage": "ResponseComplete" if request.user else "ResponseStarted",
        "requestURI": uri,
        "verb": request.verb,
    }
    source: Document = {
        "sourceIPs": [request.address],
        "userAgent": request.agent,
        "objectRef": reference,
        "responseStatus": status,
    }
    tail: Document = {
        "requestReceivedTimestamp": format_micro_time(request.received_clock),
        "stageTimestamp": format_micro_time(request.answered_clock),
    }
    parts = [_inner(head), b'"user":%s' % _user_of(request), _inner(source)]
    if level != "Metadata" and request.user is not None:
        objects = [*_objects(request, status, has_fields)]
        parts += [one for one in objects if level == "RequestResponse" or one.startswith(b'"requestObject"')]
    if mutated := _mutations(request, level):
        tail["annotations"] = mutated
    parts.append(_inner(tail))
    return b"{%s}\n" % b",".join(parts)


def _mutations(request: Request, level: str) -> Document:
    """Return the annotations of a write that a webhook changed: an API server logs those; a policy leaves none.

    A log without the answers does not show what a policy changed, so that no claim can be true of it.
    """
    body, state = request.body, request.after
    if body is None or state is None or state.lease is None:
        return {}
    if request.number % 2 and level == "RequestResponse":
        return {}
    asked, stored = body["spec"], json.loads(state.text)["spec"]
    if request.verb == "patch" and request.before is not None:
        asked = {**json.loads(request.before.text)["spec"], **asked}
    changed = [name for name, value in stored.items() if asked.get(name) != value]
    webhook = {"configuration": "defaults", "webhook": "defaults.vendor.example"}
    key = "webhook.admission.k8s.io/round_0_index_0"
    patch = [{"op": "replace", "path": f"/spec/{name}", "value": stored[name]} for name in changed]
    if not changed:
        return {}
    noted = {f"mutation.{key}": json.dumps({**webhook, "mutated": True}, separators=(",", ":"))}
    # An API server logs the patch of a webhook at level Request and above.
    if level != "Metadata":
        noted[f"patch.{key}"] = json.dumps({**webhook, "patch": patch, "patchType": "JSONPatch"})
    return noted


def _user_of(request: Request) -> bytes:
    user = request.user
    if user is None:
        return b"{}"
    return _user(user.name, user.groups, request.pod, request.uid)


def _objects(request: Request, status: Document, has_fields: bool) -> Iterator[bytes]:
    if request.body is not None:
        body: Any = request.body
        if not has_fields and "metadata" in body:
            body = {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "managedFields"}}
        yield b'"requestObject":%s' % json.dumps(body, separators=(",", ":")).encode()
    if request.kind == "Pod" and request.verb == "delete" and not request.refused:
        pod = {"metadata": {"name": request.name, "namespace": request.namespace, "uid": request.pod_uid}}
        yield b'"responseObject":%s' % json.dumps({"kind": "Pod", "apiVersion": "v1", **pod}).encode()
        return
    if request.refused or request.verb == "delete" or request.after is None:
        answer: Document = {"kind": "Status", "apiVersion": "v1", **status}
        if request.verb == "delete" and not request.refused and request.before is not None:
            answer["details"] = {"name": request.name, "uid": request.before.uid}
        yield b'"responseObject":%s' % json.dumps(answer, separators=(",", ":")).encode()
        return
    text = request.after.text
    yield b'"responseObject":%s' % (text if has_fields else _drop_fields(text))


def _drop_fields(text: bytes) -> bytes:
    """Return an object in JSON without its managedFields."""
    document = json.loads(text)
    document["metadata"].pop("managedFields", None)
    return json.dumps(document, separators=(",", ":")).encode()


def _inner(document: Document) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()[1:-1]


_Maker = Callable[[History], dict[str, bytes]]
_MAKERS: Final[dict[Kind, _Maker]] = {
    Kind.WATCH: lambda history: {"watch.json": _watch(history, history.begin)},
    Kind.LATE_WATCH: lambda history: {"watch.json": _watch(history, _late(history))},
    Kind.LOG: lambda history: {"audit.log": _log(history.requests)},
    Kind.METADATA: lambda history: {"audit.log": _log(history.requests, _metadata)},
    Kind.MIXED: lambda history: {"audit.log": _log(history.requests, _choose_level)},
    Kind.NO_FIELDS: lambda history: {"audit.log": _log(history.requests, has_fields=False)},
    Kind.THREE: _log_in_files,
    Kind.HOLE: _log_with_hole,
    Kind.LATE_LOG: lambda history: {
        "audit.log": _log(one for one in history.requests if one.answered >= _late(history))
    },
    Kind.LIST: lambda history: {"list.json": _list(history, has_fields=True)},
    Kind.PLAIN_LIST: lambda history: {"list.json": _list(history, has_fields=False)},
    Kind.RECORD: lambda history: _record(history, None),
    Kind.BROKEN_RECORD: lambda history: _record(history, _hole(history)),
    Kind.BOTH: lambda history: {"audit.log": _log(history.requests), "watch.json": _watch(history, history.begin)},
    # Without the answers, a log does not show what a webhook stored instead, nor in which order the clocks of several
    # API servers date what was stored.
    Kind.ASKED: lambda history: (
        {}
        if any(_mutations(one, "Request") for one in history.requests)
        or len({one.server for one in history.requests}) > 1
        else {"audit.log": _log(history.requests, _sent)}
    ),
    Kind.SENT: lambda history: {
        "audit.log": _log(history.requests, _sent),
        "watch.json": _watch(history, history.begin),
    },
    # kubectl shows no managedFields unless it is asked to.
    Kind.PATCHES: lambda history: {
        "audit.log": _log(history.requests, _patches),
        "watch.json": _watch(history, history.begin, has_fields=history.plan.seed % 2 == 0),
    },
}
