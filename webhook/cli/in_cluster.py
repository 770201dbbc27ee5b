"""Lists leases from inside a pod, with the pod's own service account: for the CronJob, whose image has no kubectl."""

import http.client
import json
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from webhook.api.request import DECODED_VERSIONS, GROUP, Resource
from webhook.api.text import cut, escape
from webhook.cli.failure import Failure
from webhook.observations.observation import Item
from webhook.observations.reader import read

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PAGE: Final = 500
"""Objects per response: a list of all leases of a large cluster at once would be expensive for the API server."""
TIMEOUT: Final = 60
_PIECE: Final = 1024 * 1024
_LARGEST: Final = 256 * 1024 * 1024


def objects(notes: list[str], *, namespace: str = "", with_pods: bool = False) -> Iterator[Item]:
    """Leases, candidates in the newest version that is served, and pods and nodes if wanted; raises Failure.

    Args:
        notes: gets a line for each optional part that may not be read.
        namespace: one namespace; "" for all.
        with_pods: pods and nodes too.

    """
    server = _Server()
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    yield from server.list(f"/apis/{GROUP}/v1{place}/leases")
    if with_pods:
        yield from server.list(f"/api/v1{place}/pods")
        yield from server.list("/api/v1/nodes")
    for version in DECODED_VERSIONS[Resource.LEASECANDIDATES]:
        try:
            yield from server.list(f"/apis/{GROUP}/{version}{place}/leasecandidates")
        except _RefusedError as refused:
            if refused.status == http.client.NOT_FOUND:
                continue  # not served in this version, or not at all
            notes.append(f"candidates were not read: {refused}")
        return


class _RefusedError(Failure):
    def __init__(self, status: int, path: str) -> None:
        super().__init__(f"the API server returned {status} for {path}")
        self.status = status


class _Server:
    """The API server as a pod sees it."""

    def __init__(self) -> None:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise Failure("--in-cluster works in a pod only: KUBERNETES_SERVICE_HOST is not set")
        try:
            context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
            self._token = (ACCOUNT / "token").read_text().strip()
            self._connection = http.client.HTTPSConnection(host, int(port), timeout=TIMEOUT, context=context)
        except (OSError, ValueError) as error:
            raise Failure(f"the pod's service account cannot be used: {error}") from error

    def list(self, path: str) -> Iterator[Item]:
        """The objects of a list, page by page."""
        following = ""
        while True:
            body = self._get(f"{path}?limit={PAGE}{f'&continue={quote(following)}' if following else ''}", path)
            yield from read(path, (body[start : start + _PIECE] for start in range(0, len(body), _PIECE)))
            try:
                following = json.loads(body)["metadata"].get("continue", "")
            except (ValueError, KeyError, AttributeError, RecursionError):
                raise Failure(f"the API server did not return a list for {path}") from None
            if not following:
                return

    def _get(self, target: str, path: str) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        try:
            self._connection.request("GET", target, headers=headers)
            answer = self._connection.getresponse()
            body = answer.read(_LARGEST)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise Failure(f"the API server cannot be reached: {escape(cut(str(error)))}") from error
        if answer.status != http.client.OK:
            raise _RefusedError(answer.status, path)
        return body
