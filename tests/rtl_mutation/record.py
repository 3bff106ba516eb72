"""What was caught, as the repository keeps it: a folder of results is lost with its machine.

Written are keys of mutants, which say of which source they are made, below the test or the proof
that has caught them and the digest of it. Survivors are not written: they are asked again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple


class Catch(NamedTuple):
    """The mutant ``key`` of ``file``, what has caught it, and the digest of that."""

    file: str
    key: str
    by: str
    digest: str


class Record:
    """Catches in a file, in the same order whoever has found them in which."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Catch] = {}
        written = json.loads(path.read_text()) if path.exists() else {}
        for file, tests in written.items():
            for test, keys in tests.items():
                by, _, digest = test.rpartition(" ")
                self._known |= {key: Catch(file, key, by, digest) for key in keys}

    def get(self, key: str) -> Catch | None:
        """What is known of a mutant."""
        return self._known.get(key)

    def catches(self) -> Iterable[Catch]:
        """Everything that is known."""
        return self._known.values()

    def tests_of(self, file: str) -> list[str]:
        """Tests that have caught mutants of a source, that of the most first."""
        caught: dict[str, int] = defaultdict(int)
        for each in self._known.values():
            if each.file == file:
                caught[each.by.partition("[")[0]] += 1
        return sorted(caught, key=lambda test: (-caught[test], test))

    def write(self, catches: Iterable[Catch], existing: Collection[str]) -> None:
        """Add some, and leave out those of the same files whose mutants do not exist any more: of a
        file that has changed the earlier ones stay until it is judged anew."""
        added = {each.key: each for each in catches}
        files = {each.file for each in added.values()}
        self._known = {
            key: each
            for key, each in (self._known | added).items()
            if key in existing or each.file not in files
        }
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for each in sorted(self._known.values()):
            found[each.file][f"{each.by} {each.digest}"].append(each.key)
        self._path.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
