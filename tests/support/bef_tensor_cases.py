"""Cases for tensors, generated for every element type and rank."""

from __future__ import annotations

Case = tuple[str, str, list[str]]

INTEGERS = ["ui8", "ui16", "ui32", "ui64", "i8", "i32", "i64"]
FLOATS = ["f32", "f64"]
COMPLEX = ["complex64", "complex128"]
NAMED = {"bool": "i1"}
TENSOR = "!t.tensor, !tfrt.chain"


def _number(element: str, value: int) -> str:
    if element == "bool":
        return "true" if value else "false"
    return f"{value}.0 : {element}" if element in FLOATS else f"{value} : {element}"


def _text(element: str, value: int) -> str:
    return f"{value:e}" if element in FLOATS else str(value)


def _dense(element: str, shape: str, values: list[str], more: str = "") -> str:
    shown = ", ".join(values)
    dtype = NAMED.get(element, element)
    return f"DenseHostTensor dtype = {dtype}, shape = [{shape}], values = [{shown}{more}]"


def _create(name: str, element: str, *dims: int) -> str:
    sizes = ", ".join(f"{dim} : i64" for dim in dims)
    return f"{name} = tfrt_dht.create_uninitialized_tensor.{element}.{len(dims)} [{sizes}]"


def _filling(element: str) -> Case:
    one = _number(element, 1)
    return (
        f"fill, set, print, equal {element}",
        f"""{_create("%a", element, 2)}
        {_create("%b", element, 2)}
        %c1 = tfrt_dht.fill_tensor_with_constant.{element} %a, %ch {one}
        %c2 = tfrt_dht.print_tensor %a, %c1
        %c3 = tfrt_dht.set_tensor_with_constant_values.{element} %b, %c2
            [{one}, {_number(element, 0)}]
        %c4 = tfrt_dht.print_tensor %b, %c3
        %e, %c5 = tfrt_dht.tensor_equal.{element} %a, %b, %c4
        %f, %c6 = tfrt_dht.tensor_allclose.{element} %a, %a, %c5
        %c7 = tfrt.print.i1 %e, %c6
        tfrt.print.i1 %f, %c7""",
        [
            _dense(element, "2", [_text(element, 1)] * 2),
            _dense(element, "2", [_text(element, 1), _text(element, 0)]),
            "int1 = 0",
            "int1 = 1",
        ],
    )


def _operands(element: str) -> Case:
    """Values that are operands, and tensors that share a buffer."""
    size = {"ui8": 1, "i8": 1, "bool": 1, "ui16": 2, "ui32": 4, "i32": 4, "f32": 4}.get(element, 8)
    kind = NAMED.get(element, element)
    constant = {"bool": "tfrt.constant.i1 1"}.get(element)
    if element in FLOATS:
        constant = f"tfrt.constant.{element} 1.0"
    elif element in ("ui8", "i8", "ui16"):
        # No constant has this type; the kernel takes any integer.
        kind, constant = "i32", "tfrt.constant.i32 1"
    constant = constant or f"tfrt.constant.{element} 1"
    return (
        f"operands and buffers {element}",
        f"""%size = tfrt.constant.i64 {2 * size}
        %part = tfrt.constant.i64 {size}
        %buffer = tfrt_dht.allocate_buffer %size, %part
        %slice = tfrt_dht.get_buffer_slice %buffer, %part, %part
        %two = ts.build_shape [2 : i64]
        %one = ts.build_shape [1 : i64]
        %a, %c1 = tfrt_dht.make_tensor.{element} %buffer, %two, %ch
        %b, %c2 = tfrt_dht.make_tensor.{element} %slice, %one, %c1
        %v = {constant}
        %c3 = "tfrt_dht.set_tensor_with_values.{element}"(%b, %c2, %v) :
            ({TENSOR}, {kind}) -> !tfrt.chain
        tfrt_dht.print_tensor %a, %c3""",
        [_dense(element, "2", [_text(element, 0), _text(element, 1)])],
    )


def _complex(element: str) -> Case:
    kind = {"complex64": "complex<f32>", "complex128": "complex<f64>"}[element]
    return (
        f"complex {element}",
        f"""{_create("%a", element, 1)}
        %v = tfrt.constant.{element} 1.0, -2.0
        %c1 = "tfrt_dht.set_tensor_with_values.{element}"(%a, %ch, %v) :
            ({TENSOR}, {kind}) -> !tfrt.chain
        %buffer, %c2 = tfrt_dht.get_buffer %a, %c1
        %shape = tfrt_dht.get_tensor_shape %a
        %b, %c3 = tfrt_dht.make_tensor.{element} %buffer, %shape, %c2
        %e, %c4 = tfrt_dht.tensor_equal.{element} %a, %b, %c3
        %f, %c5 = tfrt_dht.tensor_allclose.{element} %a, %b, %c4
        %c6 = tfrt.print.i1 %e, %c5
        %c7 = tfrt.print.i1 %f, %c6
        tfrt_dht.print_tensor %b, %c7""",
        ["int1 = 1", "int1 = 1", _dense(element, "1", ["1.000000e+00+-2.000000e+00i"])],
    )


def _parts(element: str) -> Case:
    """Constants of complex tensors are lists of their parts."""
    part = {"complex64": "f32", "complex128": "f64"}[element]
    return (
        f"parts of {element}",
        f"""{_create("%a", element, 2)}
        %c1 = tfrt_dht.set_tensor_with_constant_values.{element} %a, %ch
            [1.0 : {part}, 2.0 : {part}, -3.0 : {part}, 0.5 : {part}]
        tfrt_dht.print_tensor %a, %c1""",
        [_dense(element, "2", ["1.000000e+00+2.000000e+00i", "-3.000000e+00+5.000000e-01i"])],
    )


UNITS = (3, 1000, 2000, 100000)


def _units(element: str) -> Case:
    """The same tensor is close, however many units are asked for."""
    lines, before = [_create("%a", element, 1)], "%ch"
    for number, units in enumerate(UNITS):
        operation = f"tfrt_dht.tensor_allclose.{units}ulp.{element}"
        kinds = "(!t.tensor, !t.tensor, !tfrt.chain) -> (i1, !tfrt.chain)"
        lines.append(f'%e{number}, %c{number} = "{operation}"(%a, %a, {before}) : {kinds}')
        lines.append(f"%p{number} = tfrt.print.i1 %e{number}, %c{number}")
        before = f"%p{number}"
    return f"units of {element}", "\n".join(lines), ["int1 = 1"] * len(UNITS)


def _slice(element: str) -> Case:
    values = ", ".join(_number(element, number) for number in range(12))
    return (
        f"slice of {element}",
        f"""{_create("%a", element, 2, 3, 2)}
        %c1 = tfrt_dht.set_tensor_with_constant_values.{element} %a, %ch [{values}]
        {_create("%b", "i64", 3)}
        %c2 = tfrt_dht.set_tensor_with_constant_values.i64 %b, %c1 [1, 0, 1]
        {_create("%o", element, 1, 2, 1)}
        %c3 = "tfrt_test.slice_inplace.{element}.3"(%a, %b, %c2, %o) :
            (!t.tensor, !t.tensor, !tfrt.chain, !t.tensor) -> !tfrt.chain
        tfrt_dht.print_tensor %o, %c3""",
        [_dense(element, "1, 2, 1", [_text(element, 7), _text(element, 9)])],
    )


def _ranks(element: str) -> Case:
    lines = []
    for rank in range(6):
        lines.append(_create(f"%a{rank}", element, *[1] * rank))
        lines.append(
            f"%c{rank + 1} = tfrt_dht.print_tensor_shape %a{rank}, %c{rank}".replace("%c0", "%ch")
        )
    shapes = [f"[{', '.join(['1'] * rank)}]" for rank in range(6)]
    return f"ranks of {element}", "\n".join(lines), shapes


def _coordinate(element: str, rank: int) -> Case:
    dims = [2] * rank
    count = 2**rank
    digits = [format(number, f"0{rank}b") if rank else "" for number in range(count)]
    indices = ", ".join(digit for number in digits for digit in number)
    values = ", ".join([_text(element, 3)] * count)
    shape = ", ".join(map(str, dims))
    coo = f"CooHostTensor dtype = {element}, shape = [{shape}], indices = [{indices}], "
    return (
        f"coordinates {element} {rank}",
        f"""{_create("%a", element, *dims)}
        %c1 = tfrt_dht.fill_tensor_with_constant.{element} %a, %ch {_number(element, 3)}
        %s, %c2 = coo.convert_dht_to_coo.{element}.{rank} %a, %c1
        %d, %c3 = coo.convert_coo_to_dht.{element}.{rank} %s, %c2
        %e, %c4 = tfrt_dht.tensor_equal.{element} %a, %d, %c3
        %f, %c5 = coo.tensor_equal.{element}.{rank} %s, %s, %c4
        %c6 = tfrt.print.i1 %e, %c5
        %c7 = tfrt.print.i1 %f, %c6
        tfrt_dht.print_tensor %s, %c7""",
        ["int1 = 1", "int1 = 1", f"{coo}values = [{values}]", ""],
    )


SPARSE: list[Case] = [
    (
        "indices are not in row-major order",
        f"""{_create("%a", "i32", 3, 2)}
        %c1 = tfrt_dht.fill_tensor_with_constant.i32 %a, %ch 4 : i32
        %s, %c2 = coo.convert_dht_to_coo.i32.2 %a, %c1
        tfrt_dht.print_tensor %s, %c2""",
        [
            "CooHostTensor dtype = i32, shape = [3, 2], "
            "indices = [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2], values = [4, 4, 4, 4, 4, 4]",
            "",
        ],
    ),
    (
        "zeros are left out",
        f"""{_create("%a", "i32", 2, 2)}
        %c1 = tfrt_dht.set_tensor_with_constant_values.i32 %a, %ch
            [0 : i32, 5 : i32, 0 : i32, 0 : i32]
        %s, %c2 = coo.convert_dht_to_coo.i32.2 %a, %c1
        %c3 = tfrt_dht.print_tensor %s, %c2
        %d, %c4 = coo.convert_coo_to_dht.i32.2 %s, %c3
        tfrt_dht.print_tensor %d, %c4""",
        [
            "CooHostTensor dtype = i32, shape = [2, 2], indices = [0, 1], values = [5]",
            "",
            _dense("i32", "2, 2", ["0", "5", "0", "0"]),
        ],
    ),
]


def _texts(count: int, shown: int, more: str) -> Case:
    values = ", ".join(f'"{number}"' for number in range(count))
    text = ", ".join(f'"{number}"' for number in range(shown))
    return (
        f"{count} texts",
        f"""%a = "tfrt_sht.create_tensor"() {{shape = [{count}], values = [{values}]}} :
            () -> !t.tensor
        tfrt_dht.print_tensor %a, %ch""",
        [f"StringHostTensor shape = [{count}], values = [{text}{more}]"],
    )


OTHER: list[Case] = [
    (
        "sixteen values are shown",
        f"""{_create("%a", "i32", 17)}
        {_create("%b", "i32", 16)}
        %c1 = tfrt_dht.print_tensor %a, %ch
        tfrt_dht.print_tensor %b, %c1""",
        [_dense("i32", "17", ["0"] * 16, ", ... "), _dense("i32", "16", ["0"] * 16)],
    ),
    (
        "tensors of a buffer see each other",
        f"""{_create("%a", "f32", 2, 2)}
        %buffer, %c1 = tfrt_dht.get_buffer %a, %ch
        %shape = ts.build_shape [4 : i64]
        %b, %c2 = tfrt_dht.make_tensor.f32 %buffer, %shape, %c1
        %c3 = tfrt_dht.fill_tensor_with_constant.f32 %b, %c2 1.5 : f32
        tfrt_dht.print_tensor %a, %c3""",
        [_dense("f32", "2, 2", ["1.500000e+00"] * 4)],
    ),
    (
        "close values differ by two units",
        f"""{_create("%a", "f32", 1)}
        {_create("%b", "f32", 1)}
        {_create("%d", "f32", 1)}
        %c1 = tfrt_dht.fill_tensor_with_constant.f32 %a, %ch 1.0 : f32
        %c2 = tfrt_dht.fill_tensor_with_constant.f32 %b, %c1 0x3F800002 : f32
        %c3 = tfrt_dht.fill_tensor_with_constant.f32 %d, %c2 0x3F800004 : f32
        %e, %c4 = tfrt_dht.tensor_allclose.f32 %a, %b, %c3
        %f, %c5 = tfrt_dht.tensor_allclose.f32 %a, %d, %c4
        %c6 = tfrt.print.i1 %e, %c5
        tfrt.print.i1 %f, %c6""",
        ["int1 = 1", "int1 = 0"],
    ),
    (
        "close values differ by as many units as asked for",
        f"""{_create("%a", "f32", 1)}
        {_create("%b", "f32", 1)}
        %c1 = tfrt_dht.fill_tensor_with_constant.f32 %a, %ch 1.0 : f32
        %c2 = tfrt_dht.fill_tensor_with_constant.f32 %b, %c1 0x3F800080 : f32
        %e, %c3 = "tfrt_dht.tensor_allclose.3ulp.f32"(%a, %b, %c2) :
            (!t.tensor, !t.tensor, !tfrt.chain) -> (i1, !tfrt.chain)
        %f, %c4 = "tfrt_dht.tensor_allclose.1000ulp.f32"(%a, %b, %c3) :
            (!t.tensor, !t.tensor, !tfrt.chain) -> (i1, !tfrt.chain)
        %c5 = tfrt.print.i1 %e, %c4
        tfrt.print.i1 %f, %c5""",
        ["int1 = 0", "int1 = 1"],
    ),
    (
        "buffers, tensors of attributes",
        """%a = "tfrt_test.const_dense_attr"() {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>}
            : () -> !t.tensor
        %b = "tfrt_test.const_dense_attr"() {value = dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>}
            : () -> !t.tensor
        %buffer, %c1 = tfrt_dht.get_buffer %a, %ch
        %c2 = tfrt_dht.print_buffer %buffer, %c1
        %c3 = "tfrt_dht.no_op_ht"(%a, %c2) : (!t.tensor, !tfrt.chain) -> !tfrt.chain
        %c4 = coo.print_tensor %a, %c3
        tfrt_dht.print_tensor %b, %c4""",
        [
            "HostBuffer<pointer=0x0, size=8>",
            _dense("i16", "2, 2", ["1", "2", "3", "4"]),
            _dense("complex64", "1", ["1.000000e+00+2.000000e+00i"]),
        ],
    ),
    _texts(2, 2, ""),
    # Sixteen are shown of more; only above 32 the line says so.
    _texts(17, 16, ""),
    _texts(33, 16, ", ... "),
]

TENSORS: list[Case] = [
    *(_filling(element) for element in [*INTEGERS, *FLOATS, "bool"]),
    *(_operands(element) for element in [*INTEGERS, *FLOATS, "bool"]),
    *(_complex(element) for element in COMPLEX),
    *(_parts(element) for element in COMPLEX),
    *(_units(element) for element in [*INTEGERS, *FLOATS, *COMPLEX, "bool"]),
    *(_slice(element) for element in ("f32", "i32", "i64")),
    *(_ranks(element) for element in [*INTEGERS, *FLOATS, *COMPLEX, "bool", "f16", "bf16"]),
    *(_coordinate(element, rank) for element in ("f32", "i32") for rank in range(4)),
    *SPARSE,
    *OTHER,
]
