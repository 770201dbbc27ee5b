"""Run in Pyodide: write the output of every command that is stored to a file, a line each."""

import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from lab.outputs.__main__ import compute_output
from lab.outputs.commands import ROOT, list_invocations

WITHOUT: Final = ("certs", "doctor")
"""Commands that import cryptography, which has no wheel for Pyodide; no page needs them."""


def main() -> None:
    """Write to the file that is the only argument."""
    os.chdir(ROOT)
    os.environ.update(NO_COLOR="1", COLUMNS="120")
    invocations = (one for one in list_invocations() if one.words[0] not in WITHOUT)
    Path(sys.argv[1]).write_bytes(b"\n".join(msgspec.json.encode(compute_output(one)) for one in invocations))


if __name__ == "__main__":
    main()
