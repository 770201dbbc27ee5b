"""Incidents recorded on real API servers as histories, so that the same predicates evaluate what is claimed of them.

The truth of writes is the audit log at RequestResponse, which has every request; that of leaders is what the clients
themselves noted each 100 ms (`truth.json` beside it). What made a holder silent is in words
there, so causes are not evaluated.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tests.factories import Document
from tests.model.api_server import Lease, Spec, User
from tests.truth.evaluation import CLAIMING, Evaluated, evaluate
from tests.truth.inputs import Input, Kind
from tests.truth.plans import Plan, Role
from tests.truth.records import END, History, Process, Refusal, Request, Span, State
from webhook.cli.options import parse_moment

_DATA: Final = Path(__file__).parents[1] / "data"
FOLDERS: Final = (_DATA / "measured-incidents", _DATA / "further-incidents")
LOG, WATCH, LIST, PLAIN_LIST = "audit.jsonl.gz", "watch.jsonl.gz", "dump.json.gz", "dump-plain.json.gz"
FILES: Final = {Kind.LOG: (LOG,), Kind.WATCH: (WATCH,), Kind.BOTH: (LOG, WATCH), Kind.LIST: (LIST,)}
_POD: Final = "authentication.kubernetes.io/pod-name"
_UID: Final = "authentication.kubernetes.io/pod-uid"
_CAUSES: Final = ("cause", "causes")
_PERSONS: Final = ("admin", "alice", "system:apiserver")
UNKNOWN: Final = frozenset(
    {
        "holder-clock",
        "lease-without-stamps",
        "renewal-stamp-tampered",
        "abandoned",
        "holder-pod-deleted",
        "related-write",
    }
)
"""Claims about what the truth of an incident does not have."""


def names() -> list[str]:
    """Return the incidents that have a log and a truth."""
    return sorted(path.name for folder in FOLDERS for path in folder.iterdir() if (path / LOG).exists())


def _folder(name: str) -> Path:
    return next(folder / name for folder in FOLDERS if (folder / name).is_dir())


@cache
def history_of(name: str) -> History:
    """Return what happened in an incident."""
    return _Reading(name).history()


def evaluate_incident(name: str, kind: Kind) -> Iterator[Evaluated]:
    """Yield what the commands claim of the lease of an incident, with its truth."""
    history = history_of(name)
    folder = _folder(name)
    files = {file: (folder / file).read_bytes() for file in FILES[kind] if (folder / file).exists()}
    if not files:
        return
    is_list = kind is Kind.LIST
    if is_list:
        items = json.loads(gzip.decompress(files[LIST]))["items"]
        history = _cut_history(history, items)
    elif kind is Kind.WATCH:
        changes = map(json.loads, gzip.decompress(files[WATCH]).splitlines())
        history = _cut_history(history, [one["object"] for one in changes if one["type"] != "BOOKMARK"])
    given = Input(kind, files, now=history.end if is_list else None, shown=((history.begin, history.end),))
    truth = _truth(name)
    for evaluated in evaluate(history, replace(given, last=_last(history, kind)), CLAIMING, without=_CAUSES):
        if evaluated.id not in UNKNOWN and evaluated.lease in ("", f"{truth['namespace']}/{truth['lease']}"):
            yield evaluated


def _cut_history(history: History, states: Sequence[Document]) -> History:
    """Return a history without what was written after the last state that an input shows."""
    newest = max(int(one["metadata"]["resourceVersion"]) for one in states)
    kept = (one for one in history.requests if not one.stored_at or one.after is None or one.after.revision <= newest)
    return replace(history, requests=tuple(kept))


def _last(history: History, kind: Kind) -> int:
    if kind is Kind.LIST:
        return history.end
    return max(one.answered for one in history.requests if one.stored_at or kind is not Kind.WATCH)


@cache
def _truth(name: str) -> Document:
    document: Document = json.loads((_folder(name) / "truth.json").read_text())
    return document


class _Reading:
    """One incident being read."""

    def __init__(self, name: str) -> None:
        self._truth = _truth(name)
        lines = gzip.decompress((_folder(name) / LOG).read_bytes()).splitlines()
        self._events = [event for event in map(json.loads, lines) if _is_of_an_election(event)]
        pods = {one["pod"] for one in self._truth["processes"]}
        self._has_pods = any(_extra(event, _POD) in pods for event in self._events)
        self._processes: dict[tuple[str, str, str], Process] = {}
        self._states: dict[tuple[str, str, str], State] = {}
        self._failed: dict[tuple[str, str, str], int] = {}
        """Return the time at which the last failed write was received, as far as the API server answered."""

    def history(self) -> History:
        requests = [self._request(event, key) for event in self._events for key in self._keys(event)]
        requests = [replace(one, number=number) for number, one in enumerate(requests)]
        begin = min(one.received for one in requests)
        end = parse_moment(self._truth["recorded_until"])
        self._work()
        return History(
            plan=Plan(seed=0, length=(end - begin) // 1000),
            begin=begin,
            end=max(end, *(one.answered for one in requests)),
            processes=tuple(self._processes.values()),
            requests=tuple(sorted(requests, key=lambda request: (request.answered, request.number))),
        )

    def _keys(self, event: Document) -> list[tuple[str, str, str]]:
        """Return what a request is about: one object, or all that a collection has when it is deleted."""
        reference = event["objectRef"]
        kind = "Lease" if reference["resource"] == "leases" else "LeaseCandidate"
        namespace = reference.get("namespace", "")
        if event["verb"] == "deletecollection":
            return [key for key in self._states if key[:2] == (kind, namespace)]
        return [(kind, namespace, reference.get("name") or _name_in(event))]

    def _request(self, event: Document, key: tuple[str, str, str]) -> Request:
        code = event["responseStatus"].get("code", 0)
        received, answered = (parse_moment(event[name]) for name in ("requestReceivedTimestamp", "stageTimestamp"))
        is_write = event["verb"] not in ("get", "list", "watch")
        is_dry_run = "dryRun=All" in event["requestURI"] or bool((event.get("requestObject") or {}).get("dryRun"))
        is_stored = is_write and 200 <= code < 300 and not is_dry_run
        before = self._states.get(key)
        after = before
        if is_stored:
            after = None if event["verb"].startswith("delete") else _state(key, event.get("responseObject"))
            if after is None:
                self._states.pop(key, None)
            else:
                self._states[key] = after
        is_changed = is_stored and (before is None or after is None or before.revision != after.revision)
        if is_write and code >= 500:
            self._failed[key] = received
        if is_changed and after and str(after.revision) == event["objectRef"].get("resourceVersion"):
            received = self._failed.get(key, received)  # it changes nothing: the one that failed was stored
        process = self._process(event)
        return Request(
            number=0,
            process=process.name,
            server=0,
            verb=event["verb"],
            kind=key[0],
            namespace=key[1],
            name=key[2],
            received=received,
            answered=answered,
            received_clock=received,
            answered_clock=answered,
            user=process.user if code != 401 else None,
            pod=process.pod,
            uid=process.uid,
            address=process.address,
            agent=process.agent,
            code=code,
            refused=_refusal(event["responseStatus"], code) if code >= 400 else None,
            body=event.get("requestObject"),
            before=before,
            after=after,
            stored_at=answered if is_changed else None,
        )

    def _process(self, event: Document) -> Process:
        who = event.get("impersonatedUser") or event["user"]
        user, pod, uid = who.get("username", ""), _extra(event, _POD), _extra(event, _UID)
        identity = self._identity_of(user, pod, event)
        key = (user, uid or pod, identity)
        if key not in self._processes:
            if user == "system:apiserver":
                role = Role.API_SERVER
            else:
                role = Role.ELECTOR if identity else Role.TOOL
            groups = tuple(who.get("groups", ()))
            self._processes[key] = Process(
                name=" ".join(key),
                role=role,
                user=User(user, groups, uid),
                pod=pod,
                uid=uid,
                identity=identity,
                lease=f"{self._truth['namespace']}/{self._truth['lease']}" if identity else "",
                manager=_manager(event),
                address=(event.get("sourceIPs") or [""])[0],
                agent=event.get("userAgent", ""),
                alive=(Span(0, END),),
            )
        elif "fieldManager=" in event.get("requestURI", ""):
            self._processes[key] = replace(self._processes[key], manager=_manager(event))
        return self._processes[key]

    def _identity_of(self, user: str, pod: str, event: Document) -> str:
        """Return the identity of a process: one of its pod's, by what it writes into a lease where it has several."""
        everyone = self._truth["processes"]
        own = [one["id"] for one in everyone if one["pod"] == pod] if pod else [one["id"] for one in everyone]
        spec = (event.get("requestObject") or {}).get("spec") or {}
        holder = spec.get("holderIdentity", "") if isinstance(spec, dict) else ""
        if pod:
            if holder in own or (not own and holder.startswith(pod)):
                return str(holder)
            return str(own[0]) if own else pod
        is_own = holder in own or (holder and user.endswith(holder))
        return holder if is_own and user not in _PERSONS and not self._has_pods else ""

    def _work(self) -> None:
        """Add to each process when it worked; of two of one pod, the one that is known by then."""
        for acting in self._truth["processes"]:
            own = [(key, process) for key, process in self._processes.items() if process.identity == acting["id"]]
            if own:
                key, process = own[0]
                spans = tuple(
                    Span(parse_moment(begin), parse_moment(end) if end else END) for begin, end in acting["acted"]
                )
                self._processes[key] = replace(process, works=spans)


def _is_of_an_election(event: Document) -> bool:
    reference = event.get("objectRef") or {}
    is_ours = reference.get("resource") in ("leases", "leasecandidates") and event.get("verb") not in ("list", "watch")
    is_answered = event.get("stage") == "ResponseComplete" or event.get("responseStatus", {}).get("code") == 401
    return is_ours and is_answered and "responseStatus" in event


def _extra(event: Document, key: str) -> str:
    who = event.get("impersonatedUser") or event["user"]
    return str((who.get("extra") or {}).get(key, [""])[0])


def _name_in(event: Document) -> str:
    for key in ("responseObject", "requestObject"):
        document = event.get(key)
        if isinstance(document, dict) and document.get("metadata", {}).get("name"):
            return str(document["metadata"]["name"])
    return ""


def _manager(event: Document) -> str:
    uri, agent = event.get("requestURI", ""), event.get("userAgent", "")
    if "fieldManager=" in uri:
        return str(uri.split("fieldManager=")[1].split("&")[0])
    return str(agent.split("/")[0])


def _refusal(status: Document, code: int) -> Refusal:
    message = status.get("message", "")
    by = {401: "authentication", 404: "not found", 409: "conflict", 429: "priority and fairness"}.get(code)
    if by is None and code >= 500:
        by = "webhook failure" if "webhook" in message else "API server"
    if by is None:
        if "ValidatingAdmissionPolicy" in message:
            by = "policy"
        elif "webhook" in message:
            by = "webhook"
        else:
            by = "RBAC" if code == 403 else "validation"
    return Refusal(code, by, message)


def _state(key: tuple[str, str, str], document: Any) -> State | None:
    if not isinstance(document, dict) or "spec" not in document:
        return None
    revision = int(document["metadata"]["resourceVersion"])
    spec = document["spec"]
    text = json.dumps(document).encode()
    if key[0] != "Lease":
        return State(key, document["metadata"]["uid"], revision, text)
    stored = Spec(
        holder=spec.get("holderIdentity"),
        duration=spec.get("leaseDurationSeconds"),
        acquired=_instant(spec.get("acquireTime")),
        renewed=_instant(spec.get("renewTime")),
        transitions=spec.get("leaseTransitions"),
        strategy=spec.get("strategy"),
        preferred=spec.get("preferredHolder"),
    )
    return State(key, document["metadata"]["uid"], revision, text, Lease(stored, name=key[2], namespace=key[1]))


def _instant(text: str | None) -> int | None:
    return None if text is None else parse_moment(text)
