"""Electors of asyncio with a LeaseLock, one in each namespace. They run in a virtual environment of their own.

Arguments: KUBECONFIG NAMESPACE[,NAMESPACE...] LEASE IDENTITY DURATION DEADLINE RETRY
ASYNCIO_PACKAGE in the environment names the package: kubernetes_asyncio, or kubernetes.aio of the official client.
CLOCK_AHEAD_SECONDS makes the clock wrong from which the electors take the times of the lease, and CLOCK_WHOLE_SECONDS
makes it one without fractions. With CREATE_NOTHING kubernetes.aio has to create the lease itself.
"""

import asyncio
import importlib
import json
import os
import sys
import time
from datetime import UTC, datetime
from typing import Any

_PACKAGE = os.environ.get("ASYNCIO_PACKAGE", "kubernetes_asyncio")
client, config, electionconfig, leaderelection, leaselock = (
    importlib.import_module(f"{_PACKAGE}.{name}")
    for name in (
        *("client", "config", "leaderelection.electionconfig"),
        *("leaderelection.leaderelection", "leaderelection.resourcelock.leaselock"),
    )
)


async def create(api: Any, namespace: str, lease: str) -> None:
    """Create the lease, because kubernetes.aio 37.0.2 cannot: docs/upstream/python-asyncio.md."""
    metadata, spec = client.V1ObjectMeta(name=lease), client.V1LeaseSpec(lease_duration_seconds=1)
    try:
        await client.CoordinationV1Api(api).create_namespaced_lease(
            namespace, client.V1Lease(metadata=metadata, spec=spec)
        )
    except client.ApiException as error:
        if error.status != 409:
            raise


async def elect(namespace: str, lease: str, identity: str, times: list[int]) -> None:
    """Run elections forever: a lost lead is followed by the next try."""

    def report(event: str) -> None:
        now = datetime.now(UTC).isoformat()
        print(json.dumps({"time": now, "namespace": namespace, "identity": identity, "event": event}), flush=True)

    async def lead() -> None:
        report("started")
        await asyncio.Event().wait()

    async def stop() -> None:
        report("stopped")

    async with client.ApiClient() as api:
        if _PACKAGE == "kubernetes.aio" and "CREATE_NOTHING" not in os.environ:
            await create(api, namespace, lease)
        while True:
            lock = leaselock.LeaseLock(lease, namespace, identity, api)
            await leaderelection.LeaderElection(electionconfig.Config(lock, *times, lead, stop)).run()


async def main() -> None:
    """Run all electors until the process ends."""
    kubeconfig, namespaces, lease, identity, *times = sys.argv[1:]
    await config.load_kube_config(config_file=kubeconfig)
    seconds = [int(value) for value in times]
    await asyncio.gather(*(elect(namespace, lease, identity, seconds) for namespace in namespaces.split(",")))


_ahead, _right = float(os.environ.get("CLOCK_AHEAD_SECONDS", "0")), time.time
if _ahead:
    time.time = lambda: _right() + _ahead
if os.environ.get("CLOCK_WHOLE_SECONDS"):
    time.time = lambda: float(int(_right()))
asyncio.run(main())
