"""What was stored differently than requests asked, by field: a mutating webhook or policy changes writes of the lease.

In: each stored write of an audit log. Out: how often each field was changed, when, and by which webhooks.
"""

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation, Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, MutatingWebhook


class RewrittenField(Struct):
    """A field of which `count` writes were stored with another value than asked.

    The first one was received at `earliest`, the last one, of `writer`, answered at `latest`: microseconds since 1970.
    `asked` and `stored` are the values of the last one, as text.
    """

    name: str
    earliest: int
    latest: int
    count: int = 0
    asked: str = ""
    stored: str = ""
    writer: Writer = Writer()
    webhooks: dict[MutatingWebhook, None] = field(default_factory=dict)
    """The webhooks that the log names, in its order."""
    is_named: bool = True
    """The log names a webhook for every one of these writes."""


class RewrittenFields(Struct):
    """The fields of one lease that were changed on their way.

    `asked_holder` is what the last write asked for, if another holder was stored; else "".
    """

    found: dict[str, RewrittenField] = field(default_factory=dict)
    asked_holder: str = ""
    latest: int = 0
    """When the last stored write was answered."""
    _version: str = ""
    """The resourceVersion of the last stored write, "" if the input does not show it."""

    def take(self, seen: Observation) -> None:
        """Take in a stored write; one that left the lease as it was stored nothing else than was asked."""
        self.asked_holder = next((one.asked for one in seen.rewritings if one.field == HOLDER_IDENTITY), "")
        if seen.resource_version and seen.resource_version == self._version:
            return
        self._version = seen.resource_version
        at = seen.at or 0
        self.latest = at
        for rewriting in seen.rewritings:
            known = self.found.setdefault(rewriting.field, RewrittenField(rewriting.field, at - seen.took, at))
            known.count, known.latest, known.asked, known.stored = (
                known.count + 1,
                at,
                rewriting.asked,
                rewriting.stored,
            )
            known.writer = seen.writer.process if seen.writer else Writer()
            known.is_named = known.is_named and bool(rewriting.webhooks)
            for webhook in rewriting.webhooks:
                if len(known.webhooks) < MAX_LISTED:
                    known.webhooks[webhook] = None
