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
}
"""Documents of the root, and their pages."""
_NO_PAGES = ("LICENSE",)
"""Files that documents link to and that the site does not have: their names are left as text."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root, with links as they are from a page."""
    for name, page in _BESIDE.items():
        text = (_ROOT / name).read_text()
        for file in _NO_PAGES:
            text = text.replace(f"]({file})", "]")
        content = re.sub(r"\]\(docs/", "](", text).replace("](README.md", "](index.md")
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links to documents of the root, and to folders, lead to what the site has of them."""
    for name, page in _BESIDE.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    return markdown.replace("](schemas/)", "](schemas/verify.json)")
