"""A design in yosys: elaborated once by its slang front end, then asked one question after another.

A question is answered by yosys' own temporal induction with MiniSat. ``prove`` asks whether all
assertions hold in every state that can be reached, ``follow`` whether one of them holds in the
cycle behind any in which all do; ``refute`` and ``reach`` look for a way from reset to a state in
which one assertion does not hold, or one cover does. Whatever is not reset, and
every input, has any value; memories begin with any contents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from darwinn_rtl.build import Design, generate
from darwinn_rtl.source_files import source, source_files
from darwinn_rtl.source_order import in_order
from darwinn_rtl.yosys import read_command, run_script

from tests.formal import register_map

WRAPPERS = Path(__file__).with_name("wrappers")
"""Modules that hold the properties, each around what it proves them of."""

SECONDS = 600
"""A question that takes longer has no answer."""

_COVERS = r"""
module \$cover (input A, input EN);
  \$assert _TECHMAP_REPLACE_ (.A(!A), .EN(EN));
endmodule
"""
"""A cover is reached where the assertion that it never is fails."""

_HELD = r"""
module \$assert (input A, input EN);
  wire \_TECHMAP_REPLACE_.held = A || !EN;
endmodule
"""
"""An assertion as a wire that says whether it holds."""
_SLOW = r"""
module \$dff (CLK, D, Q);
  parameter WIDTH = 1, CLK_POLARITY = 1;
  input CLK;
  input [WIDTH-1:0] D;
  output [WIDTH-1:0] Q;
  \$dffe #(.WIDTH(WIDTH), .CLK_POLARITY(1), .EN_POLARITY(1))
    _TECHMAP_REPLACE_ (.CLK(CLK), .EN(CLK), .D(D), .Q(Q));
endmodule
"""
"""Solvers know a single clock, ``clk``. A wrapper of two has an input ``slow`` as the other one,
which says at which edges of the first it has one: an enable."""

_READY = """\
hierarchy -top {top}
proc
flatten
async2sync
chformal -early
opt_clean
select -set slow w:slow %co1:+[CLK] w:slow %d
techmap -map {slow} @slow
setundef -undriven -anyseq
opt -keepdc -fast
memory_collect
memory_map -formal
select -set slow w:slow %co1:+[CLK] w:slow %d
techmap -map {slow} @slow
formalff -clk2ff -ff2anyinit
setundef -anyseq
opt -keepdc -fast
delete -output
design -save ready
"""
"""Word level, without memories; what has no value yet may have any."""


class Answer(StrEnum):
    """What came of a question."""

    PROVED = "proved"
    """By induction: it holds in every cycle after reset, however many there are."""
    BOUNDED = "bounded"
    """It holds in as many cycles after reset as were asked for."""
    FOUND = "found"
    """There is a way from reset to where it does not hold, or to what was to be reached."""
    UNKNOWN = "unknown"
    """Neither: the induction does not close, or the time is over."""


@dataclass(frozen=True)
class Question:
    """What to ask: ``prove`` of all assertions, ``refute`` of the one with this ``label``,
    ``reach`` of that cover; over how many cycles, and whether by induction. ``follow`` asks of the
    one with this ``label`` behind a cycle in which ``given`` hold."""

    kind: str
    label: str
    cycles: int
    induction: bool = False
    given: tuple[str, ...] = ()

    def script(self, trace: Path | None) -> str:
        """Commands of yosys that ask it; a way that is found is written to ``trace`` as waves."""
        if self.kind == "follow":
            given = " ".join(f"-set-at 1 {label}.held 1" for label in self.given)
            return (
                f"log ASKED {self.kind} {self.label}\ndesign -load ready\nchformal -cover -remove\n"
                f"techmap -map {{held}}\nsetattr -unset init w:*\n"
                f"sat -seq 2 {given} -prove {self.label}.held 1 -prove-skip 1 -set-assumes"
                f" -timeout {SECONDS}\n"
            )
        chosen = {
            "prove": "chformal -cover -remove\n",
            "refute": f"chformal -cover -remove\ndelete t:$assert n:{self.label} %d\n",
            "reach": "chformal -assert -remove\ntechmap -map {covers}\n"
            f"delete t:$assert n:{self.label} %d\n",
        }[self.kind]
        method = "" if self.induction else " -tempinduct-baseonly"
        # Where no waves are wanted, only the clock is shown: tables of wide signals take long.
        waves = f" -dump_vcd {trace}" if trace else " -show clk"
        return (
            f"log ASKED {self.kind} {self.label}\ndesign -load ready\n{chosen}"
            # A label that is not there would leave nothing to be asked.
            f"select -assert-min 1 t:$assert\nopt_clean\n"
            f"sat -tempinduct{method} -prove-asserts -set-assumes -maxsteps {self.cycles}"
            f" -timeout {SECONDS}{waves}\n"
        )


@dataclass(frozen=True)
class Reply:
    """The answer, after how many cycles it was found (the length of the induction, of the bound, or
    of the way)."""

    answer: Answer
    cycles: int


_ANSWERS = (
    (r"Induction step proven: SUCCESS!", Answer.PROVED),
    (r"SAT proof finished - no model found: SUCCESS!", Answer.PROVED),
    (r"proved base case for \d+ steps: SUCCESS!", Answer.BOUNDED),
    (r"model found for base case: FAIL!", Answer.FOUND),
)


def _reply(log: str) -> Reply:
    steps = re.findall(r"\[(?:base case|induction step) (\d+)\]", log)
    answers = (answer for pattern, answer in _ANSWERS if re.search(pattern, log))
    return Reply(next(answers, Answer.UNKNOWN), int(steps[-1]) if steps else 0)


def ask(
    top: str,
    parameters: Mapping[str, int | str],
    questions: Sequence[Question],
    work: Path,
    *,
    changed: Mapping[str, str] | None = None,
    traces: bool = False,
) -> tuple[list[Reply], float]:
    """Answers to ``questions`` about wrapper ``top``, in their order, and the seconds of processor
    time that they took.

    ``changed`` are texts that take the place of sources, by file name; ``work`` is an empty folder;
    with ``traces`` it keeps the waves of what is found. Raises :class:`DesignRefused`.
    """
    work.mkdir(parents=True, exist_ok=True)
    maps = {"{covers}": (work / "covers.v", _COVERS), "{held}": (work / "held.v", _HELD)}
    slow = work / "slow.v"
    slow.write_text(_SLOW)
    for path, text in maps.values():
        path.write_text(text)
    read = read_command(
        top, sources(top, work, changed or {}), parameters=parameters, folders=folders()
    )
    script = work / "script.ys"
    asked = "\n".join(
        question.script(work / f"{question.label or top}.vcd" if traces else None)
        for question in questions
    )
    for name, (path, _) in maps.items():
        asked = asked.replace(name, str(path))
    script.write_text("\n".join([read, _READY.format(top=top, slow=slow), asked]))
    log, seconds = run_script(script, seconds=SECONDS * (1 + len(questions)))
    _, *sections = re.split(r"^ASKED .*$", log, flags=re.MULTILINE)
    return [_reply(section) for section in sections], seconds


def assertions(top: str) -> tuple[str, ...]:
    """The labels of what wrapper ``top`` asserts."""
    text = (WRAPPERS / f"{top}.sv").read_text()
    return tuple(re.findall(r"\b((?:assert|lemma)_\w+) *:", text))


def folders() -> list[Path]:
    """Where modules are found by their names."""
    return sorted({WRAPPERS, *(path.parent for path in source_files())})


def sources(
    top: str, work: Path, changed: Mapping[str, str], sizes: Mapping[str, int] | None = None
) -> list[Path]:
    """Packages, the wrapper or the module itself, and what is changed; yosys finds the other
    modules by their names. ``sizes`` replace those of the description."""
    wrapper = WRAPPERS / f"{top}.sv"
    wrapper = wrapper if wrapper.exists() else source(f"{top}.sv")
    registers = register_map.PACKAGE in wrapper.read_text()
    read = generate(work, Design(top, registers=registers, sizes=sizes or {}))
    if registers:
        read.append(work / f"{register_map.PACKAGE}.sv")
        read[-1].write_text(register_map.package())
    packages = [path for path in source_files() if path.stem.endswith("_pkg")]
    read = [*in_order([*read, *packages]), wrapper]
    for name, text in changed.items():
        (work / name).write_text(text)
    return [
        *(path for path in read if path.name not in changed),
        *(work / name for name in changed),
    ]
