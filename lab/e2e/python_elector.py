"""Electors of the official Python client, with threads: one in each namespace. They run in a virtual environment.

Arguments: KUBECONFIG NAMESPACE[,NAMESPACE...] LEASE IDENTITY DURATION DEADLINE RETRY
As in its own example, what `run` raises ends the process.
"""

import json
import os
import sys
import threading
import traceback
from datetime import UTC, datetime

from kubernetes import config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock


def elect(namespace: str, lease: str, identity: str, times: list[int]) -> None:
    """Run elections forever: a lost lead is followed by the next try."""

    def report(event: str) -> None:
        now = datetime.now(UTC).isoformat()
        print(json.dumps({"time": now, "namespace": namespace, "identity": identity, "event": event}), flush=True)

    def lead() -> None:
        report("started")
        threading.Event().wait()

    try:
        while True:
            lock = LeaseLock(lease, namespace, identity)
            settings = electionconfig.Config(lock, *times, lead, lambda: report("stopped"))
            leaderelection.LeaderElection(settings).run()
    except Exception:  # noqa: BLE001 - whatever it is, the process ends as the example does
        traceback.print_exc()
        os._exit(1)


def main() -> None:
    """Run all electors until the process ends."""
    kubeconfig, namespaces, lease, identity, *times = sys.argv[1:]
    config.load_kube_config(config_file=kubeconfig)
    seconds = [int(value) for value in times]
    for namespace in namespaces.split(","):
        threading.Thread(target=elect, args=(namespace, lease, identity, seconds)).start()


main()
