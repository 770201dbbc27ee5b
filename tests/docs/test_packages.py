"""docs/architecture.md lists every package, in an order that import-linter checks."""

import tomllib
from typing import Any

from tools.docs.pages import DOCS, ROOT, section, table

NOT_LISTED = {"__init__", "__main__"}
PRODUCTS = ("webhook/admission", "webhook/analysis", "webhook/api_server")
"""What they hold is listed instead of them."""


def listed() -> list[str]:
    """The packages and modules of the table, from the top."""
    return [row[0].strip("`").rstrip("/") for row in table(section(DOCS / "architecture.md", "Packages"), "package")]


def held_by(folder: str) -> set[str]:
    """The packages and modules in a folder."""
    packages = {f"{folder}/{path.parent.name}" for path in (ROOT / folder).glob("*/__init__.py")}
    return packages | {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.py") if path.stem not in NOT_LISTED}


def depths() -> dict[str, tuple[int, int]]:
    """The place of each package and module in the contracts: its product's, then its own."""
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    layers = {one.get("containers", [""])[0]: one["layers"] for one in contracts if one["type"] == "layers"}
    found: dict[str, tuple[int, int]] = {}
    for number, layer in enumerate(layers[""]):
        for name in layer.split(" | "):
            found[name] = number, 0
            for inner_number, inner in enumerate(layers[name] if name.replace(".", "/") in PRODUCTS else ()):
                found |= {f"{name}.{one}": (number, inner_number) for one in inner.split(" | ")}
    return found


def test_every_package_is_explained() -> None:
    expected = held_by("webhook").difference(PRODUCTS).union(*map(held_by, PRODUCTS))
    assert sorted(listed()) == sorted(expected)


def test_the_order_is_that_of_the_layers() -> None:
    """Products that stand beside each other are listed one after the other."""
    known = depths()
    names = [name.removesuffix(".py").replace("/", ".") for name in listed()]
    assert [known[name][0] for name in names] == sorted(known[name][0] for name in names)
    for product in PRODUCTS:
        own = [known[name] for name in names if name.startswith(product.replace("/", "."))]
        assert own == sorted(own)
