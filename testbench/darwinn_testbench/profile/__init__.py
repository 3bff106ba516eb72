"""Where the cycles of an executable go, by layer, unit and cause: tables, timelines and pages."""
