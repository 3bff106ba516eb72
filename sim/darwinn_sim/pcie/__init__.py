"""The chip as a PCIe function, and the kernel driver that stands between it and a user's program.

Facts: docs/host-interface.md. Nothing here knows how a program reaches it.
"""
