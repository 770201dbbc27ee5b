"""docs/architecture.md lists every package, in the order that import-linter checks."""

import tomllib

from tools.docs.pages import DOCS, ROOT, section, table

NOT_LISTED = {"__init__", "__main__"}


def listed() -> list[str]:
    """The packages and modules of the table, from the top."""
    return [row[0].strip("`").rstrip("/") for row in table(section(DOCS / "architecture.md", "Packages"), "package")]


def test_every_package_is_explained() -> None:
    packages = {f"webhook/{path.parent.name}" for path in (ROOT / "webhook").glob("*/__init__.py")}
    modules = {f"webhook/{path.name}" for path in (ROOT / "webhook").glob("*.py") if path.stem not in NOT_LISTED}
    assert sorted(listed()) == sorted(packages | modules)


def test_the_order_is_that_of_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if "containers" not in one and one["type"] == "layers")
    depth = {name: number for number, layer in enumerate(layers) for name in layer.split(" | ")}
    found = [depth[name.removesuffix(".py").replace("/", ".")] for name in listed()]
    assert found == sorted(found)
