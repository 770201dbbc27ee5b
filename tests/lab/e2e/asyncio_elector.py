"""kubernetes_asyncio electors with a LeaseLock, one in each namespace. They run in a virtual environment of their own.

Arguments: KUBECONFIG NAMESPACE[,NAMESPACE...] LEASE IDENTITY DURATION DEADLINE RETRY
CLOCK_AHEAD_SECONDS in the environment makes the clock wrong from which the electors take the times of the lease.
"""

import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime

from kubernetes_asyncio import client, config
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock


async def elect(namespace: str, lease: str, identity: str, times: list[int]) -> None:
    """Elect for ever: a lost lead is followed by the next try."""

    def say(event: str) -> None:
        now = datetime.now(UTC).isoformat()
        print(json.dumps({"time": now, "namespace": namespace, "identity": identity, "event": event}), flush=True)

    async def lead() -> None:
        say("started")
        await asyncio.Event().wait()

    async def stop() -> None:
        say("stopped")

    async with client.ApiClient() as api:
        while True:
            lock = LeaseLock(lease, namespace, identity, api)
            await LeaderElection(Config(lock, *times, lead, stop)).run()


async def main() -> None:
    """Run all electors until the process ends."""
    kubeconfig, namespaces, lease, identity, *times = sys.argv[1:]
    await config.load_kube_config(config_file=kubeconfig)
    seconds = [int(value) for value in times]
    await asyncio.gather(*(elect(namespace, lease, identity, seconds) for namespace in namespaces.split(",")))


_ahead, _right = float(os.environ.get("CLOCK_AHEAD_SECONDS", "0")), time.time
if _ahead:
    time.time = lambda: _right() + _ahead
asyncio.run(main())
