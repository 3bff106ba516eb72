"""Seconds and bytes of a Perfetto timeline of a real model, with their bounds.

    python -m benchmarks.timeline [--repeat N]

Reads the model from the folder that DARWINN_CORPUS names. Measured is the whole way from the file
to the bytes of the trace: timing with spans, memory in use, and writing. Exits with 1 if a bound is
exceeded.
"""

from __future__ import annotations

import sys

from benchmarks.common import compiled, machine_and_load, parser, seconds_of

MODEL = "mobilenet_v1_1.0_224_quant_embedding_extractor"
SECONDS = 5.0
BYTES = 50_000_000


def main() -> int:
    from darwinn_testbench.profile.profile import profile
    from darwinn_testbench.profile.timeline import to_perfetto

    options = parser(__doc__).parse_args()
    path = compiled(MODEL)
    print(machine_and_load())
    sizes: list[int] = []

    def write() -> None:
        sizes.append(
            len(to_perfetto(profile(path, operations=False).figures["profile"].profiled.timing))
        )

    # The first run reads the compiled kernels from the cache, or fills it.
    _, *seconds = seconds_of(write, 1 + options.repeat)
    best, size = min(seconds), sizes[-1]
    kept = best <= SECONDS and size <= BYTES
    print(
        f"timeline of {MODEL}: {best:.2f} s (bound {SECONDS:g}), {size:,} bytes "
        f"(bound {BYTES:,}): {'within' if kept else 'EXCEEDED'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
