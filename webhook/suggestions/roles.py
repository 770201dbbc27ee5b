"""The smallest Role and RoleBinding for what was seen, as YAML."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from webhook.api.request import GROUP
from webhook.observations.observation import Writer
from webhook.suggestions.evidence import Evidence
from webhook.suggestions.yaml_text import comment, flow, scalar

VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RESOURCES: Final = {"Lease": "leases", "LeaseCandidate": "leasecandidates"}

Uses = dict[tuple[str, str], dict[str, Evidence]]
"""By (resource, name): each verb with its evidence. The name is "" for requests that name no object."""

_API_VERSION: Final = "apiVersion: rbac.authorization.k8s.io/v1"


def role_lines(user: str, namespace: str, granted: Uses) -> Iterator[str]:
    """The lines of a Role and a RoleBinding; of a ClusterRole and its binding if the namespace is "".

    Args:
        user: the user name of a service account.
        namespace: where the leases are.
        granted: what is granted; not empty.

    """
    kind = "Role" if namespace else "ClusterRole"
    account = Writer(user).name
    home, _, name = account.partition("/")
    # The name of a service account cannot contain a colon, so no two of these are the same.
    title = scalar(f"{name}-leases" if home == namespace else f"{home}:{name}-leases")
    place = [f"  namespace: {scalar(namespace)}"] if namespace else []
    total = Evidence()
    for verbs in granted.values():
        for evidence in verbs.values():
            total.include(evidence)
    yield comment(
        f"{account} in {f'namespace {namespace}' if namespace else 'all namespaces'}: {total.text('request')}"
    )
    yield from (_API_VERSION, f"kind: {kind}", "metadata:", f"  name: {title}", *place, "rules:")
    for resource in RESOURCES.values():
        yield from _rules(resource, {name: verbs for (one, name), verbs in granted.items() if one == resource})
    yield from ("---", _API_VERSION, f"kind: {kind}Binding", "metadata:", f"  name: {title}", *place)
    yield from ("roleRef:", "  apiGroup: rbac.authorization.k8s.io", f"  kind: {kind}", f"  name: {title}")
    yield from ("subjects:", "- kind: ServiceAccount", f"  name: {scalar(name)}", f"  namespace: {scalar(home)}")


def _rules(resource: str, uses: Mapping[str, Mapping[str, Evidence]]) -> Iterator[str]:
    """The rules for one resource: verbs that no name can limit first, then the names that have the same verbs."""
    unnamed: dict[str, list[str]] = {}
    for name, verbs in uses.items():
        for verb in verbs:
            if verb == "create" or not name:
                unnamed.setdefault(verb, []).append(name)
    if unnamed:
        seen = [f"{_counted(verb, names, uses)}" for verb, names in unnamed.items()]
        limit = "; no name can limit create" if "create" in unnamed else ""
        yield from _rule(resource, unnamed, (), f"{', '.join(seen)}{limit}")
    by_verbs: dict[tuple[str, ...], list[str]] = {}
    for name, verbs in uses.items():
        rest = tuple(verb for verb in VERBS if verb in verbs and verb not in unnamed)
        if rest and name:
            by_verbs.setdefault(rest, []).append(name)
    for rest, names in sorted(by_verbs.items(), key=lambda one: one[1]):
        yield from _rule(resource, rest, names, ", ".join(_counted(verb, names, uses) for verb in rest))


def _rule(resource: str, verbs: Collection[str], names: Sequence[str], why: str) -> Iterator[str]:
    yield f"- apiGroups: {flow([GROUP])}"
    yield f"  resources: {flow([resource])}"
    if names:
        yield f"  resourceNames: {flow(sorted(names))}"
    yield f"  verbs: {flow(verb for verb in VERBS if verb in verbs)}  {comment(f'seen: {why}')}"


def _counted(verb: str, names: Sequence[str], uses: Mapping[str, Mapping[str, Evidence]]) -> str:
    """How often a verb was seen, and on which lease if the rule does not name it."""
    number = sum(uses[name][verb].count for name in names)
    if verb != "create":
        return f"{verb} {number}"
    shown = ", ".join(sorted(names)[:4])
    return f"{verb} {number} ({shown}{', ...' if len(names) > 4 else ''})"
