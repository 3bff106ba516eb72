"""CPU references, output comparison, reports and the ``darwinn`` command."""

__version__ = "0.1.0"
