"""The workload of a pod, as far as its name shows that."""

import re
from typing import Final

from webhook.kubernetes.generated_names import GENERATED

_OF_REPLICA_SET: Final = re.compile(rf"(.+)-{GENERATED}{{1,10}}-{GENERATED}{{5}}")


def find_deployment(pod: str) -> str:
    """Return the Deployment whose pods have such names; "" if a pod is not named as those of one are."""
    found = _OF_REPLICA_SET.fullmatch(pod)
    return found[1] if found else ""


def name_workload(pod: str) -> str:
    """Return the name of the Deployment of a pod; of any other workload, the pod's name without its last part."""
    return find_deployment(pod) or pod.rpartition("-")[0]
