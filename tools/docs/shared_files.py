"""The files that the wheel installs below `share/`: the manual page, and a completion for each shell."""

import io
from contextlib import redirect_stdout
from typing import Final

from tools.docs.man_page import make_man_page
from tools.docs.pages import ROOT
from webhook.cli.main import main

FOLDER: Final = ROOT / "deploy" / "share"
_COMPLETIONS: Final = {
    "bash": "bash-completion/completions/lease-webhook",
    "zsh": "zsh/site-functions/_lease-webhook",
    "fish": "fish/vendor_completions.d/lease-webhook.fish",
}


def make_shared_files() -> dict[str, str]:
    """Return the text by path below FOLDER."""
    completions = {path: _capture_output(["completion", shell]) for shell, path in _COMPLETIONS.items()}
    return {"man/man1/lease-webhook.1": make_man_page(), **completions}


def _capture_output(arguments: list[str]) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        main(arguments)
    return out.getvalue()
