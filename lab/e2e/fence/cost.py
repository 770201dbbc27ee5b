"""The cost that a fence adds to a write, beside that of any policy whose parameter is a Lease, on one API server."""

import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.fence.facts import SETTLING
from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.token import install_stamps
from lab.e2e.fence.trial import FIRST, Operator, allow_service_accounts
from lab.e2e.kubectl import Kubectl
from lab.e2e.manifests import format_micro_time
from lab.e2e.quantile import find_quantile
from lab.e2e.stamp_cases import FIRST_MINOR, SUFFIX
from lab.e2e.toolchain import VERSIONS, Binaries

ROUNDS: Final = 8
WRITES: Final = 60
"""Writes of each kind in a round."""
KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "fence": {},
    "token": {"token": True},
    "clock": {"token": True, "expired": "deny"},
    "plain": {},
}
"""Keys of the fence in a policy file. `plain` is the policy of a fence with the only expression `true`."""
MAX_ADDED: Final = {"fence": 0.5, "clock": 0.6}
"""Milliseconds that a fence, also one with token and clock, may add to a write, p50, on a version that upstream
maintains."""
REQUESTS: Final = {"update": "the leader updates", "create": "the leader creates", "other": "someone else updates"}
"""The bars are of the first: the others are a new name, and a writer whom no fence names."""
UNMAINTAINED: Final = VERSIONS[-1]
"""Runs for the sake of LeaseCandidate v1alpha1; the bar does not apply to it."""


class Cost(Struct, frozen=True):
    """Milliseconds that each kind of policy adds to each request: the median difference of neighbors in each round.

    Other work on the machine only adds, so that the quietest round says the most.
    """

    version: str
    added: dict[str, dict[str, tuple[float, ...]]]

    @property
    def is_met(self) -> bool:
        """True if the bars hold in the quietest round."""
        updates = self.added["update"]
        return all(min(updates[kind]) <= bar for kind, bar in MAX_ADDED.items() if kind in updates)

    @property
    def passed(self) -> bool:
        """True if the bars hold, or are not asked for."""
        return self.is_met or self.version == UNMAINTAINED

    @property
    def rows(self) -> list[str]:
        """Rows of the table, in Markdown."""
        if self.is_met:
            verdict = "met"
        else:
            verdict = "missed" if self.passed else "**FAILED**"
        rows = []
        for request, words in REQUESTS.items():
            samples = (self.added[request].get(kind, ()) for kind in KINDS)
            figures = (_format_range(one) if one else "-" for one in samples)
            is_asked = request == "update"
            rows.append(f"| {self.version} | {words} | {' | '.join(figures)} | {verdict if is_asked else ''} |")
        return rows


def _format_range(samples: Sequence[float]) -> str:
    least, most = (round(one, 2) + 0.0 for one in (min(samples), max(samples)))  # -0.0 + 0.0 is 0.0
    return f"{least:+.2f} ms ({least:+.2f}..{most:+.2f})"


def measure_cost(binaries: Binaries) -> Cost:
    """Measure a write by the holder's pod without a policy, with a fence, and with a policy that allows everything."""
    with (
        tempfile.TemporaryDirectory(prefix="lease-webhook-fence-") as directory,
        TwoServers(binaries, Path(directory)) as plane,
    ):
        allow_service_accounts(plane.create_admin_client(plane.port))
        is_stamped = binaries.minor >= FIRST_MINOR
        if is_stamped:
            install_stamps(Kubectl(binaries.kubectl, plane.admin_kubeconfig))
            time.sleep(SETTLING)
        kinds = {name: keys for name, keys in KINDS.items() if is_stamped or not keys}
        cases = {name: _create_writer(plane, name, kinds.get(name)) for name in ("without", *kinds)}
        time.sleep(5)  # an API server needs a moment for new policies
        _measure_round(cases)
        rounds = [_measure_round(cases) for _ in range(ROUNDS)]
    milliseconds = {
        request: {name: tuple(one[request, name] for one in rounds) for name in kinds} for request in REQUESTS
    }
    return Cost(binaries.version, milliseconds)


def _create_writer(plane: TwoServers, name: str, keys: Mapping[str, Any] | None) -> tuple[ApiClient, ApiClient, str]:
    """Return a leader that has renewed its lease, as it does all the time, and an object of it."""
    operator = Operator(plane, plane.create_admin_client(plane.port), f"cost-{name}")
    kubectl = Kubectl(plane.binaries.kubectl, plane.admin_kubeconfig)
    if keys:
        operator.label_namespace()
    if keys is not None:
        manifest = operator.export_manifest(suffix=SUFFIX if keys else "", **keys)
        if name == "plain":
            manifest = _allow_everything(manifest)
        kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=manifest)
        operator.wait_for_fence([plane.port])
    spec = {"holderIdentity": f"{FIRST}_1", "leaseDurationSeconds": 3600, "renewTime": format_micro_time()}
    body = {"metadata": {"name": "operator"}, "spec": spec}
    leader = plane.create_token_client(FIRST, operator.tokens[FIRST])
    leader.send("POST", operator.lease.rpartition("/")[0], body).expect(201)
    leader.send("PATCH", operator.lease, {"spec": {"renewTime": format_micro_time()}}, media=MERGE).expect(200)
    return leader, operator.admin, operator.log


def _allow_everything(manifest: str) -> str:
    """Return the same policy with the same match and parameter, whose only expression is `true`."""
    documents = [one for one in yaml.safe_load_all(manifest) if one]
    for document in documents:
        if document["kind"] == "ValidatingAdmissionPolicy":
            document["spec"] |= {"variables": [], "validations": [{"expression": "true"}]}
    return yaml.safe_dump_all(documents)


def _measure_round(cases: Mapping[str, tuple[ApiClient, ApiClient, str]]) -> dict[tuple[str, str], float]:
    """Return the median extra time of each request in each case over that without a policy, in milliseconds."""
    times: dict[tuple[str, str], list[float]] = {(request, name): [] for request in REQUESTS for name in cases}
    for number in range(WRITES):
        for name in random.sample([*cases], len(cases)):
            client, admin, log = cases[name]
            change, entry = {"data": {"entry": str(number)}}, {"metadata": {"generateName": "made-"}}
            replies = {
                "update": client.send("PATCH", log, change, media=MERGE),
                "create": client.send("POST", log.rpartition("/")[0], entry),
                "other": admin.send("PATCH", log, {"data": {"other": str(number)}}, media=MERGE),
            }
            for request, reply in replies.items():
                reply.expect()
                times[request, name].append(reply.milliseconds)
    return {
        (request, name): find_quantile(
            [one - bare for one, bare in zip(durations, times[request, "without"], strict=True)], 0.5
        )
        for (request, name), durations in times.items()
    }
