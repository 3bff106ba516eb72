"""The chip as a device, which belongs to whoever stands at its other end."""
