"""The library that draws the page, and what the page says about it; `vendor/d3.json` names its origin."""

from importlib import resources
from typing import Final

import msgspec
from msgspec import Struct


class Library(Struct, frozen=True):
    """A file of another project that the page carries whole; `file_sha512` is in hexadecimal."""

    name: str
    version: str
    license: str
    package: str
    package_sha512: str
    file: str
    file_sha512: str


LIBRARY: Final = msgspec.json.decode(resources.files(__package__).joinpath("vendor/d3.json").read_bytes(), type=Library)
