"""JSON Schemas of what `--json` prints, from the types of reports.

- ``types``: the JSON Schema of a Python type, as ``report.result`` writes its values.
- ``figures``: what reports say beside their rows, for each command.
- ``reports``: which command prints what; ``schema_of`` is its schema.

``python -m darwinn_testbench.schemas FOLDER`` writes one file for each command.
"""

from darwinn_testbench.schemas.reports import COMMANDS, schema_of

__all__ = ["COMMANDS", "schema_of"]
