"""What rolls holders out again and again: who updates their workload, and pods of another template each time."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from webhook.analysis.claims.words import describe_user, describe_writer, format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.items import RelatedWrite
from webhook.analysis.inputs.related_writes import WORKLOADS
from webhook.kubernetes.generated_names import GENERATED
from webhook.kubernetes.times import MINUTE

_MIN_TIMES: Final = 3
_BEFORE: Final = MINUTE
"""How long before a holder came its workload may have been updated for it."""
_OF_REPLICA_SET: Final = re.compile(rf"(.+)-({GENERATED}{{1,10}})-{GENERATED}{{5}}(?![a-z0-9-]).*", re.DOTALL)
"""A name that begins as those of pods of a Deployment: its name, a hash of the template, and a random text."""


def describe_updates(writes: Iterable[RelatedWrite], since: int) -> str:
    """`Deployment shop/db was updated 9 times by shop/reloader`, since shortly before an instant; "" if nobody did."""
    group = max(group_updates(one for one in writes if one.at >= since - _BEFORE), key=len, default=[])
    if len(group) < _MIN_TIMES:
        return ""
    workload = f"{group[0].kind} {format_name(f'{group[0].namespace}/{group[0].name}')}"
    return f"{workload} was updated {len(group)} times by {describe_makers(group)}"


def group_updates(writes: Iterable[RelatedWrite]) -> list[list[RelatedWrite]]:
    """Return the updates of workloads, those of one workload by one user together."""
    found: dict[tuple[str, str, str, str], list[RelatedWrite]] = {}
    for one in writes:
        if one.kind in WORKLOADS and one.verb == "updated":
            found.setdefault((one.kind, one.namespace, one.name, describe_user(one.writer)), []).append(one)
    return list(found.values())


def describe_makers(writes: Sequence[RelatedWrite]) -> str:
    """Return who made writes of one user: from which pod, or from how many."""
    pods = list(dict.fromkeys(one.writer.pod for one in writes if one.writer.pod))
    user = describe_user(writes[0].writer)
    return f"{user} from {len(pods)} pods" if len(pods) > 1 else describe_writer(writes[0].writer)


def describe_templates(tenures: Sequence[Tenure], since: int, count: int) -> str:
    """`by their names, 10 times to a pod of another ReplicaSet, as in a rollout`; "" if that was not mostly so.

    `since` is when the first of `count` changes of the holder was.
    """
    pairs = [
        (_OF_REPLICA_SET.fullmatch(a.holder), _OF_REPLICA_SET.fullmatch(b.holder)) for a, b in _pair(tenures, since)
    ]
    others = sum(1 for a, b in pairs if a is not None and b is not None and a[1] == b[1] and a[2] != b[2])
    if any(one.copied_age is not None for one in tenures if one.since >= since):
        return ""  # what another one writes in, with an old time, need not be the name of a pod that runs
    if others < _MIN_TIMES or not count <= 2 * others <= 2 * count:
        return ""
    return f"by their names, {others} times to a pod of another ReplicaSet, as in a rollout"


def _pair(tenures: Sequence[Tenure], since: int) -> Sequence[tuple[Tenure, Tenure]]:
    return [(before, after) for before, after in pairwise(tenures) if after.since >= since]
