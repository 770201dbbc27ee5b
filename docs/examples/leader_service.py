"""Label the pod that holds a lease, so that a Service can select it. Needs `pip install kubernetes`, and one replica.

    python leader_service.py shop checkout app=checkout

It may list and patch pods, and watch the lease. Read docs/leader-service.md first: two pods may carry the label for a
moment, or none, so what must never run twice still needs a fence.
"""

import sys
from datetime import UTC, datetime, timedelta

LABEL = "example.com/leader"


def holder_of(lease, now):
    """Return the identity that holds the lease; "" if it is free or has expired. `lease` is a V1Lease."""
    spec = lease.spec
    if not spec.holder_identity or spec.renew_time is None:
        return ""
    lasts = timedelta(seconds=spec.lease_duration_seconds or 0)
    return spec.holder_identity if now < spec.renew_time + lasts else ""


def is_held_by(pod_name, holder):
    """Return whether a holder names the pod: client-go's hosts are `POD_UUID`, others write the name alone."""
    return holder == pod_name or holder.startswith(f"{pod_name}_")


def changes(pods, holder):
    """Yield (pod name, label or None) for each pod whose label is wrong: those that lose it first, then the leader.

    `pods` are pairs of a name and its labels.
    """
    wanted = {name: "true" if is_held_by(name, holder) else None for name, _ in pods}
    wrong = [(name, wanted[name]) for name, labels in pods if (labels or {}).get(LABEL) != wanted[name]]
    yield from sorted(wrong, key=lambda change: change[1] is not None)


def main(namespace, name, selector):
    """Reconcile each time the lease changes, and once when it has expired."""
    from kubernetes import client, config, watch

    config.load_config()
    leases, core = client.CoordinationV1Api(), client.CoreV1Api()
    while True:
        # Ends after a few seconds: then an expired holder loses its label, although nothing has changed.
        selected = f"metadata.name={name}"
        for event in watch.Watch().stream(
            leases.list_namespaced_lease, namespace, field_selector=selected, timeout_seconds=5
        ):
            is_gone = event["type"] == "DELETED"
            holder = "" if is_gone else holder_of(event["object"], datetime.now(UTC))
            pods = core.list_namespaced_pod(namespace, label_selector=selector).items
            for pod, value in changes([(pod.metadata.name, pod.metadata.labels) for pod in pods], holder):
                core.patch_namespaced_pod(pod, namespace, {"metadata": {"labels": {LABEL: value}}})


if __name__ == "__main__":
    main(*sys.argv[1:4])
