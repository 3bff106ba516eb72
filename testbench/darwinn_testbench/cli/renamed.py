"""Options by the names that they had before: they work for one release, and a notice says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from darwinn_formats.signatures import is_external_data

from darwinn_testbench.cli.terminal import print_line
from darwinn_testbench.request.inputs import head_of
from darwinn_testbench.request.record import Entry

UNTIL = "0.4"
_COMPILED_WITH, _DATA = "--with", "--data"


def with_new_names(
    command: str, settings: Mapping[str, Entry], words: Sequence[str]
) -> Iterator[str]:
    """The words of a command line with options by their present names."""
    present = {
        old: each.setting.option for each in settings.values() for old in each.setting.renamed
    }
    shared = any({_COMPILED_WITH, _DATA} <= {*each.setting.options} for each in settings.values())
    for place, word in enumerate(words):
        old, equals, value = word.partition("=")
        new = present.get(old, old)
        if shared and old in (_COMPILED_WITH, _DATA):
            new = _by_content(value or "".join(words[place + 1 : place + 2]), old)
        if new != old:
            print_line(f"darwinn {command}: {old} is now {new}; {old} works until {UNTIL}")
        yield f"{new}{equals}{value}"


def _by_content(file: str, otherwise: str) -> str:
    """The option for a file: data of a program (.ptd, .irpa), or a compiled one."""
    try:
        return _DATA if is_external_data(head_of(file)) else _COMPILED_WITH
    except (OSError, ValueError):
        # What cannot be read is refused under the option that was typed.
        return otherwise
