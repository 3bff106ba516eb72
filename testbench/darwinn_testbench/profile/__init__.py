"""Where the cycles of an executable go, by layer, unit and cause: tables, timelines and pages."""

from darwinn_testbench.called import called_as

called_as(__name__, "darwinn_testbench.profile.profile", "profile")
