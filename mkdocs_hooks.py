"""Makes the pages of the site of documents as they are: those beside docs/ belong to it as well."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).parent
_BESIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "changes/README.md": "news-fragments.md",
    "benchmarks/peers.md": "peers.md",
}
"""Documents outside of docs/, and their pages."""
_NO_PAGES = ("LICENSE",)
"""Files that documents link to and that the site does not have: their names are left as text."""

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
"""A diagram in a page: GitHub draws it from its text."""


def picture_of(diagram: str) -> str:
    """The file in docs/ that the site shows for a diagram; docs_pictures.py draws it."""
    return f"pictures/diagram-{sha256(diagram.encode()).hexdigest()[:12]}.svg"


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
    """Let links to documents beside docs/, and to folders, lead to what the site has of them.

    A diagram becomes its picture; the strict build fails if the picture has not been drawn.
    """
    markdown = DIAGRAM.sub(lambda found: f"![A diagram]({picture_of(found[1])})\n", markdown)
    return _beside_each_other(markdown, "../").replace("](schemas/)", "](schemas/verify.json)")


def _beside_each_other(markdown: str, root: str) -> str:
    """Let links to documents outside of docs/, which start with `root`, lead to their pages."""
    for name, page in _BESIDE.items():
        markdown = markdown.replace(f"]({root}{name}", f"]({page}")
    return markdown
