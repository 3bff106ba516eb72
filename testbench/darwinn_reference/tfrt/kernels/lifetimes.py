"""Kernels whose values outlive a kernel visibly: counters, resources, traced values, leaks."""

from __future__ import annotations

from typing import TextIO

from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.registry import I32, kernel
from darwinn_reference.tfrt.values import Chain

# --- counters and resources ------------------------------------------------------------------


class Counter:
    """A number that several functions share."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


@kernel("tfrt_test.atomic.create.i32")
def create_counter() -> Counter:
    """A counter of 0."""
    return Counter()


@kernel("tfrt_test.atomic.inc.i32")
def increment_counter(counter: Counter, chain: Chain) -> Chain:
    """Count."""
    counter.value += 1
    return chain


@kernel("tfrt_test.atomic.add.i32")
def add_to_counter(counter: Counter, value: int, chain: Chain) -> Chain:
    """Add a number."""
    counter.value += value
    return chain


@kernel("tfrt_test.atomic.get.i32", results=2)
def get_counter(counter: Counter, chain: Chain) -> tuple[int, Chain]:
    """The number."""
    return counter.value, chain


class Resource:
    """A resource that says when it goes."""

    __slots__ = ("_output",)

    def __init__(self, output: TextIO) -> None:
        self._output: TextIO | None = output

    def destroy(self) -> None:
        """Free it now; once."""
        if self._output is not None:
            self._output.write("Destroyed TestResource\n")
            self._output = None

    def __del__(self) -> None:
        self.destroy()


@kernel("tfrt_test.allocate_resource", host=True, results=2)
def allocate_resource(host: Host, chain: Chain) -> tuple[Resource, Chain]:
    """A resource."""
    host.print("Allocated TestResource")
    return Resource(host.output), chain


@kernel("tfrt_test.deallocate_resource", host=True)
def deallocate_resource(host: Host, resource: Resource, chain: Chain) -> Chain:
    """Free a resource."""
    resource.destroy()
    host.print("tfrt_test.deallocate_resource done")
    return chain


@kernel("tfrt_test.use_sample_shared_context", host=True, results=2)
def use_sample_shared_context(host: Host, chain: Chain) -> tuple[str, Chain]:
    """Name of the one context that all calls share."""
    number = host.shared.setdefault("sample_shared_context", 0)
    return f"sample_shared_context{number}", chain


@kernel("tfrt_test.memory_leak_one_int32", host=True, results=0)
def leak(host: Host) -> None:
    """Lose four bytes."""
    host.leaked.append(4)


# --- values whose life is traced -------------------------------------------------------------


class TracedValue:
    """A number that says when it goes."""

    __slots__ = ("_output", "number")

    def __init__(self, number: int, output: TextIO) -> None:
        self.number = number
        self._output = output
        # A kernel makes its result, which then moves to where it stays.
        output.write(f"constructed vt.value({number})\nmove constructed vt.value({number})\n")

    def __del__(self) -> None:
        self._output.write(f"destroyed vt.value({self.number})\n")


@kernel("vt.constant", host=True, attributes=(I32,))
def traced_constant(host: Host, number: int) -> TracedValue:
    """A traced number."""
    return TracedValue(number, host.output)


@kernel("vt.add", host=True)
def traced_add(host: Host, first: TracedValue, second: TracedValue) -> TracedValue:
    """The traced sum."""
    return TracedValue(first.number + second.number, host.output)


@kernel("vt.print", host=True)
def traced_print(host: Host, value: TracedValue, chain: Chain) -> Chain:
    """Print a traced number."""
    host.print(f"print vt_value({value.number})")
    return chain
