"""Builds the documentation as a site.

    python -m website.build [FOLDER]

The site's sources are assembled in FOLDER/pages, and Zensical makes FOLDER/site of them; FOLDER is
build/ by default. The pages of docs/ stay what they are for readers of the repository: links to
documents elsewhere in it, and diagrams, which GitHub draws from their text, are adapted here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from posixpath import basename, dirname, join, normpath, relpath

ROOT = Path(__file__).parents[1]
_OWN = Path(__file__).parent
_BESIDE = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "changes/README.md": "news-fragments.md",
    "benchmarks/peers.md": "peers.md",
}
"""Documents outside of docs/, and their pages."""
_INSTEAD = {"docs/schemas": "schemas/verify.json"}
"""Folders that documents link to, and what the site shows for them."""
_NO_PAGES = {"LICENSE"}
"""Files that documents link to and that the site does not have: their names are left as text."""

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
"""A diagram in a page: GitHub draws it from its text."""
_LINK = re.compile(r"\[([^\]\[]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)#\s]+)(\.\w+)\)")
_TABLE_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def picture_of(diagram: str) -> str:
    """The file in docs/ that the site shows for a diagram; ``website.pictures`` draws it."""
    return f"pictures/diagram-{sha256(diagram.encode()).hexdigest()[:12]}.svg"


def page_of(path: str) -> str | None:
    """The page or file of the site for a path in the repository, None if it has none."""
    if path in _BESIDE or path in _INSTEAD:
        return _BESIDE.get(path) or _INSTEAD[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def adapted(markdown: str, path: str) -> str:
    """The text of a page from that of a document at ``path`` in the repository.

    A link to what the site does not have stays as it is, so that the strict build names it.
    """
    page = page_of(path) or path

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if ":" in target:
            return found[0]
        aimed = normpath(join(dirname(path), target))
        if aimed in _NO_PAGES:
            return text
        there = page_of(aimed)
        return f"[{text}]({relpath(there, dirname(page) or '.')}{anchor})" if there else found[0]

    def row(found: re.Match[str]) -> str:
        # GitHub takes a bar in code for a column unless a backslash precedes it; here it shows.
        return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), found[0])

    markdown = DIAGRAM.sub(lambda found: f"![A diagram]({picture_of(found[1])})\n", markdown)
    return _TABLE_ROW.sub(row, _PICTURE.sub(_in_both_schemes, _LINK.sub(link, markdown)))


def _in_both_schemes(found: re.Match[str]) -> str:
    """A picture, and what readers of the dark scheme see if it has been drawn for them."""
    text, name, kind = found.groups()
    if not (ROOT / "docs/pictures" / f"{basename(name)}-dark{kind}").exists():
        return found[0]
    return f"![{text}]({name}{kind}#only-light)![{text}]({name}-dark{kind}#only-dark)"


def assemble(folder: Path) -> None:
    """Write the sources of the site to ``folder``: ``pages`` and the settings."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.md", "*.sha256"))
    documents = [str(each.relative_to(ROOT)) for each in (ROOT / "docs").rglob("*.md")]
    for path in [*documents, *_BESIDE]:
        target = pages / (page_of(path) or path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(adapted((ROOT / path).read_text(), path))
    (pages / "index.md").write_text(adapted((_OWN / "index.md").read_text(), "docs/index.md"))
    shutil.copy(_OWN / "style.css", pages / "style.css")
    shutil.copy(_OWN / "mkdocs.yml", folder / "mkdocs.yml")


def render(folder: Path) -> Path:
    """Make the site of what `assemble` has written; return the folder of its pages.

    Ends the program with what Zensical says if a link or an anchor leads nowhere, and if a page is
    not in the navigation.
    """
    listed = set(re.findall(r"\S+\.md$", (folder / "mkdocs.yml").read_text(), re.MULTILINE))
    there = {str(each.relative_to(folder / "pages")) for each in (folder / "pages").rglob("*.md")}
    if listed != there:
        sys.exit(f"mkdocs.yml lists other pages than there are: {sorted(listed ^ there)}")
    settings = ["--clean", "--strict", "--config-file", str(folder / "mkdocs.yml")]
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", *settings],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    if done.returncode:
        sys.exit(_ESCAPE.sub("", f"{done.stdout}{done.stderr}"))
    return folder / "site"


if __name__ == "__main__":
    place = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build").resolve()
    assemble(place)
    print(render(place) / "index.html")
