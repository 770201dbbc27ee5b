"""The bindings of RBAC that allowed requests for a lease: an API server notes the binding in its audit log.

In: every request of an audit log. Out: by user and verb, the binding that last allowed it, and when.
"""

import re
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.audit_log.refusal import AUTHORIZATION_REASON
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation
from webhook.analysis.rights import WRITE_VERBS

_ALLOWED: Final = "RBAC: allowed by "
_BINDING: Final = re.compile(
    rf'{_ALLOWED}(?:RoleBinding "([^"/]{{1,253}})/([^"/]{{1,63}})"|ClusterRoleBinding "([^"/]{{1,253}})") of '
    r'(Role|ClusterRole) "([^"/]{1,253})" to (?:Group "([^"]{1,253})")?'
)
"""Source: `roleBindingDescriber` of kubernetes `pkg/registry/rbac/validation/rule.go`, and the one above it."""


class Binding(Struct, frozen=True):
    """A RoleBinding, or without a namespace a ClusterRoleBinding."""

    kind: str
    namespace: str
    name: str


class Grant(Struct, frozen=True):
    """A binding by which an API server allowed a request, received `at`, in microseconds since 1970.

    `role` is the kind and the name of what it binds; `group` has it, "" if it is bound to a user by name.
    """

    binding: Binding
    role: tuple[str, str]
    group: str
    at: int


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

    def find(self, user: str, verb: str) -> Grant | None:
        """Return how a user was last allowed something; None if no log names a binding for it."""
        at, reason = self._latest.get((user, verb), (0, ""))
        return _read_grant(reason, at)

    def find_to_write(self, user: str) -> Grant | None:
        """Return how a user was last allowed to write; None if no log names a binding for it."""
        found = (self.find(user, verb) for verb in WRITE_VERBS)
        return max((one for one in found if one is not None), key=lambda grant: grant.at, default=None)


def _read_grant(reason: str, at: int) -> Grant | None:
    found = _BINDING.match(reason)
    if found is None:
        return None
    name, namespace, of_cluster, kind, role, group = found.groups()
    binding = Binding("ClusterRoleBinding", "", of_cluster) if of_cluster else Binding("RoleBinding", namespace, name)
    return Grant(binding, (kind, role), group or "", at)
