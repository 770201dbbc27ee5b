"""docs/architecture.md lists every package."""

from tests.docs.pages import DOCS, ROOT, section, table

SHELL = {"webhook/evaluate.py", "webhook/policy_file.py"}
"""Modules that the table lists beside the packages."""


def test_every_package_is_explained() -> None:
    listed = {row[0].strip("`").rstrip("/") for row in table(section(DOCS / "architecture.md", "Packages"), "package")}
    packages = {f"webhook/{path.parent.name}" for path in (ROOT / "webhook").glob("*/__init__.py")}
    assert listed == packages | SHELL
