"""Annotations mean the same on Python 3.14, which resolves them late, among the names of the class (PEP 649)."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import webhook

MODULES = sorted(
    found.name for found in pkgutil.walk_packages(webhook.__path__, "webhook.") if "__main__" not in found.name
)


def classes(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the classes of a module with their qualified names; those inside of functions are not importable."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield f"{prefix}{inner.name}", inner
            yield from classes(inner, f"{prefix}{inner.name}.")


def resolved_late(owner: type, namespace: dict[str, Any], name: str, text: str) -> bool:
    """Return whether an annotation, evaluated among the names of the finished class, is the one that the class has."""
    stored = inspect.get_annotations(owner)[name]
    return isinstance(stored, str) or bool(eval(text, namespace, dict(vars(owner))) == stored)


@pytest.mark.parametrize("module", MODULES)
def test_no_annotation_of_a_class_is_shadowed_by_another_of_its_fields(module: str) -> None:
    imported = importlib.import_module(module)
    tree = ast.parse(Path(str(imported.__file__)).read_text())
    shadowed = [
        f"{owner}.{field.target.id}"
        for owner, node in classes(tree)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if not resolved_late(
            attrgetter(owner)(imported), vars(imported), field.target.id, ast.unparse(field.annotation)
        )
    ]
    assert shadowed == []
