"""The DMA engine in SystemVerilog: its pyuvm environment, workloads and timing."""
