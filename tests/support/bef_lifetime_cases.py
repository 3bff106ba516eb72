"""Modules whose values say when they are made and when they go; as in ``bef_flow_cases``."""

from __future__ import annotations

Flow = tuple[str, str, list[str]]

TRACED = """
func.func @add_one(%x: !vt.value) -> !vt.value {
  %v = "vt.constant"() {value = 1 : i32} : () -> !vt.value
  %r = "vt.add"(%v, %x) : (!vt.value, !vt.value) -> !vt.value
  tfrt.return %r : !vt.value
}
func.func @same(%x: !vt.value) -> !vt.value { tfrt.return %x : !vt.value }
func.func @twice(%x: !vt.value) -> (!vt.value, !vt.value) {
  %a, %b = "tfrt_test.share_to_two"(%x) : (!vt.value) -> (!vt.value, !vt.value)
  tfrt.return %a, %b : !vt.value, !vt.value
}
"""


def _made(number: int) -> list[str]:
    return [f"constructed vt.value({number})", f"move constructed vt.value({number})"]


def _gone(*numbers: int) -> list[str]:
    return [f"destroyed vt.value({number})" for number in numbers]


def _traced(name: str, operations: str, lines: list[str]) -> Flow:
    text = f"{TRACED}func.func @case() {{\n%ch = tfrt.new.chain\n{operations}\ntfrt.return\n}}"
    return name, text, ["--- Running 'case':", *lines]


_PRINT = '"vt.print"(%r, %ch) : (!vt.value, !tfrt.chain) -> !tfrt.chain'
LIFETIMES: list[Flow] = [
    _traced(
        "a value lives to its last use",
        f"""
    %a = "vt.constant"() {{value = 3 : i32}} : () -> !vt.value
    %r = tfrt.call @add_one(%a) : (!vt.value) -> !vt.value
    {_PRINT}""",
        [*_made(3), *_made(1), *_made(4), *_gone(1, 3), "print vt_value(4)", *_gone(4)],
    ),
    _traced(
        "a value that is returned lives on",
        f"""
    %a = "vt.constant"() {{value = 2 : i32}} : () -> !vt.value
    %r = tfrt.call @same(%a) : (!vt.value) -> !vt.value
    {_PRINT}""",
        [*_made(2), "print vt_value(2)", *_gone(2)],
    ),
    _traced(
        "a value that a function returns twice goes once",
        f"""
    %a = "vt.constant"() {{value = 7 : i32}} : () -> !vt.value
    %r, %s = tfrt.call @twice(%a) : (!vt.value) -> (!vt.value, !vt.value)
    {_PRINT}
    {_PRINT.replace("%r", "%s")}""",
        [*_made(7), "print vt_value(7)", "print vt_value(7)", *_gone(7)],
    ),
    _traced(
        "values of a loop go with each turn",
        f"""
    %n = tfrt.constant.i32 2
    %a = "vt.constant"() {{value = 5 : i32}} : () -> !vt.value
    %r = tfrt.repeat.i32 %n, %a : !vt.value {{
      %v = "vt.constant"() {{value = 1 : i32}} : () -> !vt.value
      %s = "vt.add"(%v, %a) : (!vt.value, !vt.value) -> !vt.value
      tfrt.return %s : !vt.value
    }}
    {_PRINT}""",
        [
            *_made(5),
            *(_made(1) + _made(6) + _gone(1)),
            # The first value is the loop's until its end, the second one that of a turn.
            *(_made(1) + _made(7) + _gone(1, 6, 5)),
            "print vt_value(7)",
            *_gone(7),
        ],
    ),
    _traced(
        "a shared value goes once",
        f"""
    %a = "vt.constant"() {{value = 1 : i32}} : () -> !vt.value
    %r, %s = "tfrt_test.share_to_two"(%a) : (!vt.value) -> (!vt.value, !vt.value)
    {_PRINT}
    {_PRINT.replace("%r", "%s")}""",
        [*_made(1), "print vt_value(1)", "print vt_value(1)", *_gone(1)],
    ),
    _traced(
        "a value that nobody reads goes at once",
        '"vt.constant"() {value = 4 : i32} : () -> !vt.value',
        [*_made(4), *_gone(4)],
    ),
    # The kernels without operands are in streams 5 (the chain), 1, 2, 4 and 3; the root takes up
    # the stream of the first, the others are queued in the order of their streams.
    _traced(
        "streams decide the order",
        f"""
    %a = "vt.constant"() {{value = 1 : i32}} : () -> !vt.value
    %b = "vt.constant"() {{value = 2 : i32}} : () -> !vt.value
    %r = "vt.add"(%a, %b) : (!vt.value, !vt.value) -> !vt.value
    {_PRINT}
    "vt.constant"() {{value = 4 : i32}} : () -> !vt.value
    "vt.constant"() {{value = 5 : i32}} : () -> !vt.value""",
        [
            *_made(5),
            *_gone(5),
            *_made(4),
            *_gone(4),
            *_made(1),
            *_made(2),
            *_made(3),
            *_gone(1, 2),
            "print vt_value(3)",
            *_gone(3),
        ],
    ),
]
