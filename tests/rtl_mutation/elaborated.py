"""The RTL as slang elaborates it: each module once with each set of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from darwinn_rtl.build import Design, design_sources
from darwinn_rtl.build_folders import build_root, locked
from darwinn_rtl.export import CHIP, PLAIN_SIZES, plain_sizes
from pyslang import DiagnosticEngine, ast
from pyslang.driver import Driver

TOPS = ("chip_player", "harness")
"""They hold every module that is not a bench itself."""
_MEMORIES = ("-GMemory=1", "-GUnruly=1")
"""One of them has the host memory that answers in order, one the unruly one."""
PLAYER = "plain_player"
"""It holds the modules in plain Verilog, beside the chip."""


_HOLD = (
    *(ast.InstanceSymbol, ast.InstanceBodySymbol, ast.InstanceArraySymbol),
    *(ast.GenerateBlockSymbol, ast.GenerateBlockArraySymbol),
)
"""What may have instances below it."""


_TIME = "--timescale=1ns/1ns"
"""Of all modules that say nothing of it."""


class CannotElaborate(Exception):
    """The sources do not elaborate; the text says why."""


class Elaborated:
    """Sources in their order, with what the tops have below them.

    Raises :class:`CannotElaborate` with what slang says.
    """

    def __init__(self, paths: Sequence[Path], tops: Sequence[str], *options: str) -> None:
        driver = Driver()
        driver.addStandardArgs()
        words = [*(f"--top={top}" for top in tops), _TIME, *options, *map(str, paths)]
        if not driver.parseCommandLine(" ".join(["slang", *words])):
            raise CannotElaborate("slang does not take its command line")
        if not (driver.processOptions() and driver.parseAllSources()):
            raise CannotElaborate("slang cannot parse the sources")
        self._driver = driver
        self._compilation = driver.createCompilation()

    @classmethod
    def harness(cls, folder: Path) -> Elaborated:
        """The whole RTL in ``folder``, benches, plain Verilog and what is generated included."""
        design = Design(TOPS[0], registers=True)
        place = build_root() / design.key
        with locked(place):
            generated = [path for path in design_sources(design, place) if path.parent == place]
            sources = [*generated, *sorted(folder.rglob("*.sv"))]
            header = plain_sizes(cls(sources, [CHIP]).port_widths(), memory_bytes=64, regions=2)
            (place / PLAIN_SIZES).write_text(header)
            paths = [*sources, *sorted(folder.rglob("*.v"))]
            return cls(paths, [*TOPS, PLAYER], f"-I{place}", *_MEMORIES)

    def port_widths(self) -> dict[str, int]:
        """Bits of each port of the top."""
        (top,) = self._compilation.getRoot().topInstances
        return {port.name: port.type.bitWidth for port in top.body.portList}

    def held(self) -> dict[str, frozenset[Path]]:
        """Of each top, the files of the modules in its hierarchy."""
        found: dict[str, frozenset[Path]] = {}
        for top in self._compilation.getRoot().topInstances:
            files: set[Path] = set()

            def visited(node: Any, files: set[Path] = files) -> ast.VisitAction:
                if isinstance(node, ast.InstanceSymbol) and node.isModule:
                    files.add(self.path(node.definition))
                return ast.VisitAction.Advance if isinstance(node, _HOLD) else ast.VisitAction.Skip

            top.visit(visited)
            found[top.name] = frozenset(files)
        return found

    def errors(self) -> list[str]:
        """What slang refuses of it."""
        engine = DiagnosticEngine(self._compilation.sourceManager)
        return [
            engine.formatMessage(each)
            for each in self._compilation.getAllDiagnostics()
            if each.isError()
        ]

    def path(self, node: Any) -> Path:
        """The file that a node stands in."""
        location = node.location if isinstance(node, ast.Symbol) else node.sourceRange.start
        return Path(self._compilation.sourceManager.getFileName(location)).resolve()

    def visit(self, take: Callable[[Any], bool]) -> None:
        """Call ``take`` with every symbol, statement and expression; where it says False, what is
        below it is left out."""

        seen: set[tuple[str, ...]] = set()

        def visited(node: Any) -> ast.VisitAction:
            new = not isinstance(node, ast.InstanceSymbol) or _is_new(node, seen)
            return ast.VisitAction.Advance if take(node) and new else ast.VisitAction.Skip

        self._compilation.getRoot().visit(visited)


def _is_new(instance: Any, seen: set[tuple[str, ...]]) -> bool:
    """Whether no instance of this module had the same parameters so far."""
    values = (
        str(each.value if hasattr(each, "value") else each.targetType.type)
        for each in instance.body.parameters
    )
    key = (instance.definition.name, *values)
    new = key not in seen
    seen.add(key)
    return new
