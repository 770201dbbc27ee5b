"""`make site`: build the site into build/site/html, and refuse a link, an anchor or a page that leads nowhere."""

import argparse
import logging
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from tools.docs.pages import ROOT
from tools.site.staging import expand, write_stage

CONFIG: Final = Path(__file__).parent / "mkdocs.yml"
BUILD: Final = ROOT / "build" / "site"
WEB: Final = ROOT / "build" / "web" / "page"
"""The page of `make web`, which is part of the site if it was built."""
_OUTSIDE: Final = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//|class="mermaid"')
"""Matches a resource that a browser would fetch from elsewhere."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site. Return 1 if it is not whole."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("--url", help="the repository, for the link to it")
    options = parser.parse_args(arguments)
    shutil.rmtree(BUILD, ignore_errors=True)
    pages = BUILD / "pages"
    paths = write_stage(pages)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.INFO)
    config = load_config(
        str(CONFIG), docs_dir=str(pages), site_dir=str(BUILD / "html"), strict=True, repo_url=options.url
    )
    config.nav = expand(config.nav, paths)
    try:
        build(config)
    except MkDocsException as error:
        print(error, file=sys.stderr)
        return 1
    if WEB.exists():
        shutil.copytree(WEB, BUILD / "html" / "page")
    fetching = [path for path in sorted((BUILD / "html").rglob("*.html")) if _OUTSIDE.search(path.read_text())]
    for path in fetching:
        print(f"{path.relative_to(ROOT)} fetches something from elsewhere", file=sys.stderr)
    print(
        f"{len(paths)} files; to search them: python3 -m http.server --directory {(BUILD / 'html').relative_to(ROOT)}"
    )
    return 1 if fetching else 0


if __name__ == "__main__":
    sys.exit(main())
