"""Values on the command line; what is wrong with one is said in words."""

import argparse
import math
import re
from typing import Final

MOST_DAYS: Final = 36500
LARGEST_PORT: Final = 65535

_LIFE: Final = re.compile(r"([0-9]{1,6})([dh])")


def add_format(parser: argparse.ArgumentParser, lines: str = "json prints one line") -> None:
    """The option that has a program read what a command prints."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help=lines)


def count(text: str) -> int:
    """A whole number above 0."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def days(text: str) -> float:
    """A life in days."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days above 0 and at most {MOST_DAYS}")
    return number


def life(text: str) -> float:
    """A time such as 14d or 36h, in days."""
    found = _LIFE.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 14d or 36h")
    return int(found[1]) / (1 if found[2] == "d" else 24)


def server(text: str) -> tuple[str, int]:
    """HOST:PORT of something that listens; an IPv6 address stands in brackets."""
    host, port = endpoint(text)
    if port == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT: nothing listens on port 0")
    return host, port


def endpoint(text: str) -> tuple[str, int]:
    """HOST:PORT to listen on; port 0 is any."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 0.0.0.0:8443 or [::]:8443")
    return host.strip("[]"), int(port)
