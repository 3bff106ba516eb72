"""What follows from a program without its data: who made what, and memory in use."""
