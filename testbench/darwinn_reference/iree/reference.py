"""CPU reference of IREE modules: an interpreter of their bytecode, with state between calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.files import Source
from darwinn_formats.iree import (
    Function,
    Module,
    ParameterFile,
    VmfbFile,
    load,
    load_parameters,
    read_elf,
)
from darwinn_formats.iree.elf import Elf

from darwinn_reference.errors import Unsupported
from darwinn_reference.iree.blocks import COVERED
from darwinn_reference.iree.budget import MAXIMUM_BLOCKS, Budget
from darwinn_reference.iree.compiled import Ranges
from darwinn_reference.iree.declaration import DeclaredPort
from darwinn_reference.iree.element_types import element_type_of
from darwinn_reference.iree.hal import (
    EXECUTABLE_FORMAT,
    HAL,
    HAL_INLINE,
    HAL_LOADER,
    BufferView,
)
from darwinn_reference.iree.hal.objects import Executable
from darwinn_reference.iree.imports import Handler, expect, merged
from darwinn_reference.iree.interface import NUMBERS, Interface
from darwinn_reference.iree.machine import Machine
from darwinn_reference.iree.memory import Buffer, VmList, allocate, device_memory
from darwinn_reference.iree.natives import Native, native_imports
from darwinn_reference.iree.parameter_store import ParameterStore
from darwinn_reference.iree.parameters import PARAMETERS
from darwinn_reference.iree.seeing import (
    STORED_DTYPES,
    Sites,
    buffer_places,
    location_of,
    memory_place,
    operation_of,
    show_ports,
    shown_import,
    touched_parts,
)
from darwinn_reference.iree.tensors import array_of, bits_of, float_of, view_of
from darwinn_reference.iree.vmvx import VMVX
from darwinn_reference.iree.vmvx_packing import PACKING
from darwinn_reference.observation import INPUT, OUTPUT, Observer
from darwinn_reference.protocol import Datum, Intermediate, Output, Tap

IMPORTS: Mapping[tuple[str, str], Handler] = merged(
    (HAL, HAL_INLINE, HAL_LOADER, PARAMETERS, VMVX, PACKING)
)
"""All functions that a module can import, by name and calling convention."""

DISPATCH_IMPORTS: Mapping[tuple[str, str], Handler] = merged((VMVX, PACKING))
"""What executables may import: kernels, but not the device that runs them."""

INITIALIZER = "__init"
DISPATCH_CONVENTION = "0rrriiiiiiiii_v"
_CREATES_EXECUTABLES = "hal.executable.create"
_SCALAR_BITS = {"i": 32, "I": 64}


class IreeReference(Interface):
    """A module that runs on the CPU; see ``protocol.Reference``.

    Globals are made, and ``__init`` is run, when the reference is made and on ``reset``. Taps see
    what every dispatch writes, and what fills and copies write; of modules without dispatches
    (``hal_inline``) they see each buffer when the function returns. Observers see functions of the
    module, dispatches, transfers, and imports other than of the device. ``parameters`` are the
    files that were given.
    """

    observable = True

    def __init__(
        self,
        program: VmfbFile | Source,
        *,
        natives: Mapping[str, Native] | None = None,
        parameters: Sequence[ParameterFile | Source] = (),
        compiled: bool = True,
        placeholders: bool = False,
    ) -> None:
        """Make a reference of a loaded file, or load it.

        ``natives``: functions for what the module imports, by full name (``module.function``).

        ``parameters``: files of the values that the module loads by name (.irpa).

        ``compiled``: functions with loops become machine code, which gives what the interpreter
        gives, only sooner.

        ``placeholders``: executables of machine code are created and do nothing when they are
        dispatched: a call then shows its dispatches, and its results mean nothing.

        Raises:
            FormatError: a file cannot be loaded, or a parameter is in none.
            Unsupported: it needs imports, operations or executables that are not there.
            ExecutionError: its initializer fails.
        """
        file = program if isinstance(program, VmfbFile) else load(program)
        super().__init__(file.module)
        _check_operations(file)
        if not placeholders:
            _check_executables(file.module)
        files = [
            entry if isinstance(entry, ParameterFile) else load_parameters(entry)
            for entry in parameters
        ]
        self.parameters = tuple(files)
        self._host = _Host(self.module, ParameterStore(files), compiled=compiled)
        self._host.placeholders = placeholders
        natively = native_imports(self.module, natives or {})
        seen = {**DISPATCH_IMPORTS, **natively}
        shown = {key: shown_import(key[0], handler) for key, handler in seen.items()}
        self._imports = {**IMPORTS, **shown}
        self.reset()

    def run(
        self,
        inputs: Sequence[Datum],
        *,
        function: str | None = None,
        tap: Tap | None = None,
        observer: Observer | None = None,
    ) -> tuple[Output, ...]:
        """Call a function; globals keep their values for the next call.

        Integers of tensors go in and come out without a sign unless the module declares one.

        Raises:
            ExecutionError: the inputs do not fit, or the program fails.
        """
        called = self.signature(function)
        if len(inputs) != len(called.arguments):
            raise ExecutionError(
                f"{called.function.name} takes {len(called.arguments)} inputs, not {len(inputs)}"
            )
        arguments = [
            _argument(letter, declared, datum)
            for (letter, declared), datum in zip(called.arguments, inputs, strict=True)
        ]
        if observer is not None:
            names = [declared.port.name for _, declared in called.arguments]
            show_ports(observer, INPUT, names, arguments)
        results = self._call(called.function, arguments, tap, observer)
        if observer is not None:
            names = [declared.port.name for _, declared in called.results]
            show_ports(observer, OUTPUT, names, results)
        return tuple(
            Output(declared.port.name, _datum(letter, declared, value))
            for (letter, declared), value in zip(called.results, results, strict=True)
        )

    def reset(self) -> None:
        """Put the globals back to what they were after loading."""
        self._host.parameters.reset()
        self._machine = self._host.machine(self.module, self._imports)
        initializer = self.module.exports.get(INITIALIZER)
        if initializer is not None:
            self._call(initializer, [], None)

    def _call(
        self,
        function: Function,
        arguments: Sequence[Any],
        tap: Tap | None,
        observer: Observer | None = None,
    ) -> tuple[Any, ...]:
        self._host.begin(tap, observer)
        self._machine.observer = observer
        try:
            with np.errstate(all="ignore"):
                results = self._machine.call(function, arguments)
        except RecursionError:
            raise ExecutionError(f"{function.name}: calls are nested too deep") from None
        self._host.finish()
        return results


class _Host:
    """What imports need: executables of the module, and the tap of the current call."""

    def __init__(self, module: Module, parameters: ParameterStore, *, compiled: bool) -> None:
        self.module = module
        self.parameters = parameters
        self.placeholders = False
        self.compiled = compiled
        self.tap: Tap | None = None
        self.step = 0
        self.observer: Observer | None = None
        self.sites = Sites()
        self.looks_closely = False
        self.names: Counter[str] = Counter()
        self.inline: list[Buffer] = []
        self.budget = Budget(MAXIMUM_BLOCKS)

    def machine(
        self,
        module: Module,
        imports: Mapping[tuple[str, str], Handler],
        ranges: Ranges | None = None,
    ) -> Machine:
        compiled = self.compiled
        return Machine(module, imports, self, self.budget, compiled=compiled, ranges=ranges)

    def begin(self, tap: Tap | None, observer: Observer | None) -> None:
        self.budget.begin(MAXIMUM_BLOCKS)
        self.tap = tap
        self.observer = observer
        # Whether somebody asks where compiled code reads and writes.
        self.looks_closely = self.compiled and tap is not None
        if observer is not None:
            self.sites = Sites()
            self.looks_closely |= self.compiled and observer.closely
        self.step = 0
        self.names.clear()
        self.inline.clear()

    def look(self) -> None:
        self.budget.look()

    def finish(self) -> None:
        """Show the buffers of an inline module, which are complete when its function returns."""
        for buffer in self.inline:
            self.show("buffer", "hal_inline.buffer.allocate", buffer)
        self.inline.clear()

    def takes(self, format_name: str) -> bool:
        return self.placeholders or fnmatchcase(EXECUTABLE_FORMAT, format_name)

    def create_executable(self, format_name: str, data: Buffer, constants: Any) -> Executable:
        nested = None if data.segment is None else self.module.nested.get(data.segment)
        if nested is None and self.placeholders:
            return _Placeholder(self)
        if format_name != EXECUTABLE_FORMAT or nested is None:
            raise Unsupported("executables", [_format_text(format_name, data)])
        if constants is not None and len(expect(constants, Buffer, "the constants")):
            raise Unsupported("executables", [f"{format_name} with constants of its own"])
        return _VmvxExecutable(nested, self)

    def at(self, position: int) -> None:
        self.sites.position = position

    def fills(self, operation: str) -> None:
        if self.observer is not None:
            self.observer.begin(self.sites.operator(operation, operation, str))

    def filled(self, operation: str, target: memoryview, source: memoryview | None = None) -> None:
        if self.observer is not None:
            reads = [] if source is None else [memory_place(source)]
            place = self.sites.fill(memory_place(target))
            self.observer.end(lambda: (reads, [place]))
        if self.tap is not None:
            buffer = Buffer(target)
            _ = buffer.stores["i8"]
            self.show(operation, operation, buffer)

    def allocated(self, buffer: Buffer) -> None:
        self.inline.append(buffer)

    def show(self, name: str, operation: str, buffer: Buffer, location: str = "") -> None:
        """Show what was stored in a buffer to the tap, and take what it gives back."""
        if self.tap is None or not buffer.stores:
            return
        dtype = np.dtype(STORED_DTYPES[next(iter(buffer.stores))])
        data = np.frombuffer(buffer.memory, dtype, len(buffer) // dtype.itemsize)
        number = self.names[name]
        self.names[name] += 1
        unique = f"{name}#{number}"
        replaced = self.tap(Intermediate(unique, self.step, operation, data, location))
        self.step += 1
        if replaced is not None:
            if replaced.shape != data.shape or replaced.dtype != data.dtype:
                raise ExecutionError(
                    f"the tap gives {replaced.dtype}{replaced.shape} for {unique}, "
                    f"not {data.dtype}{data.shape}"
                )
            np.frombuffer(device_memory(buffer.memory), dtype, len(data))[...] = replaced


class _VmvxExecutable:
    """A nested module, whose exports are called once for each workgroup."""

    def __init__(self, module: Module, host: _Host) -> None:
        self.module = module
        self.host = host
        self.machine = host.machine(module, DISPATCH_IMPORTS)
        self.tracking: tuple[Machine, Ranges] | None = None
        self.entries = tuple(module.exports.values())
        if INITIALIZER in module.exports:
            raise Unsupported("executables", [f"{EXECUTABLE_FORMAT} with an initializer"])
        wrong = [
            f"an entry point of convention {entry.convention.text}"
            for entry in self.entries
            if entry.convention is not None and entry.convention.text != DISPATCH_CONVENTION
        ]
        if wrong:
            raise Unsupported("executables", wrong)

    def lookup(self, name: str) -> int:
        for index, entry in enumerate(self.module.exports):
            if entry == name:
                return index
        raise ExecutionError(f"the executable has no entry point {name}")

    def dispatch(
        self,
        entry: int,
        workgroups: tuple[int, int, int],
        constants: Sequence[int],
        bindings: Sequence[memoryview],
    ) -> None:
        if not 0 <= entry < len(self.entries):
            raise ExecutionError(f"entry point {entry} of {len(self.entries)}")
        function = self.entries[entry]
        words = np.array(constants, np.int32).tobytes()
        buffers = [Buffer(binding, on_device=True) for binding in bindings]
        fixed = (self._local_memory(function), Buffer(memoryview(words)), VmList(list(buffers)))
        observer = self.host.observer
        if observer is not None:
            place = partial(location_of, self.module, function)
            kind = operation_of(function.name)
            observer.begin(self.host.sites.operator(function.name, kind, place))
        machine, ranges = self._tracked() if self.host.looks_closely else (self.machine, None)
        for z, y, x in product(*(range(count) for count in reversed(workgroups))):
            machine.call(function, (*fixed, x, y, z, 1, 1, 1, *workgroups))
        if observer is not None:
            observer.end(lambda: buffer_places(buffers, self.host.sites, ranges))
        self._show(function, buffers, ranges)

    def _tracked(self) -> tuple[Machine, Ranges]:
        """What notes where the next dispatch reads and writes."""
        if self.tracking is None:
            ranges = Ranges()
            self.tracking = self.host.machine(self.module, DISPATCH_IMPORTS, ranges), ranges
        self.tracking[1].clear()
        return self.tracking

    def _local_memory(self, function: Function) -> Buffer:
        size = function.attributes.get("local_memory", "0")
        if not size.isdigit():
            raise ExecutionError(f"{function.name}: local memory of {size!r} bytes")
        return Buffer(allocate(int(size)))

    def _show(self, function: Function, buffers: Sequence[Buffer], ranges: Ranges | None) -> None:
        if self.host.tap is None:
            return
        location = location_of(self.module, function)
        shown: set[tuple[int, int]] = set()
        for index, buffer in enumerate(buffers):
            for part, stores in touched_parts(buffer, ranges):
                # One memory may be several bindings.
                place = (part.address, len(part))
                if stores and place not in shown:
                    shown.add(place)
                    self.host.show(f"{function.name}.{index}", function.name, part, location)


class _Placeholder:
    """An executable that is not executed. What its entry points write is not known: the last buffer
    is taken for it, as compilers order them.
    """

    def __init__(self, host: _Host) -> None:
        self.host = host
        self.names: list[str] = []

    def lookup(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def dispatch(
        self,
        entry: int,
        workgroups: tuple[int, int, int],
        constants: Sequence[int],
        bindings: Sequence[memoryview],
    ) -> None:
        observer = self.host.observer
        if observer is None:
            return
        known = 0 <= entry < len(self.names)
        name = self.names[entry] if known else f"entry point {entry}"
        observer.begin(self.host.sites.operator(name, operation_of(name), str))
        places = [memory_place(binding) for binding in bindings]
        writes = places[-1:]
        observer.end(lambda: ([*places[:-1], *self.host.sites.taken(writes)], writes))


def _check_operations(file: VmfbFile) -> None:
    """Raise Unsupported with all operations and imports that no part of the program may use."""
    missing = {
        instruction.mnemonic
        for _, module in file.modules
        for function in module.functions
        for instruction in function.instructions()
        if instruction.mnemonic not in COVERED
    }
    if missing:
        raise Unsupported("operations", sorted(missing))


def _check_executables(module: Module) -> None:
    """Refuse programs all of whose executables are machine code, before anything runs."""
    creates = any(
        entry.full_name == _CREATES_EXECUTABLES for entry in module.definition.imported_functions
    )
    payloads = [elf for data in module.rodata if (elf := read_elf(data.data)) is not None]
    if creates and payloads and not module.nested:
        raise Unsupported("executables", [_elf_text(module, elf) for elf in payloads])


def _elf_text(module: Module, elf: Elf) -> str:
    texts = (bytes(data.data[:64]) for data in module.rodata)
    name = next((text.decode() for text in texts if text.startswith(b"embedded-elf-")), "ELF")
    return f"{name} ({elf.bits}-bit {elf.machine} {elf.type})"


def _format_text(format_name: str, data: Buffer) -> str:
    elf = read_elf(data.memory)
    return format_name if elf is None else f"{format_name} ({elf.machine} {elf.type})"


def _argument(letter: str, declared: DeclaredPort, datum: Datum) -> Any:
    convert = _CONVERT_ARGUMENT.get(letter, _number)
    return convert(letter, declared, datum)


def _number(letter: str, declared: DeclaredPort, datum: Datum) -> Any:
    name = declared.port.name
    array = np.asarray(datum)
    if array.ndim or array.dtype.kind not in "iufb":
        raise ExecutionError(f"{name} takes a number, not {_what(datum)}")
    if letter in "fF":
        return float(array)
    if _is_half(letter, declared):
        return bits_of(array, declared.spelling)
    if array.dtype.kind == "f":
        raise ExecutionError(f"{name} takes an integer, not {_what(datum)}")
    bits = _SCALAR_BITS[letter]
    value = int(array)
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise ExecutionError(f"{name} takes {bits} bits, which {value} does not fit")
    return value - ((value >> (bits - 1)) << bits) if value >= 1 << (bits - 1) else value


def _is_half(letter: str, declared: DeclaredPort) -> bool:
    """Whether a number is a float in an integer's register, as those of 16 bits are."""
    dtype = declared.port.dtype
    return letter in _SCALAR_BITS and dtype is not None and dtype.kind == "f"


def _tensor(letter: str, declared: DeclaredPort, datum: Datum) -> BufferView | None:
    port = declared.port
    if datum is None:
        return None
    if isinstance(datum, np.generic):
        datum = np.asarray(datum)
    if not isinstance(datum, np.ndarray):
        raise ExecutionError(f"{port.name} takes an array, not {_what(datum)}")
    if port.dtype is not None and not _same_type(port.dtype, datum.dtype):
        raise ExecutionError(f"{port.name} takes {port.dtype}, not {datum.dtype}")
    if port.shape is not None and not _fits(port.shape, datum.shape):
        raise ExecutionError(f"{port.name} takes shape {port.shape}, not {datum.shape}")
    return view_of(datum, element_type_of(datum.dtype, declared.spelling))


_CONVERT_ARGUMENT: Mapping[str, Callable[[str, DeclaredPort, Datum], Any]] = {"r": _tensor}


def _same_type(declared: np.dtype[Any], given: np.dtype[Any]) -> bool:
    """Integers without a sign take signed and unsigned arrays."""
    integers = declared.kind in "iu" and given.kind in "iu"
    return declared.itemsize == given.itemsize and (integers or declared.kind == given.kind)


def _fits(declared: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(declared) == len(shape) and all(
        size is None or size == actual for size, actual in zip(declared, shape, strict=True)
    )


def _what(datum: Datum) -> str:
    return f"an array of {datum.dtype}" if isinstance(datum, np.ndarray) else repr(datum)


def _datum(letter: str, declared: DeclaredPort, value: Any) -> Datum:
    """A result as an array; numbers become arrays without dimensions."""
    if letter != "r":
        if _is_half(letter, declared):
            return float_of(value, declared.spelling)
        return np.array(value, NUMBERS[letter])
    if value is None:
        return None
    view = expect(value, BufferView, f"the result {declared.port.name}")
    return array_of(view, declared.port.name)
