"""The API servers of a history: they refuse, stamp, store and answer, each by its own clock, above one etcd.

What a write makes of a Lease and its managedFields is the model's (`tests/model`); what the API server stamps where
writers are stamped is that of `deploy/stamp`.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Final

from msgspec.structs import replace

from tests.deep_json import written_out
from tests.factories import Document
from tests.model import api_server
from tests.model.api_server import Lease, Spec, User, Write
from tests.model.managed_fields import ANCIENT_CHANGES, UPDATE
from tests.model.stamping import CONSTANT
from tests.truth.parties import Answer, Call, Party
from tests.truth.plans import NAMESPACE, SUFFIX, Fault, FaultKind, Plan
from tests.truth.pods import POD_REFUSALS, PodDeed, PodDeedKind
from tests.truth.records import Refusal, Request, State
from tests.truth.stage import MILLISECOND, SECOND, Agenda
from webhook.kubernetes.times import format_time

GROUP: Final = "coordination.k8s.io"
RESOURCES: Final = {"Lease": "leases", "LeaseCandidate": "leasecandidates", "Pod": "pods"}
POD_REQUESTS: Final = 900_000_000
"""Numbers from here on are those of requests about pods."""
_STAMPED_FIELDS: Final = ("renewed", "holder", "duration", "acquired", "transitions")
_EXEMPT_NAME: Final = "system:apiserver"
_MASTERS: Final = "system:masters"
_GUARD: Final = "lease-webhook-stamp-guard"
_ACTED_BY: Final = {
    FaultKind.WEBHOOK_REFUSES: Refusal(
        403, "webhook", 'admission webhook "leases.vendor.example" denied the request: not today', "Forbidden"
    ),
    FaultKind.WEBHOOK_FAILS: Refusal(
        500,
        "webhook failure",
        'Internal error occurred: failed calling webhook "leases.vendor.example": failed to call webhook: Post '
        '"https://vendor.tools.svc:443/?timeout=5s": dial tcp 10.96.4.4:443: connect: connection refused',
        "InternalError",
    ),
    FaultKind.FAIRNESS: Refusal(
        429, "priority and fairness", "too many requests, please try again later.", "TooManyRequests"
    ),
    FaultKind.SERVER_ERROR: Refusal(
        500, "API server", "Internal error occurred: etcdserver: leader changed", "InternalError"
    ),
}


class Servers:
    """One etcd and what stands in front of it. `active` are the faults that are in force."""

    def __init__(self, agenda: Agenda, plan: Plan) -> None:
        self.agenda = agenda
        self.offsets = tuple(offset * MILLISECOND for offset in plan.offsets)
        self.states: dict[tuple[str, str, str], State] = {}
        self.requests: list[Request] = []
        self.active: list[Fault] = []
        self.watchers: list[Callable[[State | None], None]] = []
        self._random = Random(plan.seed * 7 + 1)
        self._is_stamped = plan.is_stamped
        self._revision = 300
        self._number = 0

    # ---- which faults are in force ----

    def begin(self, fault: Fault) -> None:
        """Put a fault in force."""
        self.active.append(fault)

    def end(self, fault: Fault) -> None:
        """Take a fault away."""
        if fault in self.active:
            self.active.remove(fault)

    def _fault(self, kind: FaultKind, target: str = "") -> Fault | None:
        return next((one for one in self.active if one.kind is kind and one.target in ("", target)), None)

    def _is_down(self, server: int) -> bool:
        return (
            self._fault(FaultKind.SERVERS_DOWN) is not None
            or self._fault(FaultKind.SERVER_DOWN, str(server)) is not None
        )

    # ---- a request ----

    def ask(self, party: Party, call: Call, reply: Callable[[Answer | None], None]) -> None:
        """Send a request; the answer comes once, None if there is none within the patience of the client."""
        is_over = False

        def once(answer: Answer | None) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                reply(answer)

        now = self.agenda.now
        self.agenda.plan(now + call.patience, lambda: once(None))
        if party.is_cut:
            return
        server = self._server_of(party)
        if server is None:
            self.agenda.plan(now + self._random.randint(1, 30) * MILLISECOND, lambda: once(None))
            return
        if self._fault(FaultKind.SERVER_HANGS, str(server)):
            return
        self.agenda.plan(now + self._random.randint(300, 1500), lambda: self._receive(party, server, call, once))

    def _server_of(self, party: Party) -> int | None:
        """Return the API server of a party, which goes to the next one if its own is down."""
        for step in range(len(self.offsets)):
            server = (party.server + step) % len(self.offsets)
            if not self._is_down(server):
                return server
        return None

    def _receive(self, party: Party, server: int, call: Call, once: Callable[[Answer | None], None]) -> None:
        received = self.agenda.now
        if self._is_down(server):
            once(None)
            return
        slow = self._fault(FaultKind.SERVER_SLOW, str(server))
        delay = self._random.randint(500, 2500) + (slow.amount * SECOND if slow else 0)
        refused = self._refused_early(party, call)
        if refused:
            self._answer_later(party, server, call, once, received=received, delay=delay, refused=refused)
            return
        if call.verb in ("get", "list"):
            etcd = self._fault(FaultKind.ETCD_SLOW)
            delay += etcd.amount * SECOND if etcd else 0
            self._answer_later(party, server, call, once, received=received, delay=delay)
            return
        webhook = self._fault(FaultKind.WEBHOOK_SLOW)
        delay += webhook.amount * SECOND if webhook else 0
        self.agenda.plan(received + delay, lambda: self._admit(party, server, call, once, received=received))

    def _admit(
        self, party: Party, server: int, call: Call, once: Callable[[Answer | None], None], *, received: int
    ) -> None:
        """Stamp the time, have the write admitted, and send it to etcd."""
        now = self.agenda.now
        if self._is_down(server):
            once(None)
            return
        if now - received >= call.patience:
            late = Refusal(504, "timeout", "Timeout: request did not complete within the allotted timeout", "Timeout")
            self._answer_later(party, server, call, once, received=received, delay=MILLISECOND, refused=late)
            return
        refused = self._refused_by_admission(party, call)
        if refused:
            self._answer_later(party, server, call, once, received=received, delay=MILLISECOND, refused=refused)
            return
        etcd = self._fault(FaultKind.ETCD_SLOW)
        delay = self._random.randint(800, 3000) + (etcd.amount * SECOND if etcd else 0)
        if now + delay - received >= call.patience:
            late = Refusal(504, "timeout", "Timeout: request did not complete within the allotted timeout", "Timeout")
            rest = max(0, received + call.patience - now)
            self._answer_later(party, server, call, once, received=received, delay=rest, refused=late)
            return
        stamp = now + self.offsets[server]
        self.agenda.plan(
            now + delay, lambda: self._commit(party, server, call, once, received=received, stamp_clock=stamp)
        )

    def _commit(
        self,
        party: Party,
        server: int,
        call: Call,
        once: Callable[[Answer | None], None],
        *,
        received: int,
        stamp_clock: int,
    ) -> None:
        key = (call.kind, call.namespace, call.name)
        before = self.states.get(key)
        refused, after = self._outcome(party, call, before, stamp_clock)
        if refused:
            code = refused.code
        else:
            code = 201 if before is None else 200
        stored_at = None
        if refused is None and after is not before and not call.is_dry_run:
            stored_at = self.agenda.now
            if after is None:
                self.states.pop(key, None)
            else:
                self.states[key] = after
        request = self._request(
            party,
            server,
            call,
            received=received,
            code=code,
            refused=refused,
            before=before,
            after=after if refused is None else None,
            stored_at=stored_at,
            stamp_clock=stamp_clock,
        )
        self._finish(request, once, Answer(code, after if refused is None else before, refused))
        if stored_at is not None:
            for watcher in self.watchers:
                watcher(after)

    def _answer_later(
        self,
        party: Party,
        server: int,
        call: Call,
        once: Callable[[Answer | None], None],
        *,
        received: int,
        delay: int,
        refused: Refusal | None = None,
    ) -> None:
        def answer() -> None:
            if self._is_down(server):
                once(None)
                return
            state = self.states.get((call.kind, call.namespace, call.name))
            why = refused
            if why is None and call.verb == "get" and state is None:
                why = _missing(call)
            request = self._request(
                party, server, call, received=received, code=why.code if why else 200, refused=why, after=state
            )
            self._finish(request, once, Answer(request.code, state, why))

        self.agenda.plan(self.agenda.now + delay, answer)

    def _finish(self, request: Request, once: Callable[[Answer | None], None], answer: Answer) -> None:
        """Log the request, and let the client have the answer a moment later."""
        self.requests.append(request)
        self.agenda.plan(self.agenda.now + self._random.randint(200, 900), lambda: once(answer))

    def _request(
        self,
        party: Party,
        server: int,
        call: Call,
        *,
        received: int,
        code: int,
        refused: Refusal | None,
        before: State | None = None,
        after: State | None = None,
        stored_at: int | None = None,
        stamp_clock: int = 0,
    ) -> Request:
        self._number += 1
        is_known = not (refused and refused.by == "authentication")
        answered = self.agenda.now + self._random.randint(50, 300)
        offset = self.offsets[server]
        return Request(
            number=self._number,
            process=party.name,
            server=server,
            verb="patch" if call.verb == "apply" else call.verb,
            kind=call.kind,
            namespace=call.namespace,
            name=call.name,
            received=received,
            answered=answered,
            received_clock=received + offset,
            answered_clock=answered + offset,
            stamp_clock=stamp_clock,
            user=party.user if is_known else None,
            pod=party.pod,
            uid=party.uid,
            address=party.address,
            agent=party.agent,
            code=code,
            refused=refused,
            body=_body(call, before, stamp_clock),
            replaces=str(call.guard) if call.verb == "update" and call.guard else "",
            before=before,
            after=after,
            stored_at=stored_at,
            is_dry_run=call.is_dry_run,
        )

    def log_pod_request(self, deed: PodDeed, uid: str, number: int) -> None:
        """Log a request about a pod; what it does to the process of the pod happens elsewhere.

        It draws nothing, so that requests about leases are as they were.
        """
        server = next((one for one in range(len(self.offsets)) if not self._is_down(one)), None)
        if server is None:
            return
        received, answered = self.agenda.now, self.agenda.now + 3 * MILLISECOND
        refused = POD_REFUSALS.get(deed.kind)
        self.requests.append(
            Request(
                number=POD_REQUESTS + number,
                process=deed.user,
                server=server,
                verb="create" if deed.is_eviction else "delete",
                kind="Pod",
                namespace=deed.namespace,
                name=deed.pod,
                received=received,
                answered=answered,
                received_clock=received + self.offsets[server],
                answered_clock=answered + self.offsets[server],
                user=User(deed.user, ("system:authenticated",)),
                pod="",
                uid="",
                address="10.0.9.9",
                agent="kubectl/v1.37.1 (linux/amd64) kubernetes/$Format",
                code=refused.code if refused else 201 if deed.is_eviction else 200,
                refused=refused,
                body=deed.body,
                is_dry_run=deed.kind is PodDeedKind.DRY_RUN,
                pod_uid=uid,
            )
        )

    # ---- refusals ----

    def _refused_early(self, party: Party, call: Call) -> Refusal | None:
        """Return what refuses a request before it is read: authentication, fairness, rights."""
        account = _account_of(party.user)
        if call.has_wrong_token or party.has_bad_token:
            return Refusal(401, "authentication", "Unauthorized", "Unauthorized")
        if self._fault(FaultKind.FAIRNESS, account):
            return _ACTED_BY[FaultKind.FAIRNESS]
        is_write = call.verb not in ("get", "list")
        lacks = self._fault(FaultKind.RIGHTS, account) if is_write else self._fault(FaultKind.GET_RIGHT, account)
        if (lacks and call.kind == "Lease") or (call.verb == "delete" and party.lacks_delete):
            resource = RESOURCES[call.kind]
            text = (
                f'{resource}.{GROUP} "{call.name}" is forbidden: User "{party.user.name}" cannot {call.verb} resource '
            )
            text += f'"{resource}" in API group "{GROUP}" in the namespace "{call.namespace}"'
            return Refusal(403, "RBAC", text, "Forbidden")
        if self._fault(FaultKind.SERVER_ERROR, account):
            return _ACTED_BY[FaultKind.SERVER_ERROR]
        return None

    def _refused_by_admission(self, party: Party, call: Call) -> Refusal | None:
        account = _account_of(party.user)
        if call.kind != "Lease":
            return None
        for kind in (FaultKind.WEBHOOK_REFUSES, FaultKind.WEBHOOK_FAILS):
            if self._fault(kind, account):
                return _ACTED_BY[kind]
        if self._fault(FaultKind.POLICY_REFUSES, account):
            return Refusal(422, "policy", f"{_describe_denial(call.name, 'freeze')} no changes today", "Invalid")
        return None

    # ---- what is stored ----

    def _outcome(
        self, party: Party, call: Call, before: State | None, clock: int
    ) -> tuple[Refusal | None, State | None]:
        """Return why a write is refused, or what it leaves."""
        if call.verb == "create" and before is not None:
            text = f'{RESOURCES[call.kind]}.{GROUP} "{call.name}" already exists'
            return Refusal(409, "conflict", text, "AlreadyExists"), None
        if before is None and call.verb in ("update", "patch", "delete"):
            return _missing(call), None
        if before is not None and call.guard is not None and call.guard != before.revision:
            text = (
                f'Operation cannot be fulfilled on {RESOURCES[call.kind]}.{GROUP} "{call.name}": the object has been '
            )
            text += "modified; please apply your changes to the latest version and try again"
            return Refusal(409, "conflict", text, "Conflict"), None
        if call.is_invalid or party.is_sending_invalid:
            text = f'Lease.{GROUP} "{call.name}" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be '
            return Refusal(422, "validation", f"{text}specified for an update", "Invalid"), None
        if call.kind == "LeaseCandidate":
            return None, self._candidate_after(call, before, clock)
        return self._lease_after(party, call, before, clock)

    def _candidate_after(self, call: Call, before: State | None, clock: int) -> State | None:
        if call.verb == "delete":
            return None
        self._revision += 1
        metadata: Document = {"name": call.name, "namespace": call.namespace}
        metadata["uid"] = before.uid if before else f"c0000000-0000-4000-8000-{self._revision:012}"
        metadata["resourceVersion"] = str(self._revision)
        born = format_time(clock) if before is None else json.loads(before.text)["metadata"]["creationTimestamp"]
        metadata["creationTimestamp"] = born
        document = {
            "kind": "LeaseCandidate",
            "apiVersion": f"{GROUP}/v1beta1",
            "metadata": metadata,
            "spec": call.candidate,
        }
        key = (call.kind, call.namespace, call.name)
        return State(key, metadata["uid"], self._revision, json.dumps(document, separators=(",", ":")).encode())

    def _lease_after(
        self, party: Party, call: Call, before: State | None, clock: int
    ) -> tuple[Refusal | None, State | None]:
        old = before.lease if before else None
        exempt = party.user.name == _EXEMPT_NAME or _MASTERS in party.user.groups
        if call.verb == "delete":
            refused = None
            if self._is_stamped and call.namespace == NAMESPACE and not exempt:
                refused = _guard_of_deletion(party.user, before)
            return refused, None
        assert call.write is not None
        write = call.write(old)
        if write is None:
            return None, before
        write = self._mutate(write, clock)
        if old is None:
            new = api_server.created(write, clock, call.name, call.namespace)
        else:
            new = api_server.stored(old, write, clock)
        annotations = before.annotations if before else ()
        if call.planted:
            annotations = tuple(sorted((dict(annotations) | dict(call.planted)).items()))
        term = ""
        if self._is_stamped and call.namespace == NAMESPACE:
            new, term = _stamp(before, new, party.user, exempt=exempt)
            refused = None if exempt else _guard(party.user, before, new)
            if refused:
                return refused, None
        is_same = old is not None and before is not None and annotations == before.annotations
        if is_same and old is not None and replace(new, version=old.version) == old:
            return None, before  # what changes nothing is not stored
        self._revision += 1
        new = replace(new, version=self._revision)
        key = (call.kind, call.namespace, call.name)
        uid = before.uid if before else f"1ea5e000-0000-4000-8000-{self._revision:012}"
        is_stamped = self._is_stamped and call.namespace == NAMESPACE
        return None, state_of(key, uid, new, term=term, annotations=annotations, is_stamped=is_stamped)

    def _mutate(self, write: Write, clock: int) -> Write:
        """Return what webhooks make of a write."""
        spec, labels = write.spec, write.labels
        mutator = self._fault(FaultKind.MUTATE)
        if mutator and spec.duration:
            spec = replace(spec, duration=mutator.amount)
        if self._fault(FaultKind.MUTATE_TIMES):
            spec = replace(spec, renewed=_whole(spec.renewed), acquired=_whole(spec.acquired))
        renaming = self._fault(FaultKind.MUTATE_HOLDER)
        if renaming and spec.holder:
            spec = replace(spec, holder="cluster-leader" if renaming.amount == 1 else f"{spec.holder}.cluster-a")
        if self._fault(FaultKind.MUTATE_RENEWAL) and spec.renewed is not None:
            spec = replace(spec, renewed=spec.renewed - 300 * SECOND)
        if self._fault(FaultKind.MUTATE_LABELS) and write.operation == UPDATE:
            labels = tuple(sorted((dict(labels) | {"admitted-at": str(clock // SECOND)}).items()))
        return replace(write, spec=spec, labels=labels)


def _whole(at: int | None) -> int | None:
    return None if at is None else at // SECOND * SECOND


def state_of(
    key: tuple[str, str, str],
    uid: str,
    lease: Lease,
    *,
    term: str = "",
    annotations: tuple[tuple[str, str], ...] = (),
    is_stamped: bool = False,
) -> State:
    """Return a stored lease with its JSON."""
    document = api_server.document(replace(lease, writer=""))
    document["metadata"]["uid"] = uid
    texts = dict(annotations)
    if is_stamped:
        texts |= {
            f"lease-webhook/term-{SUFFIX}": term,
            f"lease-webhook/writer-{SUFFIX}": lease.writer,
            f"lease-webhook/written-{SUFFIX}": "" if lease.written is None else format_time(lease.written),
        }
    if texts:
        document["metadata"]["annotations"] = texts
    text = written_out(json.dumps(document, separators=(",", ":")).encode())
    return State(key, uid, lease.version, text, lease, term, annotations)


def _missing(call: Call) -> Refusal:
    return Refusal(404, "not found", f'{RESOURCES[call.kind]}.{GROUP} "{call.name}" not found', "NotFound")


def _account_of(user: User) -> str:
    return user.name.removeprefix("system:serviceaccount:")


def _body(call: Call, before: State | None, clock: int) -> Document | None:
    """Return the object of a request as it was sent."""
    if call.kind == "LeaseCandidate":
        return None if call.candidate is None else {"spec": call.candidate}
    if call.write is None:
        return None
    old = before.lease if before else None
    write = call.write(old)
    if write is None:
        return None
    if old is None or call.verb == "create":
        document = api_server.document(
            Lease(write.spec, write.labels, name=call.name, namespace=call.namespace, version=0)
        )
        del document["metadata"]["uid"]
        del document["metadata"]["creationTimestamp"]
        return document
    sent = replace(old, spec=write.spec, labels=write.labels, entries=write.entries or (), writer="")
    document = api_server.document(sent)
    document["metadata"]["uid"] = before.uid if before else ""
    return (
        document if call.verb == "update" else _patch(call, api_server.document(old)["spec"], document["spec"], clock)
    )


def _patch(call: Call, old: Document, new: Document, clock: int) -> Document:
    """Return what an apply has, or a merge patch: in one half of the seconds of what it changes alone."""
    if call.verb == "apply":
        return {"spec": new}
    removed = dict.fromkeys(old.keys() - new.keys())
    is_short = clock // SECOND % 2 == 0
    changed = {key: value for key, value in new.items() if not is_short or old.get(key) != value}
    return {"spec": {**changed, **removed}}


# ---- stamps, as in deploy/stamp -------------------------------------------------------------------------------------


def requester_of(user: User) -> str:
    """Return what is stamped when a user writes."""
    return f"{user.pod or '-'} {user.name}"


def _stamp(before: State | None, new: Lease, user: User, *, exempt: bool) -> tuple[Lease, str]:
    old = before.lease if before else None
    same_holder = old is not None and (old.spec.holder or "") == (new.spec.holder or "")
    if old is not None and before is not None and (old.spec == new.spec or (exempt and same_holder)):
        return replace(new, writer=old.writer, written=old.written, entries=(CONSTANT,)), before.term
    writer = "" if exempt else requester_of(user)
    written = _time_of(new, old.spec if old else Spec())
    if written is None and old is not None and old.writer == writer:
        written = old.written
    if old is None or before is None:
        term = ""
    elif writer != old.writer or not same_holder:
        term = str(before.revision)
    else:
        term = before.term or str(before.revision - 1)
    return replace(new, writer=writer, written=written, entries=(CONSTANT,)), term


def _time_of(new: Lease, old: Spec) -> int | None:
    changed = (name for name in _STAMPED_FIELDS if getattr(new.spec, name) not in (None, getattr(old, name)))
    field = next(changed, None)
    owners = [entry for entry in new.entries if field in entry.fields]
    return owners[0].time if len(owners) == 1 and owners[0].manager != ANCIENT_CHANGES else None


def _guard(user: User, before: State | None, new: Lease) -> Refusal | None:
    """Return why the policy lease-webhook-stamp-guard refuses an update."""
    old = before.lease if before else None
    if old is None or not old.writer or not old.spec.holder or old.writer == requester_of(user) or new.spec == old.spec:
        return None
    duration = old.spec.duration
    if new.written is not None:
        if old.written is None or duration is None:
            return None
        age = (new.written - old.written) // SECOND
        if age < -60 or 5 * age + min(10, duration) >= 5 * duration:
            return None
    pod, _, name = old.writer.partition(" ")
    held_by = f"{name} ({'no pod' if pod == '-' else f'pod uid {pod}'})"
    text = f"{_describe_denial(old.name, _GUARD)} lease is held by {held_by}, which wrote it last at "
    text += f"{format_time(old.written or 0)}; retry later (lease-webhook)"
    return Refusal(403, "stamp guard", text, "Forbidden")


def _guard_of_deletion(user: User, before: State | None) -> Refusal | None:
    old = before.lease if before else None
    if old is None or not old.writer or not old.spec.holder or old.writer == requester_of(user):
        return None
    denial = _describe_denial(old.name, _GUARD)
    text = f"{denial} lease is held; delete it after its release, or take it when it has expired and delete it then"
    return Refusal(403, "stamp guard", f"{text} (lease-webhook)", "Forbidden")


def _describe_denial(name: str, policy: str) -> str:
    head = f'leases.{GROUP} "{name}" is forbidden: ValidatingAdmissionPolicy'
    return f"{head} '{policy}' with binding '{policy}' denied request:"
