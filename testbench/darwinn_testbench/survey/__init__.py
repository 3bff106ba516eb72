"""Survey of files: which hold programs of the chip, and what becomes of each of them."""
