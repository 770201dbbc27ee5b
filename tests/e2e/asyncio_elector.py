"""One kubernetes_asyncio elector with a LeaseLock. It runs in a virtual environment of its own, without the webhook.

Arguments: KUBECONFIG NAMESPACE LEASE IDENTITY DURATION DEADLINE RETRY
"""

import asyncio
import json
import sys
from datetime import UTC, datetime

from kubernetes_asyncio import client, config
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock


async def main() -> None:
    """Elect for ever: a lost lead is followed by the next try."""
    kubeconfig, namespace, lease, identity, *times = sys.argv[1:]
    duration, deadline, retry = (int(value) for value in times)

    def say(event: str) -> None:
        now = datetime.now(UTC).isoformat()
        line = {"time": now, "namespace": namespace, "identity": identity, "event": event}
        print(json.dumps(line), flush=True)

    async def lead() -> None:
        say("started")
        await asyncio.Event().wait()

    async def stop() -> None:
        say("stopped")

    await config.load_kube_config(config_file=kubeconfig)
    async with client.ApiClient() as api:
        while True:
            lock = LeaseLock(lease, namespace, identity, api)
            await LeaderElection(Config(lock, duration, deadline, retry, lead, stop)).run()


asyncio.run(main())
