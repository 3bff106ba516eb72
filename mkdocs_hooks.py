"""Makes the pages of the site of documents as they are: those beside docs/ belong to it as well."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parent
_BESIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "benchmarks/peers.md": "peers.md",
}
"""Documents outside of docs/, and their pages."""
_NO_PAGES = ("LICENSE",)
"""Files that documents link to and that the site does not have: their names are left as text."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents beside docs/, with links as they are from a page."""
    for name, page in _BESIDE.items():
        text = (_ROOT / name).read_text()
        for file in _NO_PAGES:
            text = text.replace(f"]({file})", "]")
        content = _beside_each_other(re.sub(r"\]\((?:\.\./)?docs/", "](", text), "")
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links to documents beside docs/, and to folders, lead to what the site has of them."""
    return _beside_each_other(markdown, "../").replace("](schemas/)", "](schemas/verify.json)")


def _beside_each_other(markdown: str, root: str) -> str:
    """Let links to documents outside of docs/, which start with `root`, lead to their pages."""
    for name, page in _BESIDE.items():
        markdown = markdown.replace(f"]({root}{name}", f"]({page}")
    return markdown
