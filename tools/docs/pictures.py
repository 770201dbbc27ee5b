"""`make pictures`: the pictures of recorded incidents for the documents, as the page of a timeline shows them."""

import io
import os
import shutil
import sys
import tempfile
from contextlib import redirect_stderr
from pathlib import Path
from typing import Final

from tools.docs.pages import DOCS, ROOT
from webhook.cli.main import main as command

FOLDER: Final = DOCS / "images" / "elections"
_INCIDENTS: Final = ROOT / "tests" / "data" / "incidents"

COMMANDS: Final = {
    "election": ("leader-released", "cart/cart", "--now", "2026-11-22T04:12:23Z"),
    "crash": ("leader-killed", "payments/payments"),
    "release": ("leader-released", "cart/cart"),
    "coordinated": ("coordinated", "scheduler/scheduler"),
    "steal-warned": ("steal-warned", "receipts/receipts"),
    "steal-denied": ("steal-denied", "vouchers/vouchers"),
    "fenced": ("fenced", "shipping/operator"),
    "slow-api-server": ("etcd-stalled", "orders/orders"),
}
"""By picture: the incident, and how the command is called on its watch and its audit log."""
_STYLE: Final = """
header, #instant, #below, #about, #details > :not(.story) {
  display: none !important;
}
body { padding: 8px; }
#legend { padding: 4px 8px 0; }
#chart { border-radius: 8px; }
#details { border: 0; padding: 0; margin: 4px 0 0; max-height: none; }
.story .whole { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
"""
"""A picture leaves out controls, and what a long text says after its second line."""


def main() -> None:
    """Draw every picture in Chromium."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - installed by the target alone

    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("make pictures needs Chromium: apt-get install chromium, or CHROMIUM=/path/of/it")
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as driver:
        # As root, as in a container, Chromium starts without its sandbox only.
        browser = driver.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        for name, (incident, *words) in COMMANDS.items():
            file = Path(directory, f"{name}.html")
            inputs = [f"--input={_INCIDENTS / incident / one}" for one in ("leases.json.gz", "audit.log.gz")]
            with redirect_stderr(io.StringIO()) as said:
                assert command(["timeline", *inputs, *words, "-o", str(file)]) == 0, said.getvalue()
            # The policy of the page forbids a style of another origin.
            page = browser.new_page(viewport={"width": 960, "height": 700}, device_scale_factor=1.5, bypass_csp=True)
            page.goto(file.as_uri())
            page.add_style_tag(content=_STYLE)
            page.wait_for_timeout(500)
            page.locator("body").screenshot(path=FOLDER / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
