"""Lists leases of a cluster: by the user's own kubectl, with its credentials and plugins, or from inside a pod."""

import errno
import http.client
import io
import json
import os
import re
import select
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from webhook.analysis.inputs.documents import ListItems, Value, split_documents
from webhook.analysis.inputs.files import read, require_readable
from webhook.analysis.inputs.items import Item
from webhook.analysis.inputs.kinds import interpret_all
from webhook.errors import InputError
from webhook.kubernetes.request import GROUP, VERSIONS_OF
from webhook.text.quoting import escape, truncate

LEASES: Final = "leases.coordination.k8s.io"
CANDIDATES: Final = "leasecandidates.coordination.k8s.io"
EVENTS: Final = "events"
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PAGE: Final = 500
"""Objects per response: a list of all leases of a large cluster at once would be expensive for the API server."""

_TIMEOUT: Final = 60
"""Seconds that one request may take."""
TIMEOUT: Final = re.compile(r"([0-9]{1,6})(ms|s|m|h|)", re.ASCII)
"""A limit for one request; 0 is none."""
_UNITS: Final = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600}
_WITH_STAMPS: Final = ("--output=json", "--show-managed-fields")
_LIST: Final = "kubectl get leases -A -o json --show-managed-fields"
_MAX_FORWARD: Final = 10
"""Seconds that it may take to read the metrics of a pod."""
_FORWARDED: Final = re.compile(rb"127\.0\.0\.1:(\d+) ->")
_SELECTED: Final = {EVENTS: ("--field-selector=involvedObject.kind=Lease",)}
_PATHS: Final = {
    LEASES: [f"/apis/{GROUP}/v1{{}}/leases?"],
    CANDIDATES: [f"/apis/{GROUP}/{version}{{}}/leasecandidates?" for version in VERSIONS_OF["leasecandidates"]],
    EVENTS: ["/api/v1{}/events?fieldSelector=involvedObject.kind%3DLease&"],
}
"""Paths by resource, for each version in which an API server may have it, the newest one first."""
_QUIET: Final = 100
"""Seconds without a line of a watch; an API server sends a bookmark every minute."""
_PAUSE: Final = 1.0
_BATCH: Final = 0.05
"""Seconds for which lines of a watch accumulate: waking up for each costs more than decoding it."""
END: Final = 5.0
"""Seconds. What a plugin leaves running may keep kubectl's standard error open."""
_DEPRECATED: Final = re.compile(rb"Warning: coordination\.k8s\.io/\S+ \w+ is deprecated")
"""A warning about the version in which an API server lists candidates, which no reader can change."""
_ERROR: Final = re.compile(rb"[EWIF]\d{4} |[Ee]rror|The connection to the server|Unable to connect")
"""How lines of kubectl itself begin that are not a prompt: those that its libraries log, and why it fails."""
_CANNOT_RUN: Final = "kubectl cannot be run ({})"
_INSTALL: Final = "install kubectl, or put it in PATH"
_PIECE: Final = 64 * 1024
_MAX_REASON: Final = 200
_MAX_RESPONSE: Final = 256 * 1024 * 1024
_NOT_FOUND: Final = f"the API server returned {http.client.NOT_FOUND:d} for "
NO_SUCH_KIND: Final = "the server doesn't have a resource type"


def is_unserved(reason: str) -> bool:
    """Return whether a resource could not be read because the API server does not serve it."""
    return NO_SUCH_KIND in reason or reason.startswith(_NOT_FOUND)


class Cluster(Struct, frozen=True):
    """A cluster, a namespace and a user, as kubectl takes them; "" leaves it to kubectl's own configuration."""

    context: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    all_namespaces: bool = False
    cluster: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    """Whom to impersonate."""
    request_timeout: str = f"{_TIMEOUT}s"

    @property
    def options(self) -> list[str]:
        """Options that say which cluster, and as whom."""
        given = {
            "--context": self.context,
            "--kubeconfig": self.kubeconfig,
            "--cluster": self.cluster,
            "--as": self.user,
        }
        words = [f"{option}={value}" for option, value in given.items() if value]
        return words + [f"--as-group={group}" for group in self.groups]

    @property
    def timeout(self) -> str:
        """The option that limits one request; a watch has no limit."""
        return f"--request-timeout={self.request_timeout}"

    @property
    def timeout_seconds(self) -> float | None:
        """The limit of one request in seconds; None for no limit."""
        found = TIMEOUT.fullmatch(self.request_timeout)
        return int(found[1]) * _UNITS[found[2]] or None if found else None

    @property
    def scope(self) -> list[str]:
        """The namespace to look in."""
        if self.all_namespaces:
            return ["--all-namespaces"]
        return [f"--namespace={self.namespace}"] if self.namespace else []


def list_items(
    cluster: Cluster, notes: list[str], *, with_pods: bool = False, resources: Sequence[str] = ()
) -> Iterator[Item]:
    """Yield the leases and, if the cluster has candidates and the user may read them, those; raises InputError.

    `notes` gets a line for each optional part that could not be read; `resources` are listed after the leases.
    """
    paged = f"--chunk-size={PAGE}"
    item = None
    for resource in (LEASES, *resources):
        for item in _list_resource(cluster, resource, *_WITH_STAMPS, paged):
            yield item
    for resource in ("pods", "nodes") if with_pods else ():
        yield from _list_resource(cluster, resource, "--output=json", paged)
    result = _run(cluster, "get", CANDIDATES, *cluster.scope, *_WITH_STAMPS, paged)
    if result.returncode == 0:
        for item in interpret_all(read(io.BytesIO(result.stdout), "kubectl")):
            yield item
    elif NO_SUCH_KIND not in result.stderr.decode(errors="replace"):
        notes.append(f"candidates were not read: {_find_reason(result.stderr)}")
    if item is None and not cluster.all_namespaces:
        where = f"namespace {cluster.namespace}" if cluster.namespace else "the namespace of the context"
        raise InputError(f"{where} has no leases, or does not exist; -A looks in all namespaces")


def start_watch(cluster: Cluster, resource: str) -> "subprocess.Popen[bytes]":
    """Return a kubectl that lists the leases, then prints each change; its caller reads stderr. Raises InputError."""
    # Without a timeout, since a watch has no end.
    what = [resource, *_SELECTED.get(resource, ()), *cluster.scope, *cluster.options]
    return _start(["get", *what, *_WITH_STAMPS, "--watch", "--output-watch-events"])


def post_event(cluster: Cluster, event: dict[str, Any], *, is_in_cluster: bool) -> None:
    """Create an Event; raises InputError if that is refused or fails."""
    namespace, body = event["metadata"]["namespace"], json.dumps(event).encode()
    if is_in_cluster:
        for _ in InClusterClient(cluster.timeout_seconds).read_lines(
            f"/api/v1/namespaces/{quote(namespace)}/events", body=body
        ):
            pass
        return
    result = _run(cluster, "create", "--filename=-", f"--namespace={namespace}", given=body)
    if result.returncode:
        raise InputError(_find_reason(result.stderr))


def list_lease_names(cluster: Cluster) -> list[str]:
    """Return every lease as NAMESPACE/NAME, for a shell that completes it; none if that is not known at once."""
    columns = "--output=custom-columns=:metadata.namespace,:metadata.name"
    try:
        result = _run(cluster, "get", LEASES, *cluster.scope, columns)
    except InputError:
        return []
    return ["/".join(line.split()) for line in result.stdout.decode(errors="replace").splitlines() if line.strip()]


def list_lease_events(cluster: Cluster, namespace: str, name: str) -> Iterator[Item]:
    """Yield the Events about a lease; nothing if the user may not read them."""
    about = f"--field-selector=involvedObject.kind=Lease,involvedObject.name={name}"
    result = _run(cluster, "get", "events", about, f"--namespace={namespace}", "--output=json")
    if result.returncode == 0:
        yield from interpret_all(read(io.BytesIO(result.stdout), "kubectl"))


def get_objects(cluster: Cluster, kinds: str, *words: str, command: str = "") -> list[Value] | str:
    """Return the objects of some kinds in the cluster, or why they could not be read.

    Raises InputError without a kubectl; `command` is one that writes a file which the caller reads instead.
    """
    result = _run(cluster, "get", kinds, *words, "--output=json", command=command)
    if result.returncode:
        return explain_problem(_find_reason(result.stderr))
    try:
        return [one.value for one in require_readable(read(io.BytesIO(result.stdout), "kubectl"))]
    except (InputError, ValueError, RecursionError) as error:
        return escape(truncate(str(error), _MAX_REASON))


def try_to_create(cluster: Cluster, manifest: bytes) -> tuple[bool, str]:
    """Return whether the API server itself would create an object, of which nothing is stored, and what it said."""
    words = ("create", "--dry-run=server", "--validate=false", "--filename=-", f"--namespace={cluster.namespace}")
    result = _run(cluster, *words, given=manifest)
    lines = result.stderr.decode(errors="replace").strip().splitlines()
    return result.returncode == 0, "\n".join(map(escape, lines))


def read_metrics(cluster: Cluster, namespace: str, pod: str) -> tuple[bytes, str]:
    """Return the metrics of a pod, or why they were not read.

    By `kubectl port-forward`: what an API server proxies to pods is refused by the shipped NetworkPolicy, and by the
    firewalls of some clouds.
    """
    with _forward_port(cluster, namespace, f"pod/{pod}", "health") as (port, read_complaint):
        if port is None:
            return b"", _find_reason(read_complaint())
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_MAX_FORWARD)
            connection.request("GET", "/metrics")
            return connection.getresponse().read(_MAX_RESPONSE), ""
        except (OSError, http.client.HTTPException) as error:
            return b"", escape(truncate(str(error), _MAX_REASON))


def try_tls(
    cluster: Cluster, namespace: str, service: str, port: int, *, name: str, roots: bytes
) -> tuple[Literal["trusted", "untrusted", "closed", "unknown"], str]:
    """Return whether a Service serves a certificate of this name that PEM roots vouch for, or is closed; and why not.

    By `kubectl port-forward`, which chooses a running pod, and no request is sent. The clock is that of this machine.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As Go: any certificate among the roots may end a chain.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=roots.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        return "unknown", escape(truncate(f"the roots cannot be used: {error}", _MAX_REASON))
    with _forward_port(cluster, namespace, f"service/{service}", str(port)) as (local, read_complaint):
        if local is None:
            return "unknown", _find_reason(read_complaint())
        try:
            with (
                socket.create_connection(("127.0.0.1", local), timeout=_MAX_FORWARD) as connection,
                context.wrap_socket(connection, server_hostname=name),
            ):
                return "trusted", ""
        except ssl.SSLCertVerificationError as error:
            return "untrusted", escape(truncate(error.verify_message.rstrip("."), _MAX_REASON))
        except OSError as error:
            # kubectl accepts a connection before it knows whether the pod does, and then says why not.
            if b"connection refused" in (said := read_complaint()):
                return "closed", ""
            return "unknown", _find_reason(said) if said.strip() else escape(truncate(str(error), _MAX_REASON))


@contextmanager
def _forward_port(
    cluster: Cluster, namespace: str, target: str, port: str
) -> "Iterator[tuple[int | None, Callable[[], bytes]]]":
    """Forward a port of a pod or Service: yields the local one, None if there is none, and what kubectl says then."""
    words = ("port-forward", f"--namespace={namespace}", target, f":{port}", *cluster.options)
    with _start(words) as process:
        limit = threading.Timer(_MAX_FORWARD, process.kill)
        limit.start()

        def read_complaint() -> bytes:
            # It says why, and most versions end then.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PAUSE)
            process.terminate()
            return cast("BinaryIO", process.stderr).read()

        try:
            found = _FORWARDED.search(cast("BinaryIO", process.stdout).readline())
            yield (int(found[1]) if found else None), read_complaint
        finally:
            limit.cancel()
            process.terminate()


def find_own_user(cluster: Cluster) -> tuple[str, tuple[str, ...]] | None:
    """Return the user and the groups as whom the API server knows this caller, None if it does not say."""
    result = _run(cluster, "auth", "whoami", "--output=json")
    try:
        review = _who.decode(result.stdout) if result.returncode == 0 else None
    except (ValueError, RecursionError):
        return None
    return (review.status.user_info.username, review.status.user_info.groups) if review else None


def _find_reason(said: bytes) -> str:
    """Return why kubectl failed, after what its libraries log; it may repeat anything that an API server sent."""
    last = next((line for line in reversed(said.splitlines()) if line.strip()), b"no reason given")
    return escape(truncate(last.decode(errors="replace").strip(), _MAX_REASON))


class Complaints(threading.Thread):
    """Reads kubectl's standard error: prompts of a plugin for credentials are passed on at once, errors are not."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(daemon=True)
        self._said = cast("io.BufferedReader", process.stderr)
        self._last = b""
        self.start()

    def run(self) -> None:
        """Read until kubectl has ended."""
        line = b"\n"
        while piece := self._said.read1(_PIECE):
            for part in piece.splitlines(keepends=True):
                # A prompt has no end of line; an error may come in parts.
                line = part if line.endswith(b"\n") else line[:_PIECE] + part
                self._last = line if line.strip() and not line.startswith(b"Warning: ") else self._last
                if not (_ERROR.match(line) or _DEPRECATED.match(line)):
                    sys.stderr.write(part.decode(errors="replace"))
                    sys.stderr.flush()

    def wait_for_reason(self) -> str:
        """Return the last line, which is why kubectl has ended; "" if there is none."""
        self.join(END)
        return _find_reason(self._last) if self._last else ""


def _list_resource(cluster: Cluster, resource: str, *shown: str) -> Iterator[Item]:
    words = ("get", resource, *cluster.scope, *shown, cluster.timeout, *cluster.options)
    with _start(words, command=_LIST) as process:
        complaints = Complaints(process)
        try:
            yield from interpret_all(read(cast("BinaryIO", process.stdout), "kubectl"))
        except BaseException:
            process.terminate()
            raise
        finally:
            reason = complaints.wait_for_reason()
    if process.returncode:
        problem = reason or f"kubectl get {resource} ended with exit code {process.returncode}"
        raise InputError(explain_problem(problem))


_UNREACHED: Final = re.compile(
    r"The connection to the server (?P<refusing>\S+) was refused"
    r"|Unable to connect to the server: (?P<unable>.+)|Get \"[^\"]*\": dial tcp (?P<dialed>[^\"]+)"
    r"|(?P<choice>context was not found for specified context: .+|context .+ does not exist|stat .+: no such file.*"
    r"|error loading config file .+|no configuration has been provided)"
)
_REFUSED_EVERYWHERE: Final = re.compile(
    r"cannot (?:list|watch) (?:resource )?\"?(?:leases|leasecandidates|pods|events)\b.*at the cluster scope"
)
"""Of what namespaces contain, and commands read in the one of `-n`."""
CHOOSE: Final = "choose a cluster with --context or --kubeconfig"


def find_why_unreached(problem: str) -> str:
    """Return why kubectl reached no API server, "" if it reached one."""
    found = _UNREACHED.search(problem)
    if found is None:
        return ""
    refusing = found["refusing"]
    return f"{refusing} refuses connections" if refusing else found["unable"] or found["dialed"] or found["choice"]


def explain_problem(problem: str) -> str:
    """Return why nothing was read, and what to do: a user may have rights in one namespace, or no cluster."""
    if why := find_why_unreached(problem):
        return f"no API server was reached: {why}; {CHOOSE}"
    return f"{problem}; -n NAMESPACE looks in one namespace" if _REFUSED_EVERYWHERE.search(problem) else problem


def require_kubectl(advice: str) -> None:
    """Raise InputError with this advice if kubectl is not installed."""
    if shutil.which("kubectl") is None:
        raise InputError(f"{_CANNOT_RUN.format(os.strerror(errno.ENOENT))}; {advice}")


def _run(
    cluster: Cluster, *words: str, given: bytes | None = None, command: str = ""
) -> "subprocess.CompletedProcess[bytes]":
    everything = [*words, cluster.timeout, *cluster.options]
    with _start(everything, stdin=None if given is None else subprocess.PIPE, command=command) as process:
        output, errors = process.communicate(given)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def _start(words: Sequence[str], stdin: int | None = None, command: str = "") -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(["kubectl", *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603, S607 - no shell; the user's own
    except OSError as error:
        instead = f"name a file that was written by: {command}" if command else _INSTALL
        raise InputError(f"{_CANNOT_RUN.format(error.strerror)}; {instead}") from error


def list_in_cluster(cluster: Cluster, notes: list[str], *, with_pods: bool = False) -> Iterator[Item]:
    """Yield the same with the service account of the pod that this runs in, whose image has no kubectl.

    Raises InputError if this is not a pod, or the API server does not list leases.
    """
    client = InClusterClient(cluster.timeout_seconds)
    scope = f"/namespaces/{quote(cluster.namespace)}" if cluster.namespace else ""
    yield from client.list(f"/apis/{GROUP}/v1{scope}/leases")
    if with_pods:
        yield from client.list(f"/api/v1{scope}/pods")
        yield from client.list("/api/v1/nodes")
    for path in _PATHS[CANDIDATES]:
        try:
            yield from client.list(path.format(scope).removesuffix("?"))
        except _RefusedError as refused:
            if refused.status == http.client.NOT_FOUND:
                continue  # not served in this version, or not at all
            notes.append(f"candidates were not read: {refused}")
        return


class _RefusedError(InputError):
    """`following` is the token with which an API server lets a list go on whose first pages it no longer knows."""

    def __init__(self, status: int, path: str, following: str = "") -> None:
        super().__init__(f"the API server returned {status} for {path}")
        self.status = status
        self.following = following


def watch_in_cluster(namespace: str, resource: str) -> Iterator[bytes]:
    """Yield the same as a watch by kubectl, which goes on where it ended as long as the API server knows that place.

    Raises InputError if it does not, or refuses, or if this is not a pod.
    """
    client = InClusterClient(_QUIET)
    scope = f"/namespaces/{quote(namespace)}" if namespace else ""
    *newer, oldest = [path.format(scope) for path in _PATHS[resource]]
    for path in newer:
        try:
            yield from _watch(client, path)
        except _RefusedError as refused:
            if refused.status != http.client.NOT_FOUND:
                raise
    yield from _watch(client, oldest)


def _watch(client: "InClusterClient", path: str) -> Iterator[bytes]:
    """Yield a list, then what changes; it ends by raising InputError."""
    version = ""
    for _, page in client.read_pages(path):
        kind = b'"kind":"%s","apiVersion":"%s",' % (page.kind.removesuffix("List").encode(), page.api_version.encode())
        yield from (b'{"type":"ADDED","object":{' + kind + bytes(item)[1:] + b"}\n" for item in page.items or ())
        version = page.metadata.resource_version
    event = _Event("")
    while event.type != "ERROR":
        try:
            for line in client.read_lines(
                f"{path}watch=true&allowWatchBookmarks=true&resourceVersion={version}", _BATCH
            ):
                # The version of an object that nests too deeply is not known.
                with suppress(RecursionError):
                    event = _event.decode(line)
                    version = event.object.metadata.resource_version or version
                yield line + b"\n"
        except _RefusedError:
            raise
        except InputError:
            pass  # nothing is lost if it can be continued
        time.sleep(_PAUSE)
    raise _RefusedError(event.object.code, path)


class InClusterClient:
    """A client of the API server in a pod, with the pod's service account; one request at a time."""

    def __init__(self, timeout: float | None = _TIMEOUT) -> None:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise InputError("--in-cluster works in a pod only: KUBERNETES_SERVICE_HOST is not set")
        try:
            context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
            self._connection = http.client.HTTPSConnection(host, int(port), timeout=timeout, context=context)
        except (OSError, ValueError) as error:
            raise InputError(f"the pod's service account cannot be used: {error}") from error

    def list(self, path: str) -> Iterator[Item]:
        """Yield the objects of a list, each as it was when its page was read."""
        for body, _ in self.read_pages(f"{path}?", is_one_state=False):
            yield from interpret_all(split_documents(path, [body], is_json=True))

    def read_pages(self, path: str, *, is_one_state: bool = True) -> "Iterator[tuple[bytes, _Page]]":
        """Yield a list, page by page, as it is and decoded; the path ends where further parameters follow.

        An API server knows a state of the cluster for some minutes. Then it refuses to continue (410), or, unless all
        pages must be of one state, continues with the present one.
        """
        following = ""
        while True:
            try:
                lines = self.read_lines(f"{path}limit={PAGE}{f'&continue={quote(following)}' if following else ''}")
                body = b"\n".join(lines)
            except _RefusedError as refused:
                if is_one_state or refused.status != http.client.GONE or refused.following in {"", following}:
                    raise
                following = refused.following
                continue
            page = _decode_page(body, path[:-1])
            yield body, page
            following = page.metadata.following
            if not following:
                return

    def read_lines(self, target: str, pause: float = 0.0, body: bytes | None = None) -> Iterator[bytes]:
        """Yield the lines of an answer, after a pause in seconds whenever no more are there; raises InputError.

        With a `body`, an object is created.
        """
        is_whole = False
        try:
            # The kubelet replaces the token before it expires.
            token = (ACCOUNT / "token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            self._connection.request("GET" if body is None else "POST", target, body, headers=headers)
            # The response takes the socket from a connection that the server will close.
            connected = self._connection.sock
            answer = self._connection.getresponse()
            if answer.status not in {http.client.OK, http.client.CREATED}:
                raise _RefusedError(answer.status, target.partition("?")[0], _find_token(answer.read(_PIECE)))
            rest = b""
            while piece := answer.read1(_PIECE):
                *lines, rest = (rest + piece).split(b"\n")
                yield from filter(None, lines)
                if pause and not select.select([connected], (), (), 0)[0]:
                    time.sleep(pause)
            if rest:
                yield rest
            is_whole = True
        except (OSError, http.client.HTTPException) as error:
            raise InputError(f"the API server cannot be reached: {escape(truncate(str(error)))}") from error
        finally:
            if not is_whole:
                self._connection.close()


def _decode_page(body: bytes, path: str) -> "_Page":
    """Return a page of a list, of which an item may nest more deeply than the decoder of the page can read."""
    try:
        with suppress(RecursionError):
            return _page.decode(body)
    except ValueError:
        raise InputError(f"the API server did not return a list for {path}") from None
    items = ListItems(iter([body]))
    try:
        texts = [*map(Raw, items)]
        return _Page(_shown.decode(items.frame).metadata, items.kind, items.version, texts)
    except (ValueError, RecursionError):
        raise InputError(f"the answer of the API server for {path} is nested too deeply") from None


def _find_token(status: bytes) -> str:
    """Return the token with which a list may be continued that an API server refused, "" if there is none."""
    try:
        return _shown.decode(status).metadata.following
    except (ValueError, RecursionError):
        return ""


class _Metadata(Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str = ""
    following: str = msgspec.field(default="", name="continue")


class _Page(Struct, gc=False, rename="camel"):
    metadata: _Metadata
    kind: str = ""
    api_version: str = ""
    items: list[Raw] | None = None


class _WatchedObject(Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    code: int = 0


class _Event(Struct, frozen=True, gc=False):
    type: str
    object: _WatchedObject = _WatchedObject()


class _UserInfo(Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] = ()


class _WhoStatus(Struct, frozen=True, rename="camel"):
    user_info: _UserInfo = _UserInfo()


class _Who(Struct, frozen=True):
    status: _WhoStatus = _WhoStatus()


_who: Final = msgspec.json.Decoder(_Who)
_page: Final = msgspec.json.Decoder(_Page)
_event: Final = msgspec.json.Decoder(_Event)
_shown: Final = msgspec.json.Decoder(_WatchedObject)
