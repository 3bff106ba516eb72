"""The rules of AXI4 that ``axi_check`` enforces at every port of every simulation: one table, from
which its package and the list in docs/rtl-bus.md are generated.

    python -m darwinn_rtl.axi_rules [--check] docs/rtl-bus.md

Chapters are those of the AMBA AXI protocol specification (ARM IHI 0022E), part A.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rule:
    """A rule that one side of a port has to keep.

    ``name`` begins with the channel; ``side`` is the side that can break it, ``says`` is the rule.
    """

    name: str
    side: str
    says: str
    chapter: str


def _channel(name: str, side: str) -> Iterator[Rule]:
    """The rules of every channel."""
    valid, ready = f"{name.upper()}VALID", f"{name.upper()}READY"
    yield Rule(f"{name}_reset", side, f"{valid} is low in reset", "A3.1.2")
    yield Rule(f"{name}_held", side, f"{valid} stays high until {ready}", "A3.2.1")
    yield Rule(f"{name}_stable", side, f"the payload stays unchanged until {ready}", "A3.2.1")


def _address(name: str) -> Iterator[Rule]:
    """The rules of the channel of read or of write addresses."""
    yield from _channel(name, "master")
    for rule, says, chapter in (
        ("size", "no word of a burst is wider than the bus", "A3.4.1"),
        ("burst", "a burst is fixed, incrementing or wrapping", "A3.4.1"),
        ("length", "a fixed burst has 16 words at most, a wrapping one 2, 4, 8 or 16", "A3.4.1"),
        ("wrap", "a wrapping burst begins at a whole word", "A3.4.1"),
        ("boundary", "a burst does not cross 4 KiB", "A3.4.1"),
        ("outstanding", "unanswered bursts stay within the port's limit", "-"),
    ):
        yield Rule(f"{name}_{rule}", "master", says, chapter)


RULES: tuple[Rule, ...] = (
    *_address("ar"),
    *_channel("r", "slave"),
    Rule("r_request", "slave", "every word belongs to a requested burst", "A3.3.1"),
    Rule("r_last", "slave", "RLAST comes with the last word of the burst and no other", "A3.4.1"),
    Rule("r_order", "slave", "bursts of one ID are answered in the order of requests", "A5.3.1"),
    Rule("r_response", "slave", "no response is EXOKAY: no request is exclusive", "A3.4.4"),
    *_address("aw"),
    *_channel("w", "master"),
    Rule("w_last", "master", "WLAST comes with the last word of the burst and no other", "A3.4.1"),
    Rule("w_strobes", "master", "strobes cover only bytes of the burst", "A3.4.3"),
    Rule("w_ahead", "master", "at most 256 words come before their address", "-"),
    *_channel("b", "slave"),
    Rule("b_request", "slave", "every response belongs to a requested burst", "A3.3.1"),
    Rule("b_early", "slave", "a response comes after the address and the last word", "A3.3.1"),
    Rule("b_response", "slave", "no response is EXOKAY: no request is exclusive", "A3.4.4"),
)
"""If one cycle breaks several, the checker reports them in this order."""


def package() -> str:
    """``axi_rules_pkg``: a number for each rule, and the message for a violation."""
    return "\n".join(
        [
            "// Generated from darwinn_rtl.axi_rules; do not edit.",
            "package axi_rules_pkg;",
            f"  localparam int Rules = {len(RULES)};",
            *(
                f"  localparam int {_constant(rule.name)} = {number};"
                for number, rule in enumerate(RULES)
            ),
            "  typedef logic [Rules-1:0] rules_t;",
            "`ifndef SYNTHESIS",
            "  function automatic string text(input int rule);",
            "    case (rule)",
            *(
                f'      {_constant(rule.name)}: return "{rule.side}: {rule.name}: {rule.says}";'
                for rule in RULES
            ),
            '      default: return "";',
            "    endcase",
            "  endfunction",
            "`endif",
            "endpackage : axi_rules_pkg",
            "",
        ]
    )


def _constant(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


_HEAD = "| rule | side | requirement | chapter |"


def updated(page: str) -> str:
    """Return the page with its table brought up to date; the text around the table is
    handwritten."""
    before, _, rest = page.partition(f"{_HEAD}\n")
    _, end, after = rest.partition("\n\n")
    rows = (f"| `{r.name}` | {r.side} | {r.says} | {r.chapter} |" for r in RULES)
    return before + "\n".join([_HEAD, "|---|---|---|---|", *rows]) + end + after


def main(arguments: Sequence[str]) -> int:
    """Bring the page up to date, or with ``--check`` report that it is not; return the exit
    code."""
    path = Path(arguments[-1])
    text = path.read_text()
    if "--check" in arguments:
        if updated(text) != text:
            print(f"{path} is not up to date: make docs")
        return int(updated(text) != text)
    path.write_text(updated(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
