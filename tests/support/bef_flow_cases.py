"""Whole modules: calls, control flow, queued work, and all that they print.

Each is a name, a text, and the lines after the choices of allocator and queue, without the lines
about functions that are not run.
"""

from __future__ import annotations

from bef_lifetime_cases import LIFETIMES, Flow
from bef_sync_cases import SYNCHRONOUS

HELPERS = """
func.func @same(%x: i32) -> i32 { tfrt.return %x : i32 }
func.func @double(%x: i32) -> i32 {
  %y = tfrt.add.i32 %x, %x
  tfrt.return %y : i32
}
func.func @next(%x: i32) -> (i32, i1) {
  %one = tfrt.constant.i32 1
  %five = tfrt.constant.i32 5
  %y = tfrt.add.i32 %x, %one
  %more = tfrt.lessequal.i32 %y, %five
  tfrt.return %y, %more : i32, i1
}
func.func @next_later(%x: i32) -> (i32, i1) {
  %one = tfrt.constant.i32 1
  %five = tfrt.constant.i32 5
  %y = "tfrt_test.async_add.i32"(%x, %one) : (i32, i32) -> i32
  %more = tfrt.lessequal.i32 %y, %five
  tfrt.return %y, %more : i32, i1
}
func.func @next_cancels(%x: i32) -> (i32, i1) {
  %ch = tfrt.new.chain
  %z, %c = "tfrt_test.cancel"(%ch) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %more = tfrt.lessequal.i32 %z, %x
  tfrt.return %z, %more : i32, i1
}
func.func @later(%x: i32) -> i32 {
  %y = "tfrt_test.async_add.i32"(%x, %x) : (i32, i32) -> i32
  %z = "tfrt_test.async_add.i32"(%y, %y) : (i32, i32) -> i32
  tfrt.return %z : i32
}
func.func @count(%a: !test.atomic.i32, %ch: !tfrt.chain) -> !tfrt.chain {
  %done = tfrt_test.do.async %a, %ch : (!test.atomic.i32, !tfrt.chain) -> (!tfrt.chain) {
    %inner = tfrt_test.do.async %a, %ch : (!test.atomic.i32, !tfrt.chain) -> (!tfrt.chain) {
      %c = "tfrt_test.atomic.inc.i32"(%a, %ch) :
        (!test.atomic.i32, !tfrt.chain) -> !tfrt.chain
      tfrt.return %c : !tfrt.chain
    }
    tfrt.return %inner : !tfrt.chain
  }
  tfrt.return %done : !tfrt.chain
}
func.func @block(%s: i32, %e: i32, %a: !test.atomic.i32) -> !tfrt.chain {
  %ch = tfrt.new.chain
  %c1 = "tfrt_test.atomic.add.i32"(%a, %e, %ch) :
      (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
"""


def _case(name: str, results: str, operations: str, lines: list[str]) -> Flow:
    text = f"{HELPERS}func.func @case() -> ({results}) {{\n%ch = tfrt.new.chain\n{operations}\n}}"
    return name, text, ["--- Running 'case':", *lines]


def _while(body: str, iterations: int, first: str = "true") -> str:
    return f"""%t = tfrt.constant.i1 {first}
    %z = tfrt.constant.i32 0
    %r = tfrt.while %t @{body}(%z) parallel_iterations({iterations}) : (i32) -> (i32)
    tfrt.return %r : i32"""


# Ends the function before it; the last brace is that of the case.
NEXT_FAILS = """ }
func.func @next_fails(%x: i32) -> (i32, i1) {
  %more = "tfrt_test.fail"() : () -> i1 // expected-error {{something bad happened}}
  tfrt.return %x, %more : i32, i1"""
ONE_TWO = "%one = tfrt.constant.i32 1\n%two = tfrt.constant.i32 2\n"
T_F = "%t = tfrt.constant.i1 1\n%f = tfrt.constant.i1 0\n"

FLOW: list[Flow] = [
    _case(
        "call",
        "i32",
        ONE_TWO + "%r = tfrt.call @double(%two) : (i32) -> i32\ntfrt.return %r : i32",
        ["'case' returned 4"],
    ),
    _case(
        "if",
        "i32, i32",
        ONE_TWO
        + T_F
        + """
    %a = tfrt.if %t, %one, %two : (i32, i32) -> i32 { tfrt.return %one : i32 } else {
      tfrt.return %two : i32 }
    %b = tfrt.if %f, %one, %two : (i32, i32) -> i32 { tfrt.return %one : i32 } else {
      tfrt.return %two : i32 }
    tfrt.return %a, %b : i32, i32""",
        ["'case' returned 1,2"],
    ),
    _case(
        "cond",
        "i32, i32",
        ONE_TWO
        + T_F
        + """
    %a = tfrt.cond %t @same @double (%two) : (i32) -> i32
    %b = tfrt.cond %f @same @double (%two) : (i32) -> i32
    tfrt.return %a, %b : i32, i32""",
        ["'case' returned 2,4"],
    ),
    _case(
        "case",
        "i32, i32, i32, i32",
        ONE_TWO
        + """
    %zero = tfrt.constant.i32 0
    %minus = tfrt.constant.i32 -1
    %a = tfrt.case %zero [@same, @double] (%two) : (i32) -> i32
    %b = tfrt.case %one [@same, @double] (%two) : (i32) -> i32
    %c = tfrt.case %two [@same, @double] (%two) : (i32) -> i32
    %d = tfrt.case %minus [@same, @double] (%two) : (i32) -> i32
    tfrt.return %a, %b, %c, %d : i32, i32, i32, i32""",
        ["'case' returned 2,4,4,4"],
    ),
    _case("while", "i32", _while("next", 1), ["'case' returned 6"]),
    _case("while in tasks", "i32", _while("next", 4), ["'case' returned 6"]),
    _case("while not once", "i32", _while("next", 1, "false"), ["'case' returned 0"]),
    _case("while on later values", "i32", _while("next_later", 1), ["'case' returned 6"]),
    _case("while on later values in tasks", "i32", _while("next_later", 2), ["'case' returned 6"]),
    _case(
        "while that is cancelled",
        "i32",
        _while("next_cancels", 1),
        ["'case' returned <<error: Cancelled>>"],
    ),
    _case(
        "while that is cancelled in tasks",
        "i32",
        _while("next_cancels", 4),
        ["'case' returned <<error: Cancelled>>"],
    ),
    *(
        _case(
            f"while whose condition fails, {iterations}",
            "i32",
            _while("next_fails", iterations) + NEXT_FAILS,
            ["'case' returned <<error: something bad happened>>"],
        )
        for iterations in (1, 4)
    ),
    _case(
        "a later result that nobody reads",
        "i32",
        """%one = tfrt.constant.i32 1
    %unread = tfrt.call @later(%one) : (i32) -> i32
    %read = tfrt.call @later(%one) : (i32) -> i32
    tfrt.return %read : i32""",
        ["'case' returned 4"],
    ),
    _case(
        "one value returned several times",
        "i32, i32, i32, i32",
        ONE_TWO + "tfrt.return %one, %one, %two, %one : i32, i32, i32, i32",
        ["'case' returned 1,1,2,1"],
    ),
    _case(
        "nested queued work of a loop, all of it counted",
        "i32",
        """%n = tfrt.constant.i32 300
    %a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
    %all:2 = tfrt.repeat.i32 %n, %ch, %a : !tfrt.chain, !test.atomic.i32 {
      %start = tfrt.new.chain
      %done = tfrt.call @count(%a, %start) : (!test.atomic.i32, !tfrt.chain) -> (!tfrt.chain)
      %both = tfrt.merge.chains %ch, %done : !tfrt.chain, !tfrt.chain
      tfrt.return %both, %a : !tfrt.chain, !test.atomic.i32
    }
    %v:2 = "tfrt_test.atomic.get.i32"(%a, %all#0) :
      (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
    tfrt.return %v#0 : i32""",
        ["'case' returned 300"],
    ),
    _case(
        "sleeping in a loop, the last time the longest",
        "i32",
        """%n = tfrt.constant.i32 3
    %us = tfrt.constant.i32 1000
    %one = tfrt.constant.i32 1
    %r:2 = tfrt.repeat.i32 %n, %us, %one : i32, i32 {
      "tfrt_test.usleep"(%us) : (i32) -> ()
      %more = tfrt.add.i32 %us, %one
      tfrt.return %more, %one : i32, i32
    }
    tfrt.return %r#0 : i32""",
        [
            "'case' returned 1003",
            *(f"Slept for {time} microseconds" for time in (1000, 1001, 1002)),
        ],
    ),
    _case(
        "repeat",
        "i32",
        """%n = tfrt.constant.i32 4
    %one = tfrt.constant.i32 1
    %r:2 = tfrt.repeat.i32 %n, %ch, %one : !tfrt.chain, i32 {
      %c = tfrt.print.i32 %one, %ch
      %d = tfrt.add.i32 %one, %one
      tfrt.return %c, %d : !tfrt.chain, i32
    }
    tfrt.return %r#1 : i32""",
        ["int32 = 1", "int32 = 2", "int32 = 4", "int32 = 8", "'case' returned 16"],
    ),
    _case(
        "repeat 0",
        "i32",
        """%n = tfrt.constant.i32 0
    %r = tfrt.repeat.i32 %n, %n : i32 {
      %x = "tfrt_test.fail"() : () -> i32
      tfrt.return %x : i32
    }
    tfrt.return %r : i32""",
        ["'case' returned 0"],
    ),
    _case(
        "repeat without values",
        "",
        """%n = tfrt.constant.i32 2
    tfrt.repeat.i32 %n {
      %c = tfrt.new.chain
      %d = "tfrt_test.print_hello"(%c) : (!tfrt.chain) -> !tfrt.chain
      tfrt.return
    }
    tfrt.return""",
        ["hello host executor!"] * 2,
    ),
    _case(
        "a long repeat of queued work",
        "i32",
        """%n = tfrt.constant.i32 1000
    %one = tfrt.constant.i32 42
    %r = tfrt.repeat.i32 %n, %one : i32 {
      %1 = tfrt.constant.i32 1
      %2 = "tfrt_test.async_add.i32"(%one, %1) : (i32, i32) -> i32
      tfrt.return %2 : i32
    }
    tfrt.return %r : i32""",
        ["'case' returned 1042"],
    ),
    _case(
        "repeat that is cancelled",
        "i32",
        """%n = tfrt.constant.i32 5
    %i = tfrt.constant.i32 0
    %c1, %r = tfrt.repeat.i32 %n, %ch, %i : !tfrt.chain, i32 {
      %c = tfrt.print.i32 %i, %ch
      %one = tfrt.constant.i32 1
      %last = "tfrt.lessequal.i32"(%one, %i, %c) : (i32, i32, !tfrt.chain) -> (i1)
      %d, %x = tfrt.if %last, %c, %one : (!tfrt.chain, i32) -> (!tfrt.chain, i32) {
        %x, %e = "tfrt_test.cancel"(%c) : (!tfrt.chain) -> (i32, !tfrt.chain)
        tfrt.return %e, %x : !tfrt.chain, i32
      } else {
        tfrt.return %c, %one : !tfrt.chain, i32
      }
      %y = tfrt.add.i32 %i, %x
      tfrt.return %d, %y : !tfrt.chain, i32
    }
    tfrt.return %r : i32""",
        ["int32 = 0", "int32 = 1", "'case' returned <<error: Cancelled>>"],
    ),
    _case(
        "once",
        "i32, i32",
        ONE_TWO
        + """
    %a = tfrt.once @double(%one) : (i32) -> (i32)
    %b = tfrt.once @double(%a) : (i32) -> (i32)
    tfrt.return %a, %b : i32, i32""",
        ["'case' returned 2,2"],
    ),
    *(
        _case(
            f"parallel {kind} {block}",
            "i32",
            f"""%s = tfrt.constant.i32 0
    %e = tfrt.constant.i32 10
    %b = tfrt.constant.i32 {block}
    %a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
    %done = {operation}
    %v, %c = "tfrt_test.atomic.get.i32"(%a, %done) :
      (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
    tfrt.return %v : i32""",
            [f"'case' returned {total}"],
        )
        for block, total in ((1, 55), (3, 28), (10, 10), (100, 10))
        for kind, operation in (
            ("call", "tfrt.parallel_call.i32 %s to %e fixed %b @block(%a) : !test.atomic.i32"),
            (
                "for",
                """tfrt.parallel_for.i32 %s to %e fixed %b, %a : !test.atomic.i32 {
      %n = tfrt.new.chain
      %m = "tfrt_test.atomic.add.i32"(%a, %e, %n) :
        (!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain
      tfrt.return %m : !tfrt.chain
    }""",
            ),
        )
    ),
    _case(
        "parallel of nothing",
        "",
        """%s = tfrt.constant.i32 3
    %b = tfrt.constant.i32 1
    %t = tfrt.constant.i32 3
    %done = tfrt.parallel_for.i32 %s to %t fixed %b { tfrt.return }
    "tfrt_test.print_hello"(%done) : (!tfrt.chain) -> !tfrt.chain
    tfrt.return""",
        ["hello host executor!"],
    ),
    _case(
        "queued work",
        "i32, i32, i32, i32, i32, i1",
        ONE_TWO
        + """
    %a = tfrt_test.do.async %one, %two : (i32, i32) -> i32 {
      %x = tfrt.add.i32 %one, %two
      tfrt.return %x : i32
    }
    %b = "tfrt_test.async_add.i32"(%a, %two) : (i32, i32) -> i32
    %c = "tfrt_test.async_copy.i32"(%b) : (i32) -> i32
    %d = "tfrt_test.async_copy_2.i32"(%c) : (i32) -> i32
    %e = "tfrt_test.async_copy.with_delay.i32"(%d) : (i32) -> i32
    %f = "tfrt_test.async_constant.i32"() {value = 7 : i32} : () -> i32
    %g = "tfrt_test.async_constant.i1"() {value = 1 : i1} : () -> i1
    tfrt.return %a, %b, %c, %e, %f, %g : i32, i32, i32, i32, i32, i1""",
        ["'case' returned 3,5,5,5,7,1"],
    ),
    _case(
        "an error goes past kernels and calls",
        "i32, i32",
        """
    %e = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
    %a = tfrt.call @double(%e) : (i32) -> i32
    %b = tfrt.add.i32 %a, %a
    tfrt.return %a, %b : i32, i32""",
        ["'case' returned <<error: something bad happened>>,<<error: something bad happened>>"],
    ),
    _case(
        "an error that nobody reads",
        "i32",
        """
    %e = "tfrt_test.report_error_async"() : () -> i32 // expected-error {{asynchronously}}
    %x = "tfrt_test.report_error_concrete_async"(%one) : (i32) -> i32
    %y = "tfrt_test.report_error_indirect_async"(%one) : (i32) -> i32
    %z, %w = "tfrt_test.partial_fail"() : () -> (i32, i32) // expected-error {{something bad}}
    %v = "tfrt_test.error_chain"() : () -> !tfrt.chain // expected-error {{error chain}}
    tfrt.return %one : i32""".replace(
            "tfrt_test.report_error_async", "tfrt_test.report_error_async", 1
        ).replace("\n", "\n%one = tfrt.constant.i32 0\n", 1),
        ["'case' returned 0"],
    ),
    _case(
        "uniqueness",
        "i1, i1, i1",
        ONE_TWO
        + """
    %a = "tfrt_test.make_indirect"(%one) : (i32) -> i32
    %u = "tfrt_test.get_uniqueness"(%a) : (i32) -> i1
    %v = tfrt.call @unique(%two) : (i32) -> i1
    %x = tfrt.add.i32 %one, %two
    %w = "tfrt_test.get_uniqueness"(%x) : (i32) -> i1
    tfrt.print.i32 %one, %ch
    tfrt.return %u, %v, %w : i1, i1, i1
    }
    func.func @unique(%x: i32) -> i1 {
      %u = "tfrt_test.get_uniqueness"(%x) : (i32) -> i1
      tfrt.return %u : i1""",
        ["int32 = 1", "'case' returned 0,0,1"],
    ),
    _case(
        "benchmark",
        "",
        """%two = tfrt.constant.i32 2
    %done = tfrt_test.benchmark "add.i32"(%two : i32) duration_secs = 1, max_count = 3 {
      %x = tfrt.add.i32 %two, %two
      tfrt.return %x : i32
    }
    tfrt.return""",
        [
            f"BM:add.i32:{what}: "
            for what in (
                "Duration(ns)",
                "Count",
                *(
                    f"{clock} {part}(ns)"
                    for clock in ("Time", "CPU")
                    for part in ("Min", "50%", "95%", "99%")
                ),
                "CPU utilization(percent)",
            )
        ],
    ),
    _case(
        "lost memory",
        "",
        '"tfrt_test.memory_leak_one_int32"() : () -> ()\ntfrt.return',
        ["Memory leak detected: 1 alive allocations, 4 alive bytes"],
    ),
    _case(
        "native functions",
        "i32, i32, i32",
        ONE_TWO
        + """
    %a = tfrt.call @native_add(%one, %two) : (i32, i32) -> i32
    %b = tfrt.call @native_async_add(%a, %two) : (i32, i32) -> i32
    %c = tfrt.call @native_add(%one, %b) : (i32, i32) -> i32
    tfrt.return %a, %b, %c : i32, i32, i32
    }
    func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
    func.func private @native_async_add(i32, i32) -> i32 attributes {tfrt.native}
    func.func private @native_error() -> i32 attributes {tfrt.native}
    func.func private @native_sink(i32) attributes {tfrt.native}
    func.func private @native_async_sink(i32) -> !tfrt.chain attributes {tfrt.native}
    func.func @sinks() -> !tfrt.chain {
      %x = tfrt.constant.i32 1
      tfrt.call @native_sink(%x) : (i32) -> ()
      %c = tfrt.call @native_async_sink(%x) : (i32) -> !tfrt.chain
      tfrt.return %c : !tfrt.chain
    }
    func.func @empty() { tfrt.return""",
        [
            "'case' returned 3,5,6",
            "--- Running 'native_error':",
            "'native_error' returned <<error: something bad happened>>",
            "--- Running 'sinks':",
            "'sinks' returned !tfrt.chain value",
            "--- Running 'empty':",
        ],
    ),
]

FLOW += LIFETIMES + SYNCHRONOUS
