"""Runs the user's own kubectl, with its credentials, plugins and rights; no code of ours connects to a cluster."""

import io
import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, cast

from msgspec import Struct

from webhook.api.text import cut, escape
from webhook.cli.failure import Failure
from webhook.cli.observed import stream
from webhook.doctor.documents import Document
from webhook.doctor.documents import objects as objects_in
from webhook.observations.observation import Item

TIMEOUT: Final = "60s"
"""How long one request may take."""

LEASES: Final = "leases.coordination.k8s.io"
CANDIDATES: Final = "leasecandidates.coordination.k8s.io"
SHOWN: Final = ("--output=json", "--show-managed-fields")

_LONGEST_REASON: Final = 200
_NO_SUCH_KIND: Final = "the server doesn't have a resource type"


class Cluster(Struct, frozen=True):
    """Which cluster and namespace, as kubectl takes it; "" leaves it to kubectl's own configuration."""

    context: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    all_namespaces: bool = False

    @property
    def options(self) -> list[str]:
        """Options that every call needs, except a watch, which has no end."""
        return [f"--request-timeout={TIMEOUT}", *self.reach]

    @property
    def reach(self) -> list[str]:
        """Options that say which cluster."""
        words = [f"--context={self.context}"] if self.context else []
        words += [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        return words

    @property
    def place(self) -> list[str]:
        """The namespace to look in."""
        if self.all_namespaces:
            return ["--all-namespaces"]
        return [f"--namespace={self.namespace}"] if self.namespace else []


def objects(cluster: Cluster, notes: list[str], *, with_pods: bool = False) -> Iterator[Item]:
    """The leases and, if the cluster has candidates and the user may read them, those; raises Failure.

    Args:
        cluster: where.
        notes: gets a line for each optional part that could not be read.
        with_pods: pods and nodes too.

    """
    shown = [*SHOWN, "--chunk-size=500"]
    yield from _listed(cluster, LEASES, shown)
    if with_pods:
        short = ["--output=json", "--chunk-size=500"]
        yield from _listed(cluster, "pods", short)
        yield from _listed(cluster, "nodes", short)
    words = ["get", CANDIDATES, *cluster.place, *shown, *cluster.options]
    result = _run(words)
    if result.returncode == 0:
        yield from stream("kubectl", io.BytesIO(result.stdout))
    elif _NO_SUCH_KIND not in result.stderr.decode(errors="replace"):
        notes.append(f"candidates were not read: {_first_line(result.stderr)}")


def watching(cluster: Cluster, resource: str) -> "subprocess.Popen[bytes]":
    """A kubectl that lists a resource and then prints each change, until the API server ends that; raises Failure.

    Its standard error is a pipe, which the caller reads.
    """
    words = ["kubectl", "get", resource, *cluster.place, *SHOWN, "--watch", "--output-watch-events", *cluster.reach]
    try:
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - no shell
    except OSError as error:
        raise Failure(_missing(error)) from error


def is_unknown(message: str) -> bool:
    """Whether kubectl says that the cluster has no such resource."""
    return _NO_SUCH_KIND in message


def reason(line: bytes) -> str:
    """A line that kubectl said, which may repeat whatever an API server sent."""
    return escape(cut(line.decode(errors="replace").strip(), _LONGEST_REASON))


def has_pod(cluster: Cluster, namespace: str, name: str) -> bool | None:
    """Whether a pod exists; None if the user may not read pods."""
    words = ["get", "pod", name, f"--namespace={namespace}", "--ignore-not-found", "--output=name", *cluster.options]
    result = _run(words)
    return bool(result.stdout.strip()) if result.returncode == 0 else None


def webhook_configurations(cluster: Cluster) -> list[Document] | None:
    """The webhook configurations of the cluster; None if they may not be read."""
    kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    result = _run(["get", kinds, "--output=json", *cluster.options])
    if result.returncode:
        return None
    try:
        return list(objects_in([json.loads(result.stdout)]))
    except (ValueError, RecursionError):
        return None


def _listed(cluster: Cluster, resource: str, shown: Sequence[str]) -> Iterator[Item]:
    words = ["kubectl", "get", resource, *cluster.place, *shown, *cluster.options]
    try:
        # kubectl shares our standard error, because a plugin for credentials may prompt on the terminal.
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:  # noqa: S603 - no shell; arguments are checked
            assert process.stdout is not None
            try:
                yield from stream("kubectl", cast("BinaryIO", process.stdout))
            except BaseException:
                process.terminate()
                raise
    except OSError as error:
        raise Failure(_missing(error)) from error
    if process.returncode:
        raise Failure(f"kubectl get {resource} ended with exit code {process.returncode}")


def _run(words: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(["kubectl", *words], capture_output=True, check=False)  # noqa: S603, S607 - the user's own
    except OSError as error:
        raise Failure(_missing(error)) from error


def _missing(error: OSError) -> str:
    instead = "kubectl get leases -A -o json --show-managed-fields"
    return f"kubectl cannot be run ({error.strerror}); name a file that was written by: {instead}"


def _first_line(text: bytes) -> str:
    return next((reason(line) for line in text.splitlines() if line.strip()), "no reason given")
