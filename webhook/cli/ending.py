"""Has a program that runs until Ctrl-C end once: signals after the first must not cut its end short.

They would leave a kubectl behind, which is stopped in that end.
"""

import signal
from typing import Final

_ENDING: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def raise_at_first_signal() -> None:
    """Have the first signal that ends programs raise KeyboardInterrupt, and those after it do nothing."""
    for number in _ENDING:
        signal.signal(number, _interrupt)


def ignore_signals() -> None:
    """Have signals that end programs do nothing, also while Python itself ends: it puts handlers of its own back."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: object) -> None:
    # Not SIG_IGN: Python complains of one that has come, and whose handler it has not called before that is ignored.
    for number in _ENDING:
        signal.signal(number, _do_nothing)
    raise KeyboardInterrupt


def _do_nothing(_number: int, _frame: object) -> None:
    """Let the end go on."""
