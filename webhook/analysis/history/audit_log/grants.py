"""The bindings of RBAC that allowed requests for a lease: an API server notes the binding in its audit log.

In: every request of an audit log. Out: by user and verb, the binding that last allowed it, and when.
"""

import re
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.audit_log.refusal import AUTHORIZATION_REASON
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation

_ALLOWED: Final = "RBAC: allowed by "
_BINDING: Final = re.compile(
    rf'{_ALLOWED}(?:RoleBinding "([^"/]{{1,253}})/([^"/]{{1,63}})"|ClusterRoleBinding "([^"/]{{1,253}})") of '
)
"""Source: `roleBindingDescriber` of kubernetes `pkg/registry/rbac/validation/rule.go`, and the one above it."""


class Binding(Struct, frozen=True):
    """A RoleBinding, or without a namespace a ClusterRoleBinding."""

    kind: str
    namespace: str
    name: str


class Grants(Struct):
    """When a verb was last allowed to a user, in microseconds since 1970, and the reason that was given."""

    _latest: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def note_request(self, seen: Observation) -> None:
        """Add a request of any kind; what a user does as another one is allowed to that one."""
        reason = seen.answer.annotations.get(AUTHORIZATION_REASON, "") if seen.answer else ""
        if seen.writer is None or seen.at is None or not reason.startswith(_ALLOWED):
            return
        key, received = (seen.writer.user, seen.verb), seen.at - seen.took
        if key not in self._latest and len(self._latest) >= MAX_LISTED:
            return
        if received >= self._latest.get(key, (0, ""))[0]:
            self._latest[key] = received, reason

    def find(self, user: str, verb: str) -> tuple[Binding, int] | None:
        """Return the binding that last allowed a user something, and when; None if no log names one."""
        at, reason = self._latest.get((user, verb), (0, ""))
        binding = _read_binding(reason)
        return None if binding is None else (binding, at)


def _read_binding(reason: str) -> Binding | None:
    found = _BINDING.match(reason)
    if found is None:
        return None
    name, namespace, of_cluster = found.groups()
    return Binding("ClusterRoleBinding", "", of_cluster) if of_cluster else Binding("RoleBinding", namespace, name)
