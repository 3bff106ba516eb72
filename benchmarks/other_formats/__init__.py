"""The programs of other formats, point by point: what is claimed of them, with its figure."""
