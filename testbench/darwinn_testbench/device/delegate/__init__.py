"""A delegate for LiteRT and tflite_runtime in C, and the process of the chip that it talks to."""
