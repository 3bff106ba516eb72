"""The chip by PCIe: a stand-in for its kernel driver that unmodified programs open."""
