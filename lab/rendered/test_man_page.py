"""The manual page as groff reads it."""

import subprocess

from tools.docs.man_page import make_man_page


def test_roff_reads_the_page_without_a_warning() -> None:
    result = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-cbu"],
        input=make_man_page(), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert result.stderr == ""
    assert "lease-webhook why [OPTIONS] [NAMESPACE/NAME]" in result.stdout
