"""Where the device is plugged in: it stays there when it becomes another device."""

BUS = 2
PORT = 1
