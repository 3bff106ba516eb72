"""The parts of docs/*.md that come from the tables of the references.

python -m darwinn_reference.documents [--check] FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from darwinn_reference import members
from darwinn_reference.executorch import document as executorch
from darwinn_reference.iree import document as iree
from darwinn_reference.tflite import rules
from darwinn_reference.tfrt import document as tfrt

PAGES: Mapping[str, Callable[[str], str]] = {
    "comparison.md": rules.updated,
    "formats-executorch.md": executorch.updated,
    "formats-iree.md": iree.updated,
    "formats-bef.md": tfrt.updated,
    "members.md": members.updated,
}
"""For each page the function that puts its tables as they are now into its text."""


def outdated(folder: Path) -> dict[Path, str]:
    """Pages of ``folder`` that are not up to date, with the texts that they should have."""
    texts = {folder / name: update((folder / name).read_text()) for name, update in PAGES.items()}
    return {path: text for path, text in texts.items() if path.read_text() != text}


def main(arguments: Sequence[str]) -> int:
    """Bring the pages up to date, or with ``--check`` say which are not; gives the exit code."""
    pages = outdated(Path(arguments[-1]))
    if "--check" in arguments:
        for path in pages:
            print(f"{path} is not up to date: make docs")
        return int(bool(pages))
    for path, text in pages.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
