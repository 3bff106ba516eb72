"""`darwinn docs`: the manual, which every installation has."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

import darwinn_testbench
from darwinn_testbench.cli.declared import option
from darwinn_testbench.errors import InputError

EXAMPLES = """**Examples**

`darwinn docs` lists the pages

`darwinn docs device`

`darwinn docs device#several-chips`

`darwinn docs timing > timing.md`

`darwinn docs --schema manifest > manifest.json`
"""


class FileKind(Enum):
    """A kind of file that has a schema."""

    MANIFEST = "manifest"
    PROJECT = "project"


Topic = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC",
        help="A page, as `darwinn docs` lists them, and optionally one of its sections: "
        "PAGE#SECTION.",
        show_default=False,
        autocompletion=lambda incomplete: _topics(incomplete),
    ),
]
AsPath = Annotated[
    bool, typer.Option("--path", help="Print where the page is, or the folder of all of them.")
]

OfSchema = Annotated[
    FileKind | None,
    option(
        "--schema",
        "Print the JSON Schema of a file that you write, for editors: a manifest of `darwinn "
        "regress`, or a project's darwinn.toml.",
    ),
]

_PLACES = ("manual", "../../docs")
"""Where the pages are beside the package: in an installation, and in a checkout."""
_HEADING = re.compile(r"^(#+) +(.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_NO_WORD = re.compile(r"[^\w\- ]")


def command(topic: Topic = None, path: AsPath = False, schema: OfSchema = None) -> None:
    """Show a page of the manual, or list all of them.

    On a terminal the page is set in colours, and longer ones go through your pager; elsewhere its
    Markdown is printed as it is.
    """
    if schema is not None:
        for given, name in ((topic is not None, "TOPIC"), (path, "--path")):
            if given:
                raise InputError(f"{name} is for pages; --schema {schema.value} prints no page")
        _print_schema(schema)
        return
    folder = _folder()
    pages = pages_of(folder)
    if topic is None:
        print(folder) if path else _list(pages)
        return
    name, _, section = topic.removeprefix("docs/").partition("#")
    page = _page(pages, name.removesuffix(".md"))
    if path:
        print(page)
        return
    text = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    _show(section_of(text, section, topic) if section else text)


def _print_schema(kind: FileKind) -> None:
    # Imported here: the keys are those of settings, which no page waits for.
    from darwinn_testbench.cli.file_schemas import SCHEMAS

    print(json.dumps(SCHEMAS[kind.value](), indent=1))


def _topics(begin: str) -> list[str]:
    """Pages whose names begin so: what a shell completes."""
    return [each for each in pages_of(_folder()) if each.startswith(begin)]


def _folder() -> Path:
    """Where the pages are.

    Raises:
        InputError: the installation lacks them.
    """
    package = Path(str(darwinn_testbench.__file__)).parent
    for place in _PLACES:
        folder = (package / place).resolve()
        if (folder / "cli.md").is_file():
            return folder
    raise InputError(f"{package}: this installation has no manual; install the wheel again")


def pages_of(folder: Path) -> Mapping[str, Path]:
    """The pages of a folder and the folders in it, by name."""
    found = sorted(folder.rglob("*.md"), key=lambda each: (len(each.parts), each))
    return {str(each.relative_to(folder).with_suffix("")): each for each in found}


def _page(pages: Mapping[str, Path], name: str) -> Path:
    by_end = {each.rpartition("/")[2]: path for each, path in reversed(list(pages.items()))}
    found = pages.get(name) or by_end.get(name)
    if found is None:
        near = difflib.get_close_matches(name, {*pages, *by_end}, 3)
        hint = f"; near it: {', '.join(near)}" if near else "; `darwinn docs` lists the pages"
        raise InputError(f"no page {name!r} in the manual{hint}")
    return found


def title_of(text: str) -> str:
    """The first heading of a page."""
    found = _HEADING.search(text)
    return found[2] if found else ""


def anchor_of(heading: str) -> str:
    """The name of a section in links, as sites make it of the heading."""
    return _NO_WORD.sub("", heading.lower()).strip().replace(" ", "-")


def section_of(text: str, section: str, topic: str) -> str:
    """A section of a page, with those below it.

    Raises:
        InputError: the page has none of that name.
    """
    # Lines of a shell that begin with # are no headings.
    plain = _FENCED.sub(lambda found: "-" * len(found[0]), text)
    headings = list(_HEADING.finditer(plain))
    names = [anchor_of(each[2]) for each in headings]
    if section not in names:
        near = difflib.get_close_matches(section, names, 3, 0.4) or names[:5]
        raise InputError(f"{topic}: the page has no such section; it has {', '.join(near)}")
    first = headings[names.index(section)]
    later = (
        each.start()
        for each in headings[names.index(section) + 1 :]
        if len(each[1]) <= len(first[1])
    )
    return text[first.start() : next(later, len(text))]


def _list(pages: Mapping[str, Path]) -> None:
    width = max(map(len, pages))
    for name, path in pages.items():
        title = title_of(path.read_text(encoding="utf-8")).replace("`", "")
        print(f"{name:<{width}}  {title}")


def _show(text: str) -> None:
    if not sys.stdout.isatty():
        print(text, end="" if text.endswith("\n") else "\n")
        return
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
