"""``python -m darwinn_testbench``: the command ``darwinn``."""

from darwinn_testbench.cli import main

main()
