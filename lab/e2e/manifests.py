"""Objects that the topics write."""

import datetime as dt
from typing import Any


def format_micro_time(seconds_from_now: float = 0) -> str:
    """Return a MicroTime as the API server prints it."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds_from_now)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def make_lease(name: str, **spec: Any) -> dict[str, Any]:
    """Return a Lease that is held and was renewed now; `spec` changes single fields, None removes one."""
    fields: dict[str, Any] = {
        "holderIdentity": f"{name}-holder",
        "leaseDurationSeconds": 15,
        "acquireTime": format_micro_time(),
        "renewTime": format_micro_time(),
        "leaseTransitions": 0,
    } | spec
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def make_candidate(version: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return a LeaseCandidate of `version` (`v1beta1`); `spec` changes single fields."""
    strategy: dict[str, Any] = (
        {"preferredStrategies": ["OldestEmulationVersion"]}
        if version == "v1alpha1"
        else {"strategy": "OldestEmulationVersion"}
    )
    fields = {
        "leaseName": "sample",
        "binaryVersion": "1.36.0",
        "emulationVersion": "1.36.0",
        "renewTime": format_micro_time(),
        **strategy,
    } | spec
    return {
        "apiVersion": f"coordination.k8s.io/{version}",
        "kind": "LeaseCandidate",
        "metadata": {"name": name},
        "spec": fields,
    }
