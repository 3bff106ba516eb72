"""The units of the chip, a file each."""
