"""Models on pictures: what goes in, as pycoral prepares it, and what the outputs say."""
