"""Identity binding: the allowed writers and holder identities of one lease."""

from typing import Final

from msgspec import Struct

from webhook.api.user import UserInfo

POD: Final = "${pod}"
"""In a holder template, the pod name of the writer's token."""


class Binding(Struct, frozen=True):
    """Writers and holder templates of one lease.

    `service_accounts` are (namespace, name) pairs, `users` are user names; `holders` are globs in which `${pod}`
    stands for the pod name of the writer's token. Without a pod name a template with `${pod}` cannot be checked:
    that is a warning, or a denial if `require_pod` is set.
    """

    service_accounts: frozenset[tuple[str, str]] = frozenset()
    users: frozenset[str] = frozenset()
    holders: tuple[str, ...] = ()
    require_pod: bool = False

    def lists(self, user: UserInfo) -> bool:
        """Whether the user is one of the writers."""
        return user.username in self.users or user.service_account in self.service_accounts
