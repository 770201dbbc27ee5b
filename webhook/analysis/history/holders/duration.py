"""For how long a lease lasts by what its holder wrote, and by what another writer made of that.

A holder does not know what another one writes into its lease: it counts on its own duration. So fewer seconds by
another writer shorten the lease for those that wait for it, and not for its holder.
"""

from msgspec import Struct


class HeldDuration(Struct, frozen=True):
    """The leaseDurationSeconds of one tenure."""

    seconds: int | None = None
    """Seconds that the lease lasts, without what another writer took from them."""
    shorter: int | None = None
    """Fewer seconds, if a writer that may be the holder wrote them with its last renewal."""
    shortened_at: int = 0
    """The time at which another writer shortened it, in microseconds since 1970; 0 if none did since the last
    renewal."""

    before_longer: int | None = None
    """Fewer seconds that it lasted until another writer, at a time that is not known, made it last longer: the lease
    may have expired by then."""

    own: int | None = None
    """Seconds that it lasted until another writer made it last longer, and as its holder counts until it renews."""

    @property
    def others(self) -> tuple[int, ...]:
        """Other numbers of seconds by which it may have lasted since the last renewal."""
        return tuple(one for one in (self.shorter, self.before_longer) if one is not None)

    @property
    def least(self) -> int | None:
        """Seconds that it lasts at least: less than `seconds` if who wrote fewer may be its holder."""
        return self.seconds if self.shorter is None or self.seconds is None else min(self.seconds, self.shorter)

    def would_change(self, seconds: int | None) -> bool:
        """Return whether a state of so many seconds says another thing than what is known."""
        return seconds != self.seconds or self.shorter not in {None, seconds}

    def confirm(self) -> "HeldDuration":
        """Return what holds after a renewal that kept the duration, or whose holder wrote it."""
        return HeldDuration(self.seconds)

    def follow(self, seconds: int | None, at: int, *, is_own: bool, may_be_own: bool) -> "HeldDuration":
        """Return what holds after a write at `at` of other `seconds`: `is_own` if the holder wrote it, or it may be.

        | who wrote it | seconds | it lasts | and perhaps |
        |---|---|---|---|
        | the holder | any | that | as before |
        | perhaps the holder | other than `shorter` | the longer of both | that |
        | another writer | more | that | as before |
        | another writer | fewer | as before | as before |
        | another writer | fewer, after one wrote more | that, or as its holder counts if that is longer | as before |
        """
        shorter, shortened_at = self.shorter, self.shortened_at
        if not is_own and may_be_own and seconds != shorter:
            shorter, shortened_at = seconds, at
        if is_own or self.seconds is None:
            return HeldDuration(seconds, shorter, shortened_at, self.before_longer)
        is_longer = (seconds or 0) > self.seconds
        own = self.seconds if is_longer and self.own is None else self.own
        lasts = self.seconds if own is None else max(seconds or 0, own)
        return HeldDuration(lasts, shorter, shortened_at, self.before_longer, own)
