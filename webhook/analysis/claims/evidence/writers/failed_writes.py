"""Words about writes whose answer says that they failed: in which log, and whether they were stored all the same."""

from collections.abc import Sequence
from typing import Final

from webhook.analysis.claims.words import format_name
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import SECOND

_MAX_LOGS: Final = 2
_ALL_THE_SAME: Final = "stored all the same"


def name_logs(history: LeaseHistory, refused: Sequence[Refusal]) -> str:
    """Say in which of several logs some answers are: each may be the log of another API server."""
    names = {path: path.rpartition("/")[2] for path in history.requests.logs}
    found = sorted({names[one.log] for one in refused if one.log in names})
    # Names that several folders have say nothing.
    is_clear = len(names) > 1 and len(set(names.values())) == len(names) and len(found) <= _MAX_LOGS
    return f" (log {' and '.join(map(format_name, found))})" if is_clear and found else ""


def may_have_stored(failed: Sequence[Refusal]) -> bool:
    """Return whether one of the writes that failed was stored all the same, or may have been."""
    return any(one.was_stored is not False for one in failed)


def describe_stored(failed: Sequence[Refusal]) -> str:
    """`, and was stored all the same`, `, any of which may have been stored all the same`, "" if none was.

    What an API server did not receive as a whole it did not store, and that is no failure of its own.
    """
    if failed and all(one.is_cut_off and not one.was_stored for one in failed):
        return f", as the API server did not receive all of {'it' if len(failed) == 1 else 'them'}"
    stored = sum(1 for one in failed if one.was_stored)
    unknown = sum(1 for one in failed if one.was_stored is None)
    if not stored and not unknown:
        return ""
    if len(failed) == 1:
        return f", and {'was' if stored else 'may have been'} {_ALL_THE_SAME}"
    if unknown == len(failed):
        return f", any of which may have been {_ALL_THE_SAME}"
    parts = [f"{stored} of which {'was' if stored == 1 else 'were'} {_ALL_THE_SAME}"] if stored else []
    parts += [f"{unknown} of which may have been {_ALL_THE_SAME}"] if unknown else []
    return f", {', and '.join(parts)}"


def describe_last_renewal(history: LeaseHistory, tenure: Tenure, at: int) -> str:
    """Say of a holder's last renewal, at `at` in microseconds since 1970, if its answer says that it failed.

    Its stamp has whole seconds, and the fraction is of the clock of its writer.
    """
    failed = (one for one in history.requests.refusals if one.was_stored and tenure.is_by(one.writer) is True)
    found = next((one for one in failed if one.received // SECOND * SECOND <= at <= one.at), None)
    return f", by a write that was answered with {found.code} and {_ALL_THE_SAME}" if found else ""
