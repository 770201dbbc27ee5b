"""A finding about a stored object."""

from typing import Final

from msgspec import Struct

from webhook.reports.model import Severity

RANK: Final = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class Finding(Struct, frozen=True):
    """What is wrong with one object, as one sentence, and what to do about it; `source` is where it was read."""

    kind: str
    namespace: str
    name: str
    check: str
    severity: Severity
    message: str
    repair: str
    source: str = ""

    @property
    def fingerprint(self) -> str:
        """What identifies a finding in another run: it contains no times and no counts."""
        return "/".join((self.kind, self.namespace, self.name, self.check))

    def is_at_least(self, threshold: Severity) -> bool:
        """Whether it is at least as severe as a threshold."""
        return RANK[self.severity] >= RANK[threshold]
