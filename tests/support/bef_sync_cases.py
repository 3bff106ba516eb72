"""Synchronous functions, as in ``bef_flow_cases``: kernels by names of their own, variadic ones."""

from __future__ import annotations

from bef_lifetime_cases import Flow
from bef_tensor_cases import COMPLEX, FLOATS, INTEGERS, NAMED

PARTS = {"complex64": "f32", "complex128": "f64"}
ONLY_CREATED = ["f16", "bf16"]


def _sync(name: str, results: str, operations: str, lines: list[str]) -> Flow:
    text = f"func.func @case() -> ({results}) attributes {{tfrt.sync}} {{\n{operations}\n}}"
    return name, text, ["--- Running 'case':", *lines]


def _constants() -> Flow:
    kinds = ["i32", "i64", "f16", "bf16", "f32", "f64"]
    lines = []
    for number, kind in enumerate(kinds):
        value = "2" if kind[0] == "i" else "2.0"
        lines.append(
            f'%c{number} = "tfrt.constant_s.{kind}"() {{value = {value} : {kind}}} : () -> {kind}'
        )
    for number in (0, 1):
        kind = kinds[number]
        for operation in ("add", "mul"):
            lines.append(
                f'%{operation}{number} = "tfrt.{operation}_s.{kind}"(%c{number}, %c{number}) : '
                f"({kind}, {kind}) -> {kind}"
            )
    returned = "%add0, %mul0, %add1, %mul1, %c4, %c5"
    types = "i32, i32, i64, i64, f32, f64"
    lines.append(f"tfrt.return {returned} : {types}")
    shown = "4,4,4,4,2.000000e+00,2.000000e+00"
    return _sync("constants", types, "\n".join(lines), [f"'case' returned {shown}"])


def _values(element: str) -> tuple[str, str, str]:
    """Two constants of an element type, as attributes, and as they are printed."""
    if element in PARTS:
        part = PARTS[element]
        return f"1.0 : {part}, 0.0 : {part}, 0.0 : {part}, 1.0 : {part}", "", ""
    if element == "bool":
        return "true, false", "true", "1, 0"
    if element in FLOATS:
        return f"1.0 : {element}, 0.0 : {element}", f"1.0 : {element}", "1.000000e+00, 0.000000e+00"
    return f"1 : {element}, 0 : {element}", f"1 : {element}", "1, 0"


def _tensors(element: str) -> Flow:
    values, one, shown = _values(element)
    dtype = NAMED.get(element, element)
    size = {"ui8": 1, "i8": 1, "bool": 1, "ui16": 2, "ui32": 4, "i32": 4, "f32": 4}.get(element, 8)
    size *= 2 if element == "complex128" else 1
    lines = [
        f"%r{rank} = tfrt_dht_sync.create_uninitialized_tensor.{element}.{rank} {[2] * rank}"
        for rank in range(6)
    ]
    lines += [
        f"tfrt_dht_sync.set_tensor_with_constant_values.{element} %r1 [{values}]",
        f'%size = "tfrt.constant_s.i64"() {{value = {2 * size} : i64}} : () -> i64',
        '%none = "tfrt.constant_s.i64"() {value = 0 : i64} : () -> i64',
        "%buffer = tfrt_dht_sync.allocate_buffer %size, %size",
        "%part = tfrt_dht_sync.get_buffer_slice %buffer, %none, %size",
        "%shape = tfrt_dht_sync.get_tensor_shape %r1",
        f"%made = tfrt_dht_sync.make_tensor.{element} %part, %shape",
        "tfrt_dht_sync.print_tensor %r1",
    ]
    if element in PARTS:
        shown = "1.000000e+00+0.000000e+00i, 0.000000e+00+1.000000e+00i"
    expected = [f"DenseHostTensor dtype = {dtype}, shape = [2], values = [{shown}]"]
    if one:
        head = f"tfrt_dht_sync.create_dense_tensor.{element}"
        first = shown.partition(", ")[0]
        lines += [
            f'%d = "{head}"() {{shape = [2], values = [{values}]}} : () -> !t.tensor',
            "tfrt_dht_sync.print_tensor %d",
            f'%e = "{head}"() {{shape = [2], values = [{one}]}} : () -> !t.tensor',
            "tfrt_dht_sync.print_tensor %e",
            f'%s = "tfrt_dht_sync.create_from_scalar.{element}"() {{shape = [3], value = {one}}} '
            ": () -> !t.tensor",
            "tfrt_dht_sync.print_tensor %s",
        ]
        expected += [
            f"DenseHostTensor dtype = {dtype}, shape = [2], values = [{shown}]",
            f"DenseHostTensor dtype = {dtype}, shape = [2], values = [{first}, {first}]",
            f"ScalarHostTensor dtype = {dtype}, shape = [3], value = {first}",
        ]
    body = "\n".join([*lines, "tfrt.return"])
    return _sync(f"synchronous tensors {element}", "", body, expected)


def _created(element: str) -> Flow:
    lines = [
        f"%r{rank} = tfrt_dht_sync.create_uninitialized_tensor.{element}.{rank} {[2] * rank}"
        for rank in range(6)
    ]
    body = "\n".join([*lines, "tfrt.return"])
    return _sync(f"synchronous tensors {element}", "", body, [])


SYNCHRONOUS: list[Flow] = [
    _constants(),
    *(_tensors(element) for element in [*INTEGERS, *FLOATS, *COMPLEX, "bool"]),
    *(_created(element) for element in ONLY_CREATED),
    _sync(
        "shapes and attributes",
        "i64, !ts.shape, !ts.partial_shape",
        """%a = ts_sync.build_shape [2, 3]
        %n = ts_sync.get_num_elements %a
        %b = ts_sync.build_partial_shape [4]
        %c = ts_sync.to_shape %b
        %d = ts_sync.to_partial_shape %c
        %t = "tfrt_test.sync.const_dense_attr"() {value = dense<7> : tensor<2xui8>} :
            () -> !t.tensor
        tfrt_dht_sync.print_tensor %t
        %s = tfrt_test.get_string_sync {value = "own"}
        tfrt.return %n, %c, %d : i64, !ts.shape, !ts.partial_shape""",
        [
            "DenseHostTensor dtype = ui8, shape = [2], values = [7, 7]",
            "'case' returned 6,!ts.shape value,!ts.partial_shape value",
        ],
    ),
    _sync(
        "texts",
        "!t.tensor",
        """%a = "tfrt_sht_sync.create_tensor"() {shape = [1, 2], values = ["own", "two"]} :
            () -> !t.tensor
        tfrt_dht_sync.print_tensor %a
        %b = "tfrt_sht_sync.create_uninitialized_tensor"() {shape = [3]} : () -> !t.tensor
        tfrt_dht_sync.print_tensor %b
        // expected-error @+1 {{runtime error: Cannot allocate tensor}}
        %c = "tfrt_sht_sync.create_uninitialized_tensor"() {shape = [1099511627776]} :
            () -> !t.tensor
        tfrt.return %c : !t.tensor""",
        [
            'StringHostTensor shape = [1, 2], values = ["own", "two"]',
            'StringHostTensor shape = [3], values = ["", "", ""]',
            "'case' returned <<error: Cannot allocate tensor>>",
        ],
    ),
    _sync(
        "any number of operands and attributes",
        "i32, i32, i32, i32, i32",
        """%a = "tfrt.constant_s.i32"() {value = 2147483647 : i32} : () -> i32
        %b = "tfrt.constant_s.i32"() {value = 2 : i32} : () -> i32
        %c = "tfrt_test.sync_sum"(%b, %b, %b) : (i32, i32, i32) -> i32
        %d = "tfrt_test.sync_sum2"(%a, %b) : (i32, i32) -> i32
        %e = "tfrt_test.sum"(%b) : (i32) -> i32
        %f = "tfrt_test.sync_sum_attributes"() : () -> i32
        %g = "tfrt_test.sync_sum_attributes"() {a = 1 : i32, b = 2 : i32, c = 3 : i32} : () -> i32
        tfrt.return %c, %d, %e, %f, %g : i32, i32, i32, i32, i32""",
        ["'case' returned 6,-2147483647,2,0,6"],
    ),
    _sync(
        "errors of synchronous kernels",
        "i32",
        """%x = "tfrt_test.fail_s"() : () -> i32 // expected-error {{something bad happened}}
        tfrt.return %x : i32
        }
        func.func @other() -> i32 attributes {tfrt.sync} {
        %x = "tfrt_test.error_s"() : () -> i32 // expected-error {{something bad happened}}
        tfrt.return %x : i32""",
        [
            "'case' returned <<error: something bad happened>>",
            "--- Running 'other':",
            "'other' returned <<error: something bad happened>>",
        ],
    ),
    _sync(
        "an error without a result ends the function",
        "i32",
        """%t = tfrt_dht_sync.create_uninitialized_tensor.i32.1 [2]
        // expected-error @+1 {{Incorrect number of values for the tensor: 1, but expected 2}}
        tfrt_dht_sync.set_tensor_with_constant_values.i32 %t [1 : i32]
        tfrt_dht_sync.print_tensor %t
        %x = "tfrt.constant_s.i32"() {value = 1 : i32} : () -> i32
        tfrt.return %x : i32""",
        ["'case' returned <<error: Incorrect number of values for the tensor: 1, but expected 2>>"],
    ),
    (
        "synchronous functions in others",
        """func.func @add(%a: i32, %b: i32) -> i32 attributes {tfrt.sync} {
          %c = "tfrt.add_s.i32"(%a, %b) : (i32, i32) -> i32
          tfrt.return %c : i32
        }
        func.func @both(%a: i32, %b: i32) -> (i32, i32) attributes {tfrt.sync} {
          %c = "tfrt.add_s.i32"(%a, %b) : (i32, i32) -> i32
          %d = "tfrt.mul_s.i32"(%a, %b) : (i32, i32) -> i32
          tfrt.return %c, %d : i32, i32
        }
        func.func @case() -> (i32, i32, i32) {
          %a = tfrt.constant.i32 2
          %b = tfrt.constant.i32 3
          %c = "tfrt_test.invoke_sync_function.i32_i32.i32"(%a, %b) {fn = @add} : (i32, i32) -> i32
          %d, %e = "tfrt_test.invoke_sync_function.i32_i32.i32_i32"(%a, %b) {fn = @both} :
              (i32, i32) -> (i32, i32)
          tfrt.return %c, %d, %e : i32, i32, i32
        }""",
        ["--- Running 'case':", "'case' returned 5,5,6"],
    ),
    (
        "synchronous benchmark",
        """func.func @own() attributes {tfrt.sync} { tfrt.return }
        func.func @case() attributes {tfrt.sync} {
          tfrt_test.sync_benchmark @own() duration_secs = 1, max_count = 2
          tfrt.return
        }""",
        [
            "--- Running 'own':",
            "--- Running 'case':",
            *(
                f"BM:own:{what}: "
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
            ),
        ],
    ),
    (
        "queued work, texts",
        """func.func @case() -> (i64, i1, i1) {
          %big = tfrt.constant.i64 5000000000
          %later = "tfrt_test.async_copy.with_delay.i64"(%big) : (i64) -> i64
          "tfrt_test.quiesce"() : () -> ()
          %seven = tfrt.constant.i32 7
          %t = tfrt_test.get_string {value = "part-%03d.txt"}
          %f = "tfrt_test.format_string"(%t, %seven) : (!tfrt.string, i32) -> !tfrt.string
          %g = tfrt_test.get_string {value = "part-007.txt"}
          %e = "tfrt_test.string_equal"(%f, %g) : (!tfrt.string, !tfrt.string) -> i1
          %u = "tfrt_test.string_equal"(%f, %t) : (!tfrt.string, !tfrt.string) -> i1
          tfrt.return %later, %e, %u : i64, i1, i1
        }""",
        ["--- Running 'case':", "'case' returned 5000000000,1,0"],
    ),
]
