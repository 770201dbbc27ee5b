"""The shipped match condition drops plain renewals and nothing else, under Fail and Ignore, and never errs."""

import concurrent.futures
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from lab.e2e.api_client import ApiClient
from lab.e2e.condition_cases import DROPPED, REVIEWED, Case
from lab.e2e.counting import CountingWebhook
from lab.e2e.one_lease import OneLease
from lab.e2e.world import WEBHOOK, Row, World
from tests.match_condition import is_update_reviewed

POLICIES: Final = ("Fail", "Ignore")
WORKERS: Final = 4
_ERRORS: Final = re.compile(
    r"^apiserver_admission_match_condition_evaluation_errors_total\{(.*)\} (\S+)$", re.MULTILINE
)


def run(world: World) -> Iterator[Row]:
    """Send each write in a namespace of each failure policy, with a webhook that counts."""
    client, _ = world.create_user("condition-writer")
    with CountingWebhook(world.certs) as webhook:
        for policy in POLICIES:
            world.create_namespace(_name_namespace(policy), route=_name_namespace(policy))
            world.register(_name_namespace(policy), webhook.port, failure_policy=policy)
        world.settle()
        for claim, cases, visible in (("plain renewals", DROPPED, False), ("other writes", REVIEWED, True)):
            for policy in POLICIES:
                problems = _find_problems(client, webhook, policy, cases, visible=visible)
                word = "reviewed" if visible else "dropped"
                observation = "; ".join(problems) or f"{len(cases)} kinds, all {word}, as the CEL library says"
                yield Row(f"failurePolicy {policy}: {claim}", observation, not problems)
    errors = _count_evaluation_errors(world)
    yield Row("evaluation errors in the API server", f"{errors:.0f}", errors == 0)


def _name_namespace(policy: str) -> str:
    return f"condition-{policy.lower()}"


def _find_problems(
    client: ApiClient, webhook: CountingWebhook, policy: str, cases: Sequence[Case], *, visible: bool
) -> list[str]:
    check = functools.partial(_find_problem, client, webhook, policy, visible=visible)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return [problem for problem in pool.map(check, cases, range(len(cases))) if problem]


def _find_problem(
    client: ApiClient, webhook: CountingWebhook, policy: str, case: Case, number: int, *, visible: bool
) -> str:
    """Return the problem of one write, or an empty text."""
    lease = OneLease(client, _name_namespace(policy), f"{'reviewed' if visible else 'dropped'}-{number:02}")
    case.setup(lease)
    before = None
    if client.send("GET", lease.path).status == 200:
        lease.settle()
        before = lease.get()
    reviews = webhook.count_reviews(lease.namespace, lease.name)
    reply = case.write(lease)
    is_reviewed = webhook.count_reviews(lease.namespace, lease.name) > reviews
    if reply.status not in {200, 201}:
        return f"{case.name}: HTTP {reply.status} {reply.message}"
    if is_reviewed != visible:
        return f"{case.name}: {'reviewed' if is_reviewed else 'dropped'}"
    if case.comparable and before and is_update_reviewed(reply.body, before) != visible:
        return f"{case.name}: the CEL library says the opposite"
    return ""


def _count_evaluation_errors(world: World) -> float:
    """Return the errors of the shipped condition, whatever the registration is called."""
    text = world.admin.send("GET", "/metrics").message
    return sum(float(count) for labels, count in _ERRORS.findall(text) if f'name="{WEBHOOK}"' in labels)
