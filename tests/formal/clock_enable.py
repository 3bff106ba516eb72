"""Proves that a tile whose clock enable is 0 holds what it holds.

That is about a single edge, whatever all registers are: each is cut off, its output any value, and
asked whether its input is the same, or its enable 0; each write of a memory whether it writes
nothing. What memories give is any value as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from darwinn_rtl.yosys import DesignRefused, read_command, run_script

from tests.formal.yosys import Answer, folders, sources

TOP = "tile_clock"
"""The wrapper, which says what is assumed."""

_PORTS = {
    "dff": ("D", "D == Q"),
    "sdff": ("SRST D", "SRST != SRST_POLARITY && D == Q"),
    "dffe": ("EN D", "EN != EN_POLARITY"),
    "sdffe": ("EN SRST D", "SRST != SRST_POLARITY && EN != EN_POLARITY"),
}
"""Kinds of registers: inputs besides the clock, and what keeps their value."""

_PARAMETERS = "CLK_POLARITY = 1, EN_POLARITY = 1, SRST_POLARITY = 1, SRST_VALUE = 0"

_WRITE = r"""
module \$memwr_v2 (CLK, EN, ADDR, DATA);
  parameter MEMID = "", ABITS = 1, WIDTH = 1, CLK_ENABLE = 1, CLK_POLARITY = 1, PORTID = 0;
  parameter PRIORITY_MASK = 0;
  input CLK;
  input [WIDTH-1:0] EN, DATA;
  input [ABITS-1:0] ADDR;
  \$assert keeps (.A(EN == 0), .EN(1'b1));
endmodule
"""

_SCRIPT = """\
hierarchy -top {top}
proc
flatten
opt -full
opt_dff
opt_clean
chformal -lower
delete t:$memrd_v2
select -assert-min 1 t:$memwr_v2
techmap -map {cut}
delete -output
opt_clean -purge
opt -fast
select -assert-none t:$*dff*
select -assert-min 100 t:$assert
select -assert-count 4 t:$assume
sat{asserts} -set-assumes -timeout {seconds} -show clk
"""


def _register(kind: str) -> str:
    inputs, keeps = _PORTS[kind]
    ports = [name for name in inputs.split() if name != "D"]
    return "\n".join(
        [
            rf"module \${kind} ({', '.join(['CLK', *ports, 'D', 'Q'])});",
            f"  parameter WIDTH = 1, {_PARAMETERS};",
            f"  input {', '.join(['CLK', *ports])};",
            "  input [WIDTH-1:0] D;",
            "  output [WIDTH-1:0] Q;",
            r"  \$anyseq #(.WIDTH(WIDTH)) held (.Y(Q));",
            rf"  \$assert keeps (.A({keeps}), .EN(1'b1));",
            "endmodule",
        ]
    )


def ask_registers(
    work: Path, changed: Mapping[str, str] | None = None, *, prove: bool = True, seconds: int = 600
) -> Answer:
    """Whether they all keep their values; without ``prove``, whether the assumptions can hold.

    ``changed`` are texts that take the place of sources, by file name; ``work`` is an empty folder.
    Raises :class:`DesignRefused`.
    """
    cut, script = work / "cut.v", work / "script.ys"
    cut.write_text("\n".join([*map(_register, _PORTS), _WRITE]))
    read = read_command(TOP, sources(TOP, work, changed or {}), folders=folders())
    asserts = " -prove-asserts" if prove else ""
    tail = _SCRIPT.format(top=TOP, cut=cut, seconds=seconds, asserts=asserts)
    script.write_text(f"{read}\n{tail}")
    log, _ = run_script(script)
    if "no model found: SUCCESS!" in log:
        return Answer.PROVED
    if "model found" in log:
        return Answer.FOUND
    if "TIMEOUT" in log or "Interrupted SAT solver" in log:
        return Answer.UNKNOWN
    raise DesignRefused(log[-4000:])
