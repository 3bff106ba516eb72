"""The CPU reference of TensorFlow Lite models: LiteRT itself, and the chip's arithmetic."""
