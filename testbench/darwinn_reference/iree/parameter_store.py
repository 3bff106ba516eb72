"""The values of files of parameters (.irpa), which programs ask for by scope and name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from darwinn_formats.errors import FormatError
from darwinn_formats.iree.parameters import EntryKind, Parameter, ParameterFile

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.memory import Buffer, allocate


class ParameterStore:
    """The values of several files, and what a program has written over them.

    A parameter has a scope and a name. A file whose name without its ending is the scope comes
    first; of the others one may have the name.
    """

    def __init__(self, files: Sequence[ParameterFile] = ()) -> None:
        self._files = files
        self._written: dict[int, memoryview] = {}

    def reset(self) -> None:
        """Forget what was written."""
        self._written.clear()

    def read(self, scope: str, name: str, offset: int, length: int) -> Buffer:
        """New memory with a range of a parameter.

        Raises:
            FormatError: no file has the parameter, or several have.
            ExecutionError: the range is not in it.
            Unsupported: its bytes are in another file.
        """
        found = self._find(scope, name)
        kept = self._written.get(id(found))
        if kept is None and found.kind is EntryKind.SPLAT:
            return _repeated(found, offset, length)
        contents = Buffer(found.data if kept is None else kept).part(offset, length)
        memory = allocate(length)
        memory[:] = contents
        return Buffer(memory)

    def write(self, scope: str, name: str, offset: int, data: memoryview) -> None:
        """Write over a range of a parameter, until ``reset``; raises as ``read`` does."""
        found = self._find(scope, name)
        if id(found) not in self._written:
            self._written[id(found)] = self.read(scope, name, 0, found.size).memory
        Buffer(self._written[id(found)]).part(offset, len(data))[:] = data

    def _find(self, scope: str, name: str) -> Parameter:
        named = [file for file in self._files if Path(file.file).stem == scope]
        for files in (named, self._files):
            found = [file for file in files if name in file.parameters]
            if len(found) > 1:
                where = ", ".join(file.file for file in found)
                reason = f"several files have it: {where}; call one of them {scope}.irpa"
                raise FormatError(f"parameter {scope}::{name}", reason)
            if found:
                return self._known(found[0].parameters[name])
        where = ", ".join(file.file for file in self._files) or "no file is given"
        reason = f"the program asks for it, and no file of parameters has it ({where})"
        raise FormatError(f"parameter {scope}::{name}", f"{reason}: --data FILE.irpa gives it")

    @staticmethod
    def _known(parameter: Parameter) -> Parameter:
        if parameter.kind is EntryKind.EXTERNAL:
            raise Unsupported("parameters", [f"{parameter.name} in another file, {parameter.path}"])
        return parameter


def _repeated(parameter: Parameter, offset: int, length: int) -> Buffer:
    """A range of a parameter that is a pattern."""
    memory, period = allocate(length), len(parameter.data)
    if not 0 <= offset <= offset + length <= parameter.size:
        # Says which bytes are not there.
        Buffer(memory[:0]).part(offset, length)
    turned = bytes(parameter.data[offset % period :]) + bytes(parameter.data[: offset % period])
    memory[:] = (turned * -(-length // period))[:length]
    return Buffer(memory)
