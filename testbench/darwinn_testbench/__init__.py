"""CPU references, output comparison, reports and the ``darwinn`` command."""
