"""Whether a function agrees with itself: its registers, how often they are read, and by whom."""

from __future__ import annotations

from collections import Counter

from darwinn_formats.tfrt.cursor import Cursor
from darwinn_formats.tfrt.model import Body, Function, Kernel


def check_registers(
    cursor: Cursor, head: Function, body: Body, entry: Kernel, path: str, start: int
) -> None:
    """Check that every register is written once before it is read, and that the users are right.

    ``entry`` is the pseudo kernel of the function, which starts at ``start``.

    Raises:
        FormatError: naming what does not agree.
    """
    arguments, registers = len(head.argument_types), len(body.registers)
    if arguments > registers:
        raise cursor.fail(path, f"{registers} registers for {arguments} arguments", start)
    if entry.results != (registers, *range(arguments)):
        raise cursor.fail(path, "results of the pseudo kernel", start)
    readers = _readers(cursor, body, arguments, path, start)
    returned = Counter(body.results)
    for register, stated in enumerate(body.registers):
        expected = len(readers[register]) + returned[register]
        if stated.uses != expected:
            reason = f"register {register} has {stated.uses} uses, not {expected}"
            raise cursor.fail(f"{path}.uses", reason, start)
    _check_users(cursor, body, readers, path, start)


def _readers(cursor: Cursor, body: Body, arguments: int, path: str, start: int) -> list[list[int]]:
    """Numbers of the kernels that read each register."""
    readers: list[list[int]] = [[] for _ in body.registers]
    written = [False] * len(body.registers)
    written[:arguments] = [True] * arguments
    for number, kernel in enumerate(body.kernels, 1):
        where = f"{path}.kernels[{number}]"
        if kernel.ready_count != len(kernel.arguments):
            reason = f"{kernel.ready_count} operands, but {len(kernel.arguments)} arguments"
            raise cursor.fail(where, reason, start)
        for register in kernel.arguments:
            if not written[register]:
                raise cursor.fail(where, f"register {register} is read too early", start)
            readers[register].append(number)
        for register in kernel.results:
            if written[register]:
                raise cursor.fail(where, f"register {register} is written twice", start)
            written[register] = True
    if not all(written):
        raise cursor.fail(path, f"register {written.index(False)} is never written", start)
    return readers


def _check_users(
    cursor: Cursor, body: Body, readers: list[list[int]], path: str, start: int
) -> None:
    """The first list of the pseudo kernel names kernels without operands, all others readers."""
    without, *of_arguments = body.entry_used_by
    idle = [number for number, kernel in enumerate(body.kernels, 1) if not kernel.arguments]
    if sorted(without) != sorted(idle):
        raise cursor.fail(f"{path}.used_by", "users of kernels without operands", start)
    stated = list(enumerate(of_arguments))
    for kernel in body.kernels:
        stated += zip(kernel.results, kernel.used_by, strict=True)
    for register, users in stated:
        if sorted(users) != readers[register]:
            raise cursor.fail(f"{path}.used_by", f"users of register {register}", start)
