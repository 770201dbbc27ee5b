"""Pictures of recorded incidents for the pages, drawn by `lease-webhook timeline --format svg`."""

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import Final

from tools.docs.pages import DOCS, ROOT
from webhook.cli.main import main

FOLDER: Final = DOCS / "images" / "elections"
_INCIDENTS: Final = ROOT / "tests" / "data" / "incidents"

COMMANDS: Final = {
    "election": ("leader-released", "--lease", "cart/cart", "--to", "2026-11-22T04:12:23Z"),
    "crash": ("leader-killed", "--lease", "payments/payments"),
    "release": ("leader-released", "--lease", "cart/cart"),
    "coordinated": ("coordinated", "--lease", "scheduler/scheduler"),
    "steal-warned": ("steal-warned", "--lease", "receipts/receipts"),
    "steal-denied": ("steal-denied", "--lease", "vouchers/vouchers"),
    "fenced": ("fenced", "--lease", "shipping/operator"),
    "slow-api-server": ("etcd-stalled", "--lease", "orders/orders"),
}
"""By picture: the incident, and how the command is called on its watch and its audit log."""


def pictures() -> dict[str, str]:
    """SVG by file name below FOLDER."""
    return {f"{name}.svg": _drawn(*words) for name, words in COMMANDS.items()}


def _drawn(incident: str, *words: str) -> str:
    files = [str(_INCIDENTS / incident / name) for name in ("leases.json.gz", "audit.log.gz")]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["timeline", *files, *words, "--format", "svg"])
    assert (status, err.getvalue()) == (0, ""), (incident, err.getvalue())
    return out.getvalue()
