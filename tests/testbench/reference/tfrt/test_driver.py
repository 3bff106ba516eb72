"""What the driver prints around functions, and the order in which kernels run."""

from __future__ import annotations

import io
import os

import pytest
from bef_run import file_of, run
from darwinn_formats import tfrt
from darwinn_formats.errors import ExecutionError
from darwinn_reference.errors import Unsupported
from darwinn_reference.tfrt import (
    Driver,
    Options,
    TfrtReference,
    expected_errors,
    queue_of,
)

HELLO = """
func.func @needs(%x: i32) -> i32 {
  %a = tfrt.if %c, %x : (i32) -> (i32) { tfrt.return %x : i32 } else { tfrt.return %x : i32 }
  tfrt.return %a : i32
}
func.func @one() { tfrt.if %c : () -> () { tfrt.return } tfrt.return }
func.func @two() -> (i1, i32, i64, f32, f64, !tfrt.chain, !my.type) {
  %a = tfrt.constant.i1 1
  %b = tfrt.constant.i32 -2
  %c = tfrt.constant.i64 3
  %d = tfrt.constant.f32 0.5
  %e = tfrt.constant.f64 -1.0e+100
  %f = tfrt.new.chain
  %g = "tfrt_tutorial.create_coordinate"(%b, %b) : (i32, i32) -> !my.type
  tfrt.return %a, %b, %c, %d, %e, %f, %g : i1, i32, i64, f32, f64, !tfrt.chain, !my.type
}
""".replace("%a = tfrt.if %c, %x", "%c = tfrt.constant.i1 1\n  %a = tfrt.if %c, %x").replace(
    "{ tfrt.if %c :", "{ %c = tfrt.constant.i1 1 tfrt.if %c :"
)


def test_functions_run_in_the_order_of_the_index() -> None:
    assert run(HELLO).lines == [
        # The regions come before the function that has them.
        "--- Not running '' because it has arguments.",
        "--- Not running '' because it has arguments.",
        "--- Not running 'needs' because it has arguments.",
        "--- Running 'one':",
        "--- Running 'two':",
        "'two' returned 1,-2,3,5.000000e-01,-1.000000e+100,!tfrt.chain value,!my.type value",
    ]


@pytest.mark.parametrize(
    ("options", "queue"),
    [
        (Options(), "Choosing single-threaded work queue."),
        (
            Options(threads=8, blocking_threads=32),
            "Choosing Multi-threaded C++ work queue (8 threads, 32 blocking threads) work queue.",
        ),
    ],
)
def test_the_choices_come_first(options: Options, queue: str) -> None:
    output = io.StringIO()
    Driver(file_of("func.func @f() { tfrt.return }"), None, options, output).run()
    lines = output.getvalue().splitlines()
    assert lines == ["Choosing memory leak check allocator.", queue, "--- Running 'f':"]


@pytest.mark.parametrize(
    ("allocator", "says", "status"),
    [
        ("leak_check_allocator", "memory leak check allocator", 1),
        ("malloc", "malloc", 0),
    ],
)
def test_only_one_allocator_reports_leaks(allocator: str, says: str, status: int) -> None:
    text = 'func.func @f() { "tfrt_test.memory_leak_one_int32"() : () -> () tfrt.return }'
    output = io.StringIO()
    driver = Driver(file_of(text), None, Options(allocator=allocator), output)
    assert driver.run() == status
    first, *_, last = output.getvalue().splitlines()
    assert first == f"Choosing {says}."
    assert last.startswith("Memory leak detected") == bool(status)


@pytest.mark.parametrize("allocator", ["test_fixed_size_1k", "profiled_allocator"])
def test_an_allocator_that_is_not_modelled_is_refused_by_name(allocator: str) -> None:
    driver = Driver(file_of("func.func @f() { tfrt.return }"), None, Options(allocator=allocator))
    with pytest.raises(Unsupported, match=allocator):
        driver.run()


def test_chosen_functions_and_the_first_one() -> None:
    text = "".join(f"func.func @{name}() {{ tfrt.return }}\n" for name in "abcd")
    outcome = run(text, functions=["d", "b"], init_function="c")
    assert outcome.lines == [f"--- Running '{name}':" for name in "cdb"]
    with pytest.raises(ExecutionError, match="couldn't find function z"):
        run(text, functions=["z"])


def test_errors_can_show_their_codes() -> None:
    text = """func.func @fails() -> i32 {
      %x = "tfrt_test.fail"() : () -> i32 // expected-error {{something bad happened}}
      tfrt.return %x : i32
    }
    func.func @stops() -> i32 {
      %ch = tfrt.new.chain
      %x, %c = "tfrt_test.cancel"(%ch) : (!tfrt.chain) -> (i32, !tfrt.chain)
      %y = tfrt.add.i32 %x, %x
      tfrt.return %y : i32
    }"""
    assert [line for line in run(text, print_error_code=True).lines if "returned" in line] == [
        "'fails' returned <<error: something bad happened, code: INTERNAL>>",
        "'stops' returned <<error: Cancelled, code: CANCELLED>>",
    ]


def test_an_unknown_kernel_is_named_where_it_stands_and_nothing_runs() -> None:
    text = """func.func @f() {
    // expected-error @+1 {{unknown kernel name 'no.such'}}
    "no.such"() : () -> ()
    tfrt.return
    }"""
    outcome = run(text)
    assert (outcome.lines, outcome.status) == ([], 0)
    with pytest.raises(Unsupported) as caught:
        TfrtReference(file_of(text))
    assert caught.value.missing == ("no.such",)


def test_unknown_kernels_that_are_not_expected_are_refused_once_each() -> None:
    uses = '"no.such"() : () -> ()\n' * 50 + '"nor.this"() : () -> ()\n'
    with pytest.raises(Unsupported) as caught:
        run(f"func.func @f() {{\n{uses}tfrt.return\n}}")
    assert caught.value.missing == ("no.such", "nor.this")


def test_the_first_function_runs_once_and_only_first() -> None:
    text = "".join(f"func.func @{name}() {{ tfrt.return }}\n" for name in "abc")
    assert run(text, init_function="b").lines == [f"--- Running '{name}':" for name in "bac"]


@pytest.mark.parametrize(
    ("text", "threads", "blocking"),
    [("s", None, 64), ("mstd", os.cpu_count(), 64), ("mstd:3", 3, 64), ("mstd:3,9", 3, 9)],
)
def test_work_queues_are_called_as_there(text: str, threads: int | None, blocking: int) -> None:
    assert queue_of(text) == (threads, blocking)


@pytest.mark.parametrize("text", ["", "S", "s:", "s:1", "mstd:", "mstd:0", "mstd:1,", "mstd:1,2,3"])
def test_other_work_queues_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a queue is s, mstd"):
        queue_of(text)


def test_an_expected_error_that_does_not_come_is_a_complaint() -> None:
    outcome = run("// expected-error @+1 {{never}}\nfunc.func @f() { tfrt.return }")
    assert outcome.status == 1
    assert outcome.log == ["line 2: expected error 'never' was not produced"]


def test_expected_errors_are_found() -> None:
    text = "a // expected-error {{x}}\n// expected-error @+2 {{y z}}\n\n//expected-error@-1{{w}}"
    assert [(e.line, e.text) for e in expected_errors(text)] == [(1, "x"), (4, "y z"), (3, "w")]


def test_each_function_starts_with_a_new_request() -> None:
    text = """func.func @double(%x: i32) -> i32 {
      %y = tfrt.add.i32 %x, %x
      tfrt.return %y : i32
    }
    func.func @first() -> i32 {
      %one = tfrt.constant.i32 1
      %r = tfrt.once @double(%one) : (i32) -> i32
      tfrt.return %r : i32
    }
    func.func @second() -> i32 {
      %two = tfrt.constant.i32 2
      %r = tfrt.once @double(%two) : (i32) -> i32
      tfrt.return %r : i32
    }"""
    returned = [line for line in run(text).lines if "returned" in line]
    assert returned == ["'first' returned 2", "'second' returned 4"]


SYNC = """func.func @sum() -> i32 attributes {tfrt.sync} {
  %a = tfrt.constant.i32 1
  %b = tfrt.add.i32 %a, %a
  tfrt.return %b : i32
}
func.func @fails() -> (i32, i32) attributes {tfrt.sync} {
  %ch = tfrt.new.chain
  %a = tfrt.constant.i32 1
  %z = tfrt.constant.i32 0
  %p = tfrt.print.i32 %a, %ch
  %b, %c = tfrt.div.i32 %a, %z // expected-error {{Divide by zero}}
  %q = tfrt.print.i32 %a, %ch
  tfrt.return %b, %c : i32, i32
}
func.func @calls() -> i32 {
  %r = tfrt.call @sum() : () -> i32
  tfrt.return %r : i32
}"""


def test_synchronous_functions_run_in_order_up_to_the_first_error() -> None:
    outcome = run(SYNC)
    assert outcome.lines == [
        "--- Running 'sum':",
        "'sum' returned 2",
        "--- Running 'fails':",
        "int32 = 1",
        "'fails' returned <<error: Divide by zero>>",
        "--- Running 'calls':",
        "'calls' returned 2",
    ]
    assert outcome.status == 0


def test_a_synchronous_function_cannot_wait() -> None:
    with pytest.raises(ExecutionError, match="comes later, in a synchronous function"):
        run(
            """func.func @f() -> i32 attributes {tfrt.sync} {
            %a = "tfrt_test.async_constant.i32"() {value = 1 : i32} : () -> i32
            tfrt.return %a : i32
            }"""
        )


def costs(*edges: tuple[str, str]) -> str:
    return "\n".join(
        f"%{name} = tfrt_test.test_cost %{of} {{id = {number} : i64, _tfrt_cost = 1 : i64}} : i32"
        for number, (name, of) in enumerate(edges)
    )


def ids(operations: str, attributes: str = "", **options: object) -> list[int]:
    text = f"func.func @f() attributes {{{attributes}}} {{\n{operations}\ntfrt.return\n}}"
    return [int(line.split()[1]) for line in run(text, **options).lines if line[:3] == "id:"]


def test_kernels_of_one_stream_run_last_in_first_out() -> None:
    edges = costs(("a", "s"), ("b", "s"), ("c", "a"))
    found = ids(f"%s = tfrt.constant.i32 1\n{edges}", "tfrt.cost_threshold = 10 : i64")
    # Users run in the order of the text; what they make ready runs before the next of them.
    assert found == [0, 2, 1]


def test_kernels_without_operands_run_last_first_in_one_stream() -> None:
    made = "\n".join(
        f'"vt.constant"() {{value = {number} : i32}} : () -> !vt.value' for number in range(3)
    )
    file = file_of(f"func.func @f() {{\n{made}\ntfrt.return\n}}")
    text = tfrt.to_text(file, exact=True).replace(
        "@f()", "@f() attributes {_bef_streams = [0, 0, 0, 0]}"
    )
    lines = [line for line in run(text).lines if line.startswith("constructed")]
    assert lines == [f"constructed vt.value({number})" for number in (2, 1, 0)]


def test_streams_become_tasks_in_the_order_of_their_numbers() -> None:
    streams = "_bef_streams = [0, 0, 3, 1, 2, 1]"
    edges = costs(("a", "s"), ("b", "s"), ("c", "s"), ("d", "s"))
    found = ids(f"%s = tfrt.constant.i32 1\n{edges}", streams)
    # The last user in the text comes first: its stream, 1, goes on at once, from the back of its
    # list; 2 and 3 are queued.
    assert found == [1, 3, 2, 0]


def test_inline_work_is_done_before_queued_work() -> None:
    text = """func.func @f() {
      %ch = tfrt.new.chain
      %a = tfrt.constant.i32 1
      %b = "tfrt_test.async_copy.i32"(%a) : (i32) -> i32
      tfrt.print.i32 %b, %ch
      %c = tfrt.constant.i32 2
      tfrt.print.i32 %c, %ch
      tfrt.return
    }"""
    streams = text.replace("@f()", "@f() attributes {_bef_streams = [0, 0, 0, 0, 0, 0, 0]}")
    assert run(streams).lines[1:] == ["int32 = 2", "int32 = 1"]


def test_queued_streams_have_other_threads() -> None:
    text = """module attributes {tfrt.cost_threshold = 10 : i64} {
    func.func @f() -> !tfrt.chain {
      %ch = tfrt.new.chain
      %t = "tfrt_test.get_thread_id"(%ch) : (!tfrt.chain) -> i32
      %c0 = tfrt.print.i32 %t, %ch
      %t0 = "tfrt_test.get_thread_id"(%c0) : (!tfrt.chain) -> i32
      %t1 = "tfrt_test.get_thread_id"(%c0) : (!tfrt.chain) -> i32
      %c1 = tfrt.print.i32 %t0, %c0
      %c2 = tfrt.print.i32 %t1, %c1
      %c3 = tfrt.merge.chains %c1, %c2 : !tfrt.chain, !tfrt.chain
      tfrt.return %c3 : !tfrt.chain
    } }"""
    printed = [line for line in run(text, threads=2).lines if line.startswith("int32")]
    assert printed[0] == "int32 = 0"
    assert sorted(printed[1:]) == ["int32 = 0", "int32 = 1"]
    assert [line for line in run(text).lines if line.startswith("int32")] == ["int32 = 0"] * 3
