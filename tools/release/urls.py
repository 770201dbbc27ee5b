"""The addresses of a release: they belong to whoever publishes it, so they are added to the tree that is built."""

import re
from pathlib import Path
from typing import Final

_LINK: Final = re.compile(r"(!?\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+\))")


def add_urls(tree: Path, url: str, version: str) -> None:
    """Name the pages of the repository at `url` in pyproject.toml, and make README's links lead there.

    A package index shows README outside of the repository, where relative links lead nowhere.
    """
    pages = f"{url}/blob/v{version}"
    urls = {
        "Homepage": url,
        "Documentation": f"{pages}/docs/README.md",
        "Changelog": f"{pages}/CHANGELOG.md",
        "Source": f"{url}/tree/v{version}",
        "Security": f"{pages}/SECURITY.md",
    }
    lines = "".join(f'{name} = "{address}"\n' for name, address in urls.items())
    project = tree / "pyproject.toml"
    project.write_text(f"{project.read_text()}\n[project.urls]\n{lines}")
    readme = tree / "README.md"
    readme.write_text(make_links_absolute(readme.read_text(), pages, f"{url}/raw/v{version}"))


def make_links_absolute(text: str, pages: str, raw: str) -> str:
    """Return Markdown whose relative links begin with `pages`, and whose pictures begin with `raw`."""
    return _LINK.sub(lambda found: f"{found[1]}{raw if found[1].startswith('!') else pages}/{found[2]}", text)
