"""Memory that was freed goes back to the system, if the C library is glibc: it keeps what small pieces hold apart."""

import ctypes
import functools
from collections.abc import Callable


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None  # musl and others
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


def give_back() -> None:
    """Return what is free; some milliseconds."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)
