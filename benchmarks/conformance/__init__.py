"""Programs of other formats, made on the spot, in our references and in the original runtimes."""
