"""Cases for tensors, generated for every element type and rank."""

from __future__ import annotations

Case = tuple[str, str, list[str]]

INTEGERS = ["ui8", "ui32", "ui64", "i8", "i32", "i64"]
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
    size = {"ui8": 1, "i8": 1, "bool": 1, "ui32": 4, "i32": 4, "f32": 4}.get(element, 8)
    kind = NAMED.get(element, element)
    constant = {"bool": "tfrt.constant.i1 1"}.get(element)
    if element in FLOATS:
        constant = f"tfrt.constant.{element} 1.0"
    elif element in ("ui8", "i8"):
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
    _texts(2, 2, ""),
    # Sixteen are shown of more; only above 32 the line says so.
    _texts(17, 16, ""),
    _texts(33, 16, ", ... "),
]

TENSORS: list[Case] = [
    *(_filling(element) for element in [*INTEGERS, *FLOATS, "bool"]),
    *(_operands(element) for element in [*INTEGERS, *FLOATS, "bool"]),
    *(_complex(element) for element in COMPLEX),
    *(_ranks(element) for element in [*INTEGERS, *FLOATS, *COMPLEX, "bool", "f16", "bf16"]),
    *(_coordinate(element, rank) for element in ("f32", "i32") for rank in range(4)),
    *SPARSE,
    *OTHER,
]
