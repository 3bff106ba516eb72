"""The chip as its host sees it: registers, interrupts, memory and descriptors; and a driver."""
