"""From the `fences` of a policy file's document to fences; what contradicts itself is refused."""

from collections.abc import Sequence
from typing import Final

from webhook.policy.error import PolicyError
from webhook.policy.fences import holder_template, resource
from webhook.policy.fences.model import Fence
from webhook.policy.fences.schema_types import FenceSetting

MOST_FENCES: Final = 256
"""Each is two objects that every API server evaluates; far more than one cluster has operators."""


def fences_of(settings: Sequence[FenceSetting]) -> tuple[Fence, ...]:
    """The fences of a policy file.

    Raises:
        PolicyError: two fences have one name, or a fence could not enforce what it says.

    """
    if len(settings) > MOST_FENCES:
        raise PolicyError(f"must have at most {MOST_FENCES} entries", "fences")
    first: dict[str, int] = {}
    for position, setting in enumerate(settings):
        if setting.name in first:
            raise PolicyError(f"fences[{first[setting.name]}] already has this name", f"fences[{position}].name")
        first[setting.name] = position
    return tuple(_fence(setting, f"fences[{position}]") for position, setting in enumerate(settings))


def _fence(setting: FenceSetting, path: str) -> Fence:
    namespace, _, lease = setting.lease.partition("/")
    resources = [resource.read(text, f"{path}.resources[{number}]") for number, text in enumerate(setting.resources)]
    return Fence(
        name=setting.name,
        namespace=namespace,
        lease=lease,
        writers=_writers(setting.writers, f"{path}.writers"),
        holders=tuple(dict.fromkeys(holder_template.read(setting.holder, f"{path}.holder"))),
        resources=tuple(dict.fromkeys(resources)),
        operations=tuple(dict.fromkeys(setting.operations)),
        namespaces=tuple(dict.fromkeys(setting.namespaces)),
        mode=setting.mode,
        when_unheld=setting.when_unheld,
        missing_lease=setting.missing_lease,
    )


def _writers(texts: Sequence[str], path: str) -> tuple[tuple[str, str], ...]:
    writers = []
    for number, text in enumerate(dict.fromkeys(texts)):
        namespace, _, name = text.partition("/")
        writers.append((namespace, name))
        if namespace != writers[0][0]:
            problem = (
                "must be of the same namespace as the first writer: pods of two namespaces may have one name, and the "
                "holder identity does not contain the namespace"
            )
            raise PolicyError(problem, f"{path}[{number}]")
    return tuple(writers)
