"""Which functions are worth compiling."""

from __future__ import annotations

from darwinn_reference.iree.compiled.layout import Layout

MAXIMUM_INSTRUCTIONS = 3_000
"""A longer function is interpreted: compiling it may take more than a few seconds."""


def worth_compiling(layout: Layout) -> bool:
    """Whether a function has a loop without calls: what runs once is faster interpreted."""
    return len(layout.instructions) <= MAXIMUM_INSTRUCTIONS and _has_loop(layout)


def _has_loop(layout: Layout) -> bool:
    """Take blocks away that lead nowhere, until none does: what is left are loops."""
    ways: dict[int, set[int]] = {}
    start, calls = 0, False
    for entry in layout.instructions:
        calls |= entry.mnemonic.startswith("call")
        if entry.operation.terminates:
            if not calls:
                ways[start] = {
                    branch.target for branch in layout.branches[entry.pc] if not branch.references
                }
            start, calls = entry.end, False
    sources: dict[int, list[int]] = {}
    for block, targets in ways.items():
        targets &= ways.keys()
        for target in targets:
            sources.setdefault(target, []).append(block)
    ends = [block for block, targets in ways.items() if not targets]
    left = len(ways)
    while ends:
        end = ends.pop()
        left -= 1
        for source in sources.get(end, ()):
            ways[source].discard(end)
            if not ways[source]:
                ends.append(source)
    return left > 0
