"""The user of the holder became another one: another workload may have taken a lease that is not its own."""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice.on_writers import advise_on_writer
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import describe_user, format_clock
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer

_LEAST: Final = 2


class ChangedUser(Struct, frozen=True):
    """`after` took the lease at `at`, which `before` held until `until`, and read last at `read`, 0 if not since."""

    before: Writer
    after: Writer
    at: int
    until: int
    read: int

    def describe(self) -> str:
        """`its user changed to shop/db: until 12:00:40Z shop/mail held it, which last read it at 12:00:42Z`."""
        until = format_clock(self.until, self.at)
        read = f", which last read it at {format_clock(self.read, self.at)}" if self.read else ""
        return (
            f"its user changed to {describe_user(self.after)}: until {until} {describe_user(self.before)} held it{read}"
        )

    def advise(self, history: LeaseHistory) -> Advice:
        """Return what to do: only people know whether both are to use it."""
        sentence = (
            f"Check whether {describe_user(self.after)} is to use this lease: "
            f"until {format_clock(self.until, history.moment)} {describe_user(self.before)} held it."
        )
        return advise_on_writer(sentence, history, self.after)


def find_changed_user(history: LeaseHistory) -> ChangedUser | None:
    """Return how the user of the present holder differs from that of the one before; None if it is not known to."""
    if len(history.tenures) < _LEAST or history.current_tenure is None:
        return None
    before, after = list(history.tenures)[-_LEAST:]
    old, new = _find_user(before), _find_user(after)
    is_other_name = after.holder != before.holder and before.until is not None
    if old is None or new is None or old.user == new.user or not is_other_name:
        return None
    requests = history.requests
    names = (old.name, *requests.accounts.get(old.user, ()))
    read = max(requests.readers.get(one, (0, 0))[1] for one in names)
    return ChangedUser(old, new, after.since, before.until or 0, read if read > after.since else 0)


def _find_user(tenure: Tenure) -> Writer | None:
    """Return the process of a holder, if it is known to have taken or renewed the lease under its own credentials."""
    own = tenure.processes.own
    is_known = tenure.processes.is_process_known or tenure.processes.renewals > 0
    is_plain = own is not None and not own.impersonator and not tenure.is_stand_in
    return own if is_known and is_plain else None
