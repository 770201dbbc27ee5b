"""docs/architecture.md explains every package."""

from tools.docs.pages import DOCS, ROOT, find_section, find_table

ROOMS = ("admission", "analysis", "api_server")
"""Packages whose parts have rows of their own."""


def test_every_package_is_explained() -> None:
    top = ROOT / "webhook"
    folders = [top, *(top / room for room in ROOMS)]
    packages = {path.parent for folder in folders for path in folder.glob("*/__init__.py")}
    parts = packages - {top / room for room in ROOMS}
    parts |= {path for folder in folders for path in folder.glob("*.py") if not path.name.startswith("__")}
    rows = {
        row[0].strip("`").rstrip("/")
        for row in find_table(find_section(DOCS / "architecture.md", "Packages"), "package")
    }
    assert rows == {str(path.relative_to(ROOT)) for path in parts}
