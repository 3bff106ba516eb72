"""The rules of AXI4 that ``axi_port_check`` enforces at every port of every simulation: one table,
from which its own list and that of docs/rtl-bus.md are generated.

    python -m darwinn_rtl.axi_rules [--check] rtl/dma/axi_port_check.sv docs/rtl-bus.md

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

    @property
    def constant(self) -> str:
        """Its name in ``axi_port_check``."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def _channel(name: str, side: str) -> Iterator[Rule]:
    """The rules of every channel."""
    valid, ready = f"{name.upper()}VALID", f"{name.upper()}READY"
    yield Rule(f"{name}_reset", side, f"{valid} is low in reset", "A3.1.2")
    yield Rule(f"{name}_held", side, f"{valid} stays high until {ready}", "A3.2.1")
    yield Rule(f"{name}_stable", side, f"the payload stays unchanged until {ready}", "A3.2.1")
    other = "slave" if side == "master" else "master"
    yield Rule(f"{name}_wait", other, f"{ready} comes within the port's longest wait", "-")


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
    Rule("r_late", "slave", "a word that is due comes within the port's longest wait", "-"),
    Rule("r_end", "slave", "at the end no burst of reads is unanswered", "-"),
    *_address("aw"),
    *_channel("w", "master"),
    Rule("w_last", "master", "WLAST comes with the last word of the burst and no other", "A3.4.1"),
    Rule("w_strobes", "master", "strobes cover only bytes of the burst", "A3.4.3"),
    Rule("w_ahead", "master", "at most 256 words come before their address", "-"),
    Rule(
        "w_end", "master", "at the end each address has its words, and each word its address", "-"
    ),
    *_channel("b", "slave"),
    Rule("b_request", "slave", "every response belongs to a requested burst", "A3.3.1"),
    Rule("b_early", "slave", "a response comes after the address and the last word", "A3.3.1"),
    Rule("b_response", "slave", "no response is EXOKAY: no request is exclusive", "A3.4.4"),
    Rule("b_late", "slave", "an answer that is due comes within the port's longest wait", "-"),
    Rule("b_end", "slave", "at the end no burst of writes is unanswered", "-"),
)
"""If one cycle breaks several, the checker reports them in this order."""


def module_part() -> str:
    """The rules in ``axi_port_check``: a number for each, and the task that tells of violations."""
    return "\n".join(
        [
            "  // Generated from darwinn_rtl.axi_rules (make docs).",
            f"  localparam int Rules = {len(RULES)};",
            *(f"  localparam int {rule.constant} = {number};" for number, rule in enumerate(RULES)),
            "  task automatic tell(input logic [Rules-1:0] broken, input logic [IdBits-1:0] id);",
            "    int i;  // of the task: a scope of its own would be in the message",
            "    for (i = 0; i < Rules; i = i + 1) begin",
            "      if (broken[i]) begin",
            "        case (i)",
            *map(_item, RULES),
            "          default: ;",
            "        endcase",
            "      end",
            "    end",
            "  endtask",
            "",
        ]
    )


_COLUMNS = 100


def _item(rule: Rule) -> str:
    """The message of a rule, broken into lines as the formatter of the sources does."""
    at, name = " " * 10, rule.constant
    text = f'"{rule.side}: {rule.name}: {rule.says} (ID %0d)"'
    deep = f"{at}    "
    forms = (
        f"{at}{name}: $error({text}, id);",
        f"{at}{name}:\n{at}$error({text}, id);",
        f"{at}{name}:\n{at}$error(\n{deep}{text}, id\n{at});",
        f"{at}{name}:\n{at}$error(\n{deep}{text},\n{deep}id\n{at});",
    )
    fits = (form for form in forms if max(map(len, form.splitlines())) <= _COLUMNS)
    return next(fits, forms[-1])


_HEAD = "| rule | side | requirement | chapter |"
_BEGIN, _END = "  // begin rules\n", "  // end rules\n"


def updated(page: str) -> str:
    """Return the page with its table brought up to date; the text around the table is
    handwritten."""
    before, _, rest = page.partition(f"{_HEAD}\n")
    _, end, after = rest.partition("\n\n")
    rows = (f"| `{r.name}` | {r.side} | {r.says} | {r.chapter} |" for r in RULES)
    return before + "\n".join([_HEAD, "|---|---|---|---|", *rows]) + end + after


def updated_module(text: str) -> str:
    """Return the source of ``axi_port_check`` with its list of rules brought up to date."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    return before + begin + module_part() + end + after


def main(arguments: Sequence[str]) -> int:
    """Bring source and page up to date, or with ``--check`` report that one is not; return the
    exit code."""
    status = 0
    for path in (Path(each) for each in arguments if not each.startswith("--")):
        text = path.read_text()
        new = (updated_module if path.suffix == ".sv" else updated)(text)
        if "--check" not in arguments:
            path.write_text(new)
        elif new != text:
            print(f"{path} is not up to date: make docs")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
