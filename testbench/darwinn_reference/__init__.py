"""CPU references: what an executable should have computed, from the uncompiled model."""
