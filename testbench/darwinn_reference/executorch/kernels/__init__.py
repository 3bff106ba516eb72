"""Kernels of the operators, in NumPy: arrays and numbers in, arrays out.

A kernel takes the arguments of its operator up to the output arguments, and returns what is
written into those: an array, a tuple for several outputs, or a list for a list of outputs. The
result is converted to the type of the output, whose sizes it decides.
"""
