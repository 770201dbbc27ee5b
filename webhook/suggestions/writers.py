"""Who writes a lease: what each user did, and whom a suggestion leaves out."""

from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from webhook.api.formats import dns_label, dns_subdomain
from webhook.observations.observation import Observation, Writer
from webhook.rules.glob import WILDCARDS
from webhook.suggestions.evidence import Evidence

API_SERVER: Final = "system:apiserver"
MOST_REASONS: Final = 4

_PREFIX: Final = "system:serviceaccount:"
_NODE: Final = "system:node:"


class Record(Struct):
    """What one user did to one lease.

    `suspicious` are the writes that look like an attack, by what they did; `begins_so` if the first of all is one.
    """

    uses: Evidence = field(default_factory=Evidence)
    suspicious: dict[str, Evidence] = field(default_factory=dict)
    begins_so: bool = False

    def add(self, seen: Observation, suspicions: tuple[str, ...]) -> None:
        """Count one request."""
        self.begins_so = self.begins_so or (not self.uses.count and bool(suspicions))
        self.uses.add(seen)
        for what in suspicions:
            self.suspicious.setdefault(what, Evidence()).add(seen)

    def is_left_out(self, user: str, namespace: str) -> bool:
        """Whether the user came to the lease by what looks like an attack, or does not belong to it and made one."""
        return self.begins_so or (bool(self.suspicious) and is_stranger(user, namespace))

    @property
    def reasons(self) -> str:
        """What looks like an attack, in words."""
        shown = [f"{what} ({found.text('time')})" for what, found in list(self.suspicious.items())[:MOST_REASONS]]
        return "; ".join(shown)


@lru_cache(maxsize=1024)
def account_of(user: str) -> tuple[str, str] | None:
    """(namespace, name) of a service account with legal names, else None."""
    found = Writer(user).name.partition("/") if user.startswith(_PREFIX) else ("", "", "")
    namespace, _, name = found
    return None if dns_label(namespace) or dns_subdomain(name) else (namespace, name)


def is_stranger(user: str, namespace: str) -> bool:
    """Whether a user is a node, or a service account of another namespace."""
    account = account_of(user)
    return user.startswith(_NODE) or (account is not None and account[0] != namespace)


def is_always_exempt(writer: Writer) -> bool:
    """Whether no rule that a policy can exempt from applies to a writer."""
    return writer.user == API_SERVER or writer.is_administrator


def is_name(text: str) -> bool:
    """Whether a name means only itself in a policy, and can stand there."""
    return bool(text) and text == text.strip() and text.isprintable() and not any(one in text for one in WILDCARDS)


def left_out(user: str, what: str, why: str) -> str:
    """The text about something that a suggestion does not allow."""
    return f"left out: {Writer(user).name} on {what}: {why}"
