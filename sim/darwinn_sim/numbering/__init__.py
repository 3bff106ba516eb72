"""Which function of its inputs each output byte of a program is, without data: value numbers."""
