"""Where the operators of a network run, why, and what to change."""
