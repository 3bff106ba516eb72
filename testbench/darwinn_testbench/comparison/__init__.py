"""Compare outputs with their expected values, and give the verdict."""
