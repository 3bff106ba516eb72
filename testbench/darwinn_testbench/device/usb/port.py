"""Where devices are plugged in: one stays there when it becomes another device."""

BUS = 2
PORT = 1
"""Of the first device; the others follow."""
