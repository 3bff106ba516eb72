"""The chip as a USB device: what a host sees of it at the other end of the cable.

Facts: docs/device.md. Nothing here knows how transfers reach it: in process, or by a socket.
"""
