"""A write of a lease that the API server did not store, or was slow to store, and what in it refused the write."""

import re
from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.api.text import cut
from webhook.observations.observation import Observation, Writer
from webhook.rules.times import SECOND

SLOW: Final = 1 * SECOND
"""An answer that took longer is remembered: clients give up after a few seconds."""
LONGEST_MESSAGE: Final = 400

_WEBHOOK: Final = re.compile(r'admission webhook "([^"]{1,253})" denied the request')
_POLICY: Final = re.compile(r"ValidatingAdmissionPolicy '([^']{1,253})'")
_RIGHTS: Final = re.compile(r' is forbidden: User "[^"]*" cannot ')


class By(StrEnum):
    """What in an API server refused a write."""

    RIGHTS = "rights"
    """The writer may not do this: RBAC, or another authorizer."""
    WEBHOOK = "webhook"
    POLICY = "policy"
    """A ValidatingAdmissionPolicy."""
    OTHER = "other"


class Refusal(Struct, frozen=True):
    """A write that was not stored, or an answer that was slow (`code` is then one of success)."""

    at: int
    code: int
    message: str
    took: int
    writer: Writer

    @property
    def received(self) -> int:
        """When the API server received it, in microseconds since 1970."""
        return self.at - self.took

    @property
    def is_denied(self) -> bool:
        """Whether the API server did not want it, rather than being unable to store it, or asked to try again."""
        return 400 <= self.code < 500 and self.code not in {404, 409, 429}

    @property
    def has_failed(self) -> bool:
        """Whether the API server was unable to store it."""
        return self.code >= 500 or self.code == 429

    @property
    def by(self) -> By:
        """What refused it, as far as the message says."""
        if _WEBHOOK.search(self.message):
            return By.WEBHOOK
        if _POLICY.search(self.message):
            return By.POLICY
        return By.RIGHTS if _RIGHTS.search(self.message) or self.code == 401 else By.OTHER

    @property
    def name(self) -> str:
        """The name of the webhook or policy that refused it, "" if it was neither."""
        found = _WEBHOOK.search(self.message) or _POLICY.search(self.message)
        return found[1] if found else ""


def refusal_of(seen: Observation) -> Refusal | None:
    """What is remembered of an answer; None if the write was stored in time."""
    answer = seen.answer
    if answer is None or (answer.is_stored and answer.took <= SLOW):
        return None
    return Refusal(
        seen.at or 0, answer.code, cut(answer.message, LONGEST_MESSAGE), answer.took, seen.writer or Writer()
    )
