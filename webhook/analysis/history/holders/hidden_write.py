"""What a write means whose object a log does not show: a renewal, or a write by another one.

In: the holder and the writer. Out: one of a few kinds, by the two tables below. `inferring` does what follows.
"""

from enum import Enum, auto

from webhook.analysis.history.holders.rival import Rival, estimate_patience
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure
from webhook.analysis.inputs.items import Writer


class HiddenWrite(Enum):
    """What is taken for true of such a write."""

    RENEWAL = auto()
    SHOWN_RENEWAL = auto()
    """A renewal that another input, such as a watch, shows or will show."""
    BY_RIVAL = auto()
    """By a writer that may turn out to be the next holder."""
    BY_ANOTHER = auto()
    UNCLEAR = auto()
    """It cannot be known whether the holder made it: nothing follows."""


def name_writer(writer: Writer) -> str:
    """Return the text that stands in for a holder that no input shows."""
    return writer.pod or writer.name


def classify_write_to_unknown(tenure: Tenure, rival: Rival, writer: Writer, verb: str) -> HiddenWrite:
    """Classify a write to a lease of which no input shows an object; the holder is a writer that stands in for it.

    | the writer | kind |
    |---|---|
    | of the holder's name, acting as the same user as before, and not known to be another process | RENEWAL |
    | any other, acting as itself or as the same user, that writes as the holder does | BY_RIVAL |
    | any other, and an API server, which only chooses holders and asks them to step down | BY_ANOTHER |
    """
    who, acted_before = name_writer(writer), tenure.processes.impersonator
    if who == API_SERVER:
        return HiddenWrite.BY_ANOTHER
    if tenure.holder == who and writer.impersonator == acted_before and tenure.is_by(writer) is not False:
        return HiddenWrite.RENEWAL
    is_as_itself = writer.impersonator in {"", acted_before}
    is_rival = rival.is_writing_like_holder(verb) and is_as_itself
    return HiddenWrite.BY_RIVAL if is_rival else HiddenWrite.BY_ANOTHER


def classify_write_to_known(
    tenure: Tenure, writer: Writer, verb: str, at: int, usual: int | None, *, is_shown_beside: bool
) -> HiddenWrite:
    """Classify a write at `at` to a lease that an input showed; `usual` is the holder's interval, if it is known.

    `is_shown_beside`: a watch shows what was stored. Without, a renewal is as missing as any other.

    | the writer | renewals until then | kind |
    |---|---|---|
    | the holder's process, by a patch, which may change anything | | UNCLEAR |
    | an API server, which may only ask the holder that it chose to step down | | UNCLEAR |
    | the holder's process | one is missing | RENEWAL |
    | the holder's process | none is missing | SHOWN_RENEWAL |
    | known to be another one, and no API server | | BY_ANOTHER |
    | any other | | UNCLEAR |
    """
    is_own = tenure.is_by(writer)
    if is_own and (verb == "patch" or writer.user == API_SERVER):
        return HiddenWrite.UNCLEAR
    if is_own:
        is_missed = not is_shown_beside or at - tenure.last_renewal > estimate_patience(usual)
        return HiddenWrite.RENEWAL if is_missed else HiddenWrite.SHOWN_RENEWAL
    is_another = is_own is False and writer.user != API_SERVER
    return HiddenWrite.BY_ANOTHER if is_another else HiddenWrite.UNCLEAR
