"""The presets, as policy files inside the package."""

from importlib.resources import files


def text(preset: str) -> str:
    """The policy file of one preset: package data, read like code."""
    return files(__name__).joinpath(f"{preset}.yaml").read_text(encoding="utf-8")
