"""What is sent: the object or patch of a step, made from the stored object as its writer read it. Pure functions."""

import copy
import datetime as dt
import json
import re
from typing import Any, Final

from tests.attacks.attack import Before, Changed, Deep, Forged, Invented, Step

Document = dict[str, Any]

HOLDERS: Final = {
    "keeper": "checkout-0_8c1",
    "successor": "checkout-1_9f2",
    "neighbor": "mallory-0_1",
    "stranger": "mallory-0_1",
    "namesake": "checkout-0_8c1",
    "shorter": "checkout_1",
    "person": "mallory_1",
    "admin": "admin_1",
}
"""The holderIdentity that each actor writes for itself."""
MANAGERS: Final = {"keeper": "checkout", "successor": "checkout", "admin": "kubectl"}
"""Names of field managers; everybody else calls itself `mallory`."""

_INSTANT: Final = re.compile(r"now(?:([+-])(\d+)([smhdy]))?")
_YEAR: Final = "year "
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
_OUTER_LEVELS: Final = 3
"""managedFields, the entry, fieldsV1."""


class Clock:
    """Instants of one write, by the writer's clock; `micros` since 1970."""

    def __init__(self, micros: int) -> None:
        self._now = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=micros)

    def moment(self, text: str) -> dt.datetime:
        """`now`, `now+1h`, or an instant written out."""
        match = _INSTANT.fullmatch(text)
        if match is None:
            return dt.datetime.fromisoformat(text)
        sign, number, unit = match.groups()
        if sign is None:
            return self._now
        distance = dt.timedelta(seconds=int(number) * _UNITS[unit])
        return self._now + distance if sign == "+" else self._now - distance

    def micro_time(self, text: str) -> str:
        """A MicroTime as the API server prints it."""
        if text.startswith(_YEAR):
            return f"{int(text.removeprefix(_YEAR)):04}-01-01T00:00:00.000000Z"
        return f"{self.moment(text):%Y-%m-%dT%H:%M:%S.%fZ}"

    def time(self, text: str) -> str:
        """An entry time: whole seconds."""
        if text.startswith(_YEAR):
            return f"{int(text.removeprefix(_YEAR)):04}-01-01T00:00:00Z"
        return f"{self.moment(text):%Y-%m-%dT%H:%M:%SZ}"


def manager_of(step: Step) -> str:
    """The fieldManager that the client names."""
    return step.manager or MANAGERS.get(step.by, "mallory")


def first_lease(before: Before, name: str, clock: Clock) -> Document:
    """The object that the keeper creates."""
    metadata: Document = {"name": name, "namespace": before.namespace}
    if before.labels:
        metadata["labels"] = dict(before.labels)
    spec = {
        "holderIdentity": HOLDERS["keeper"],
        "leaseDurationSeconds": before.duration,
        "acquireTime": clock.micro_time("now"),
        "renewTime": clock.micro_time("now"),
        "leaseTransitions": 0,
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def body_of(step: Step, stored: Document, clock: Clock) -> Document:
    """The body of a create, put, merge patch or apply.

    A put is the whole object that was read, without managedFields where none are forged: the API server then goes on
    from those that it has.
    """
    spec = _spec_of(step, stored.get("spec", {}), clock)
    metadata: Document = {"labels": step.labels} if step.labels else {}
    if step.owner_references is not None:
        metadata["ownerReferences"] = step.owner_references
    if step.finalizers is not None:
        metadata["finalizers"] = step.finalizers or None
    if step.resource_version:
        metadata["resourceVersion"] = step.resource_version
    if step.managed_fields is not None:
        metadata["managedFields"] = _forged(step.managed_fields, stored, clock)
    if step.method == "merge":
        return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}
    if step.method in ("put", "protobuf", "create"):
        whole = copy.deepcopy(stored)
        whole["metadata"].pop("managedFields", None)
        return merged(whole, {"metadata": metadata, "spec": spec})
    name = {"name": stored["metadata"]["name"], "namespace": stored["metadata"]["namespace"]}
    applied = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {**name, **metadata}}
    return applied | ({"spec": spec} if spec else {})


def _spec_of(step: Step, stored: Document, clock: Clock) -> Document:
    change: Document = {}
    if step.does == "take":
        now = clock.micro_time("now")
        change = {
            "holderIdentity": HOLDERS[step.by],
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": stored.get("leaseTransitions", 0) + 1,
        }
    elif step.does == "renew":
        change = {"renewTime": clock.micro_time("now")}
    elif step.does == "release":
        now = clock.micro_time("now")
        change = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
    elif step.does:
        raise ValueError(f"unknown change of spec: {step.does}")
    for name, value in step.spec.items():
        change[name] = clock.micro_time(value) if name.endswith("Time") and value is not None else value
    return change


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def merged(target: Document, patch: Document) -> Document:
    """Return what a merge patch makes of an object."""
    result: Document = _merged(target, patch)
    return result


def _forged(forged: Forged, stored: Document, clock: Clock) -> list[Document]:
    if forged.only is not None:
        return forged.only
    entries: list[Document] = copy.deepcopy(stored["metadata"].get("managedFields", []))
    for change in forged.change:
        entries = [
            sent
            for entry in entries
            for sent in ([_changed(entry, change, clock)] if change.manager in ("", entry["manager"]) else [entry])
            if sent
        ]
    return entries + [_invented(entry, number, clock) for entry in forged.add for number in range(entry.count)]


def _changed(entry: Document, change: Changed, clock: Clock) -> Document:
    if change.drop:
        return {}
    sent = dict(entry)
    if change.to:
        sent["manager"] = change.to
    if change.operation:
        sent["operation"] = change.operation
    if change.time == "none":
        sent.pop("time", None)
    elif change.time:
        sent["time"] = clock.time(change.time)
    fields = dict(entry["fieldsV1"])
    if "f:spec" in fields:
        fields["f:spec"] = {key: value for key, value in fields["f:spec"].items() if key not in change.without}
    sent["fieldsV1"] = _merged(fields, change.fields)
    return sent


def _invented(entry: Invented, number: int, clock: Clock) -> Document:
    text = json.dumps(entry.fields).replace("#", str(number))
    sent = {
        "manager": entry.manager.replace("#", str(number)),
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": clock.time(entry.time) if entry.time else None,
        "subresource": entry.subresource or None,
        "fieldsType": "FieldsV1",
        "fieldsV1": _padded(_deepened(json.loads(text), entry.deep) if entry.deep else json.loads(text), entry.padding),
    }
    return {key: value for key, value in sent.items() if value is not None}


def _padded(fields: Document, length: int) -> Document:
    return merged(fields, {"f:metadata": {"f:labels": {f"f:{'a' * length}": {}}}}) if length else fields


def _deepened(fields: Document, deep: Deep) -> Document:
    chain: Any = f"<deep {deep.levels - _OUTER_LEVELS - len(deep.below)}>"
    for key in reversed(deep.below):
        chain = {key: chain}
    return merged(fields, chain) if fields else dict(chain)
