"""Adds compiled kernels of the model of the chip to a wheel: its first use need not compile.

Not to an editable installation, whose kernels are compiled for its processor (`darwinn warm-up`),
nor where the variable DARWINN_KERNELS is `none`: that wheel serves every version of Python and
every processor. It may be a list of the parts to compile (`function hazards proof`) as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

_INSTALLED = "darwinn_sim/compiled_kernels"
"""`INSTALLED` of darwinn_sim.kernel.store."""


_PLATFORM = "manylinux_2_28_x86_64"
"""That of llvmlite's own wheels, without which nothing runs. It promises a C library of 2.28 or
later: kernels call two functions of it, memset and exp2, by name and through llvmlite. They are no
shared libraries, so that auditwheel has nothing to look at. docs/install.md says more."""


def _portable_tag() -> str | None:
    """The tag of a wheel for this version of Python; None where the platform is another."""
    tag = next((each for each in sys_tags() if each.platform == _PLATFORM), None)
    return None if tag is None else str(tag)


def _terminal(stack: ExitStack) -> TextIO | None:
    """The terminal of whoever installs, since pip shows what a build says only with ``-v``.

    None where there is none: then it is said to standard error.
    """
    try:
        return stack.enter_context(Path("/dev/tty").open("w"))
    except OSError:
        return None


class KernelsHook(BuildHookInterface[Any]):
    """Compiles the kernels with the versions that the installation resolves to as well."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is put together."""
        parts = os.environ.get("DARWINN_KERNELS", "")
        if version == "editable" or parts == "none":
            return
        self._built = tempfile.TemporaryDirectory(prefix="darwinn-kernels-")
        folder = Path(self._built.name, "kernels")
        packages = [str(Path(self.root, name)) for name in ("formats", "sim", "testbench")]
        path = os.pathsep.join([*packages, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.app.display_info("compiling the model of the chip for this version of Python")
        with ExitStack() as stack:
            subprocess.run(
                [
                    *(sys.executable, "-m", "darwinn_testbench.kernels.build"),
                    *(str(folder), *parts.split()),
                ],
                env={**os.environ, "PYTHONPATH": path},
                stderr=_terminal(stack),
                check=True,
            )
        build_data["force_include"][str(folder)] = _INSTALLED
        build_data["pure_python"] = False
        tag = _portable_tag()
        build_data |= {"infer_tag": True} if tag is None else {"tag": tag}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After it."""
        if hasattr(self, "_built"):
            self._built.cleanup()
