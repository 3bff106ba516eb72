"""The tool that changes the RTL: what it changes, how it puts mutants together, whom it asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from darwinn_rtl.source_files import source
from harness_runs import require_toolchain
from weaving import STATEMENT, weave, write_copy

from tests.formal.yosys import WRAPPERS
from tests.mutation.mutants import Mutant, drawn
from tests.mutation.results import CAUGHT, SURVIVED, Judged, equivalents
from tests.rtl_mutation.asked import FAR, NEAR, Asked, asked_about
from tests.rtl_mutation.elaborated import CannotElaborate, Elaborated
from tests.rtl_mutation.moments import CHECK, KINDS, Moments
from tests.rtl_mutation.mutants import changes_of, mutants_of
from tests.rtl_mutation.proving import CLOCK_ENABLE, PROVED_BY, broken_by, proofs_about
from tests.rtl_mutation.record import Catch, Record
from tests.rtl_mutation.runner import Ran, ToolError

ROOT = Path(__file__).parents[2]

SOURCE = """\
package p;
  typedef enum logic [1:0] {Red, Green, Blue} color_e;
  function automatic logic [7:0] halved(input logic [7:0] value);
    return value >> 1;
  endfunction
  function automatic int doubled(input int value);
    return value * 2;
  endfunction
endpackage
module m
  import p::*;
#(
    parameter int Size = 4
) (
    input logic clk,
    input logic rst_n,
    input logic a,
    input logic b,
    input logic signed [7:0] narrow,
    input logic [15:0] in,
    output logic signed [15:0] wide,
    output logic [7:0] count,
    output logic [16:0] sum,
    output logic other,
    output color_e color
);
  localparam int Twice = doubled(Size);
  assign wide = narrow;
  assign sum = 17'(in) + 17'(halved(in[7:0]) + in[7:0]);
  assign other = (a && b) ? in[2'(count)] : 1'b1;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      count <= '0;
      color <= Red;
    end else if (a) begin
      count <= count + 8'd1;
    end else if (b) begin
      color <= Green;
    end
  end
  assert property (@(posedge clk) a |-> count < 8'd77);
endmodule
"""


def found(tmp_path: Path) -> list[Mutant]:
    path = tmp_path / "m.sv"
    path.write_text(SOURCE)
    return mutants_of(Elaborated([path], ["m"]), {"m.sv": SOURCE.encode()}, tmp_path)


SECOND = """\
module m(
    input logic clk,
    input logic rst_n,
    input logic a,
    input logic b,
    input logic [31:0] size,
    input logic [3:0] bound,
    output logic full,
    output logic last,
    output logic held,
    output logic [3:0] level,
    output logic [31:0] kept
);
  assign full = a || b;
  assign last = level == bound;
  assign kept = size;
  always_ff @(posedge clk) begin
    if (!rst_n) held <= 1'b0;
    else held <= a && !b;
    level <= level + 4'(a) - 4'(b);
  end
endmodule
"""


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("boundary by one", "level == bound", "((level) == ($bits(bound))'((bound) + 1))"),
        ("never ends", "held <= a && !b", "((a && !b) || held)"),
        ("lost together", "full = a || b", "((((a) != '0)) ^ (((b) != '0)))"),
        (
            "lost together",
            "level + 4'(a)",
            "((4'(b)) != '0 ? (level) - (4'(b)) : (level) + (4'(a)))",
        ),
        ("high bits", "kept = size", "* 3 / 4)"),
    ],
)
@pytest.mark.parametrize("name", ["m.sv", "m_check.sv"])
def test_what_the_second_generator_changes(
    tmp_path: Path, name: str, kind: str, before: str, after: str
) -> None:
    """Of a checker, it changes what the first one changes as well."""
    path = tmp_path / name
    path.write_text(SECOND)
    mutants = mutants_of(Elaborated([path], ["m"]), {name: SECOND.encode()}, tmp_path, Moments)
    checks = name.endswith(CHECK)
    kinds = {each.kind for each in mutants}
    assert kinds == ({"checker weakened"} if checks else set(KINDS) - {"checker weakened"})
    found = [each for each in mutants if before in each.before and after in each.after]
    assert [each.kind for each in found] == ["checker weakened" if checks else kind]
    texts = weave({name: SECOND}, changes_of(dict(enumerate(mutants, 1))))
    copies = [tmp_path / f"copy_of_{each}" for each in texts]
    for copy, text in zip(copies, texts.values(), strict=True):
        copy.write_text(text)
    assert Elaborated(copies, ["m"]).errors() == []


def test_a_sum_that_stands_nowhere_is_not_changed(tmp_path: Path) -> None:
    """Of `total += b` the part in the source is b."""
    text = """module m(input logic [7:0] b, output logic [7:0] total);
  always_comb begin
    total = '0;
    total += b;
  end
endmodule
"""
    path = tmp_path / "m.sv"
    path.write_text(text)
    mutants = mutants_of(Elaborated([path], ["m"]), {"m.sv": text.encode()}, tmp_path)
    of_sum = [each for each in mutants if each.line == 4]
    assert of_sum
    assert all(text[each.start : each.end] == "b" for each in of_sum)


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("operator", "return value >> 1;", "return (value << 1);"),
        ("off by one", "return value >> 1;", "return value >> 2;"),
        ("off by one", "count <= count + 8'd1;", "count <= count + 8'd2;"),
        ("signedness", "assign wide = narrow;", "assign wide = $signed({1'b0, narrow});"),
        ("priority", "end else if (a) begin", "end else if ((a) && !(b)) begin"),
        ("dropped condition", "end else if (a) begin", "end else if (1'b1) begin"),
        ("inverted", "end else if (b) begin", "end else if (!(b)) begin"),
        ("lost reset", "count <= '0;", ";"),
        ("lost assignment", "count <= count + 8'd1;", ";"),
        ("stuck bit", "color <= Red;", None),
        ("off by one", "color <= Red;", "color <= Green;"),
        (
            "swapped operands",
            "assign other = (a && b) ? in[2'(count)] : 1'b1;",
            "assign other = ((a && b) ? 1'b1 : in[2'(count)]);",
        ),
        (
            "wrong index",
            "assign other = (a && b) ? in[2'(count)] : 1'b1;",
            "assign other = (a && b) ? in[(2'(count)) ^ 1'b1] : 1'b1;",
        ),
        (
            "truncated",
            "assign sum = 17'(in) + 17'(halved(in[7:0]) + in[7:0]);",
            "assign sum = 17'(in) + 17'({halved(in[7:0]) + in[7:0]});",
        ),
    ],
)
def test_what_is_changed(tmp_path: Path, kind: str, before: str, after: str | None) -> None:
    afters = [each.after for each in found(tmp_path) if (each.kind, each.before) == (kind, before)]
    assert (after in afters) if after is not None else not afters


PLAIN = """\
module m;
  reg [7:0] bytes[0:3];
  reg [15:0] sum;
  integer at;
  wire odd = sum[0];
  task add;
    input integer last;
    begin
      for (at = 0; at < last; at = at + 1) sum = sum + bytes[at];
      if (sum === 4'bx) $display("unknown");
    end
  endtask
  initial begin
    sum = 3;
    repeat (2) add(4);
    bytes[0] = sum * sum;
    while (sum > 5 && odd) sum = sum - 1;
  end
endmodule
"""


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("stuck bit", "sum = (sum + bytes[at]) | (16'd1 << (16 - 1));"),
        ("stuck bit", "bytes[0] = (sum * sum) | (8'd1 << (8 - 1));"),
        ("truncated", "bytes[0] = (sum * sum) & ((8'd1 << 4) - 8'd1);"),
        ("stuck bit", "if (sum === 4'd0)"),
        ("operator", "if ((sum !== 4'bx))"),
        ("off by one", "for (at = 1; at < last;"),
        ("operator", "(at <= last); at = at + 1"),
        ("lost assignment", "at = at + 1) ;"),
        ("lost call", "repeat (2) ;"),
        ("off by one", "repeat (3)"),
        ("dropped condition", "while (sum > 5 && 1'b1)"),
        ("dropped condition", "while (1'b0)"),
        ("inverted", "wire odd = !(sum[0]);"),
        ("off by one", "sum = 4;"),
    ],
)
def test_what_is_changed_in_plain_verilog(tmp_path: Path, kind: str, after: str) -> None:
    path = tmp_path / "m.v"
    path.write_text(PLAIN)
    mutants = mutants_of(Elaborated([path], ["m"]), {"m.v": PLAIN.encode()}, tmp_path)
    assert [each for each in mutants if each.kind == kind and after in each.after]


def test_what_is_for_the_elaboration_or_an_assertion_stays(tmp_path: Path) -> None:
    changed = {each.before for each in found(tmp_path)}
    assert not [line for line in changed if "* 2" in line or "Twice" in line or "77" in line]


def test_a_copy_with_all_mutants_elaborates_and_has_each_behind_its_number(tmp_path: Path) -> None:
    changes = changes_of(dict(enumerate(found(tmp_path), 1)))
    text = weave({"m.sv": SOURCE}, changes)["m.sv"]
    assert all(f"chosen == {n} " in text or f"chosen != {n}" in text for n in changes)
    folder, target = tmp_path / "rtl", tmp_path / "copy"
    folder.mkdir()
    (folder / "m.sv").write_text(SOURCE)
    target.mkdir()
    (target / "stale.sv").write_text("")
    write_copy(folder, target, {"m.sv": SOURCE}, changes)
    assert not (target / "stale.sv").exists()
    copied = [target / "pkg" / "mutation_pkg.sv", target / "m.sv"]
    assert Elaborated(copied, ["m"]).errors() == []


def test_what_does_not_elaborate_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotElaborate):
        Elaborated([tmp_path / "missing.sv"], ["m"])


@pytest.mark.parametrize("second", [False, True])
def test_every_source_has_mutants_that_elaborate_and_tests(tmp_path: Path, second: bool) -> None:
    """All of the harness, with one mutant of each place in it."""
    require_toolchain()
    from tests.rtl_mutation.__main__ import EQUIVALENTS, SECOND_EQUIVALENTS, Project

    project = Project.read(second=second)
    chosen = drawn(project.mutants, 1)
    arguments = SECOND_EQUIVALENTS if second else EQUIVALENTS
    assert equivalents(arguments, project.mutants) is not None
    for name in {each.file for each in chosen}:
        assert asked_about(name).near, name
    write_copy(
        ROOT / "rtl", tmp_path / "rtl", project.texts(), changes_of(dict(enumerate(chosen, 1)))
    )
    assert Elaborated.harness(tmp_path / "rtl").errors() == []


def test_tests_that_are_asked_exist() -> None:
    for pattern, tests in (*NEAR, *FAR):
        assert list(ROOT.glob(pattern)), pattern
        for test in tests:
            file, _, name = test.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).exists()


@pytest.mark.parametrize(
    ("ran", "how"),
    [
        (Ran(0, "3 passed"), ""),
        (Ran(1, "...\nFAILED tests/a.py::test_b[1] - x\n"), "tests/a.py::test_b[1]"),
        (Ran(None, ""), "the tests do not end"),
        (Ran(-24, ""), "the tests do not end"),
        (Ran(-6, ""), "ended by signal 6"),
    ],
)
def test_how_a_mutant_is_caught(ran: Ran, how: str) -> None:
    assert ran.caught == how


@pytest.mark.parametrize("ran", [Ran(1, "harness cannot be built"), Ran(4, "usage"), Ran(1, "")])
def test_what_says_nothing_of_a_mutant_is_an_error(ran: Ran) -> None:
    with pytest.raises(ToolError):
        _ = ran.caught


def test_what_near_tests_let_pass_is_asked_the_far_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant 1 is caught near, 2 far, 3 by none; of 4 nothing is said, there is no time for it."""
    from tests.rtl_mutation import __main__ as tool

    rounds = []

    def tried(
        self: object, folder: Path, tests: dict[int, tuple[str, ...]], end: float | None
    ) -> Iterator[tuple[int, str, float]]:
        rounds.append(tests)
        for number, (test,) in tests.items():
            if number != 4:
                yield number, "a::b" if (number, test) in {(1, "near"), (2, "far")} else "", 1.5

    monkeypatch.setattr(tool.Campaign, "_tried", tried)
    monkeypatch.setattr(tool, "asked_about", lambda _: Asked(("near",), ("far",)))
    monkeypatch.setattr(tool, "digest", lambda *_: "")
    monkeypatch.setattr(tool, "write_copy", lambda *_: None)
    monkeypatch.setattr(tool, "build_root", lambda: tmp_path)
    mutants = found(tmp_path)[:4]
    project = tool.Project({"m.sv": SOURCE.encode()}, mutants)
    options = tool.options_of(["--out", str(tmp_path), "--seconds", "100"])
    outcomes = list(tool.Campaign(project, options).judged(mutants))
    assert [(each.result, each.seconds) for each in outcomes] == [
        (CAUGHT, 1.5),
        (CAUGHT, 3.0),
        (SURVIVED, 3.0),
    ]
    assert [sorted(tests) for tests in rounds] == [[1, 2, 3, 4], [2, 3]]


def test_what_a_test_has_caught_holds_until_that_test_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.rtl_mutation import __main__ as tool

    monkeypatch.setattr(tool, "ROOT", tmp_path)
    text = "@mark\ndef test_a(n):\n    assert n\n"
    found = []
    for number, now in enumerate((text, f"X = 1\n{text}def test_b():\n    pass\n", text + " ")):
        tool._digest_of_test.cache_clear()
        (tmp_path / "test_it.py").write_text(now if number < 2 else now.replace("n\n", "0\n"))
        found.append(tool.digest((), "test_it.py::test_a[1]"))
    assert found[0] == found[1] != found[2]
    with pytest.raises(StopIteration):
        tool.digest((), "test_it.py::test_gone")


def test_what_a_proof_has_caught_holds_until_its_wrapper_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.rtl_mutation import __main__ as tool

    monkeypatch.setattr(tool, "WRAPPERS", tmp_path)
    text = (WRAPPERS / "fifo_proof.sv").read_bytes()
    found = []
    for now in (text, text + b" "):
        (tmp_path / "fifo_proof.sv").write_bytes(now)
        found.append(tool.digest((), f"{PROVED_BY}fifo]"))
    assert found[0] != found[1]
    with pytest.raises(StopIteration):
        tool.digest((), f"{PROVED_BY}gone]")


def test_the_record_is_the_same_in_whatever_order_it_grows(tmp_path: Path) -> None:
    catches = [
        Catch("m.sv", "k1", "a.py::test_a[2 x]", "d1"),
        Catch("m.sv", "k2", "b.py::test_b", "d2"),
        Catch("m.sv", "k3", "a.py::test_a[1]", "d1"),
        Catch("m.sv", "gone", "the tests do not end", "d3"),
        Catch("n.sv", "changed", "b.py::test_b", "d2"),
    ]
    existing = {"k1", "k2", "k3"}
    for name, order in (("one", catches), ("other", catches[::-1])):
        for each in order:
            Record(tmp_path / name).write([each], existing | {"changed"})
    Record(tmp_path / "one").write(catches[:1], existing)
    Record(tmp_path / "other").write(catches[:1], existing)
    assert (tmp_path / "one").read_text() == (tmp_path / "other").read_text()
    record = Record(tmp_path / "one")
    assert [record.get(each.key) for each in catches] == [*catches[:3], None, catches[4]]
    assert record.tests_of("m.sv") == ["a.py::test_a", "b.py::test_b"]
    record.write([Catch("n.sv", "new", "b.py::test_b", "d2")], {"new"})
    assert [record.get(key) is None for key in ("changed", "new")] == [True, False]


def test_what_caught_others_of_a_source_is_asked_first_if_it_is_asked_at_all() -> None:
    from tests.rtl_mutation.__main__ import quickest_first

    caught = ["b.py::test_2", "far.py::test_1", "a.py::test_1"]
    assert quickest_first(("a.py", "b.py::test_2"), caught) == (
        *("b.py::test_2", "a.py::test_1"),
        *("a.py", "b.py::test_2"),
    )


def test_what_is_drawn_and_not_judged_is_counted(tmp_path: Path) -> None:
    from tests.rtl_mutation.__main__ import unjudged

    one, two, three, four = found(tmp_path)[:4]
    sample = [one, two, three, replace(four, file="n.sv")]
    judged = [Judged(each, CAUGHT, "", 0.0) for each in (sample[3], one)]
    assert unjudged(sample, judged) == {"m.sv": 2}
    assert unjudged(sample[:1], judged) == {}


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        ("level == (IndexBits + 1)'(Depth)", "1'b0", ""),  # of an assertion, which is not read
        ("level != (IndexBits + 1)'(Depth)", "1'b1", "[fifo]"),
        ("tail == LastIndex", "1'b0", "[fifo-4-5]"),
        ("tail  <= '0;", STATEMENT, "[fifo]"),
    ],
)
def test_a_proof_catches_a_mutant(before: str, after: str, by: str) -> None:
    test = f"tests/formal/test_formal.py::test_proof_holds{by}"
    assert broken("dma/descriptor_fifo.sv", before, after) == (test if by else "")


@pytest.mark.nightly
@pytest.mark.parametrize(("after", "caught"), [("1'b0", True), ("1'b1", False)])
def test_the_proof_of_the_clock_enable_catches_a_mutant(after: str, *, caught: bool) -> None:
    by = broken("tile/wide_to_narrow.sv", "starting || writes", after)
    assert by == (CLOCK_ENABLE if caught else "")


def broken(name: str, before: str, after: str) -> str:
    """What ``after`` in the place of ``before`` breaks."""
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")
    text = source(Path(name).name).read_bytes()
    start = text.index(before.encode())
    line = next(line for line in text.decode().splitlines() if before in line).strip()
    place = (start, start + len(before), after)
    return broken_by(Mutant(f"rtl/{name}", "", 1, "", *place, line, "", "", 0, False), text)


def test_the_proofs_of_whatever_holds_a_module_are_asked_about_it() -> None:
    """Those that are of it come first; what stands in for a module of its name is not it."""
    pytest.importorskip("pyslang")

    def asked(source: str) -> list[str]:
        return list(dict.fromkeys(proof.wrapper for proof in proofs_about(source)))

    assert asked("rtl/dma/read_stream.sv") == ["arbiter_proof", "engine_proof"]
    assert asked("rtl/tile/tile_fence.sv") == ["tile_queue_proof"]
    assert asked("rtl/tile/tile.sv") == []
    assert asked("rtl/tile/tile_array.sv") == ["tile_array_proof"]
    first, *others = asked("rtl/dma/descriptor_fifo.sv")
    assert first == "fifo_proof" and "chunk_queue_proof" in others
