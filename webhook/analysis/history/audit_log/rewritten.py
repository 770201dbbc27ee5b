"""What was stored differently than requests asked, by field: a mutating webhook or policy changes writes of the lease.

In: each stored write of an audit log. Out: how often each field was changed, when, and by which webhooks.
"""

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation, Writer
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY, MutatingWebhook, Rewriting
from webhook.kubernetes.objects import Lease


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
    spans: dict[Writer, tuple[int, int]] = field(default_factory=dict)
    """When the first and the last one of each process was answered; of the first processes only."""
    is_same: bool = True
    """The same value was stored each time."""
    beside: Writer | None = None
    """Of the holder: another process that wrote between these as the one that was stored. Both may lead."""
    _latest_beside: Writer | None = None

    def note(self, at: int, writer: Writer, rewriting: Rewriting) -> None:
        """Note one of these writes."""
        self.is_same = self.is_same and (not self.count or self.stored == rewriting.stored)
        self.count, self.asked, self.stored = self.count + 1, rewriting.asked, rewriting.stored
        self.writer, self.latest = writer, at
        if writer in self.spans or len(self.spans) < MAX_LISTED:
            self.spans[writer] = (self.spans.get(writer, (at, at))[0], at)
        self.beside = self._latest_beside or self.beside

    def note_other_write(self, holder: str, writer: Writer) -> None:
        """Note a stored write that asked for a holder, and of which that was stored."""
        if holder == self.stored and writer.user and writer not in self.spans:
            self._latest_beside = writer


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
        writer = seen.writer.process if seen.writer else Writer()
        sent = seen.object if seen.asked is None else seen.asked
        if isinstance(sent, Lease) and not self.asked_holder and HOLDER_IDENTITY in self.found:
            self.found[HOLDER_IDENTITY].note_other_write(sent.spec.holder_identity or "", writer)
        for rewriting in seen.rewritings:
            known = self.found.setdefault(rewriting.field, RewrittenField(rewriting.field, at - seen.took, at))
            known.note(at, writer, rewriting)
            known.is_named = known.is_named and bool(rewriting.webhooks)
            for webhook in rewriting.webhooks:
                if len(known.webhooks) < MAX_LISTED:
                    known.webhooks[webhook] = None

    def find_span(self, name: str, writer: Writer, start: int, end: int) -> tuple[int, int] | None:
        """Return from when to when writes of a process were stored with another field, if within a time; else None."""
        known = self.found.get(name)
        span = known.spans.get(writer.process) if known is not None else None
        return span if span is not None and start <= span[0] and span[1] <= end else None
