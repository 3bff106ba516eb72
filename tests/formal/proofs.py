"""What is proved of the RTL: each wrapper with its properties, what shows that it can fail, and
that it is not empty.

The label of a property is that of an assertion in ``wrappers/``. ``lemma_`` assertions there are
about registers inside of what is proved; they close the induction and are proved with the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weaving import Edit

INDUCTION = 3
"""Cycles of the longest induction that is tried."""


@dataclass(frozen=True)
class Property:
    """An assertion, in words, and a fault of the RTL with which it must fail."""

    label: str
    says: str
    fault: Edit


@dataclass(frozen=True)
class Proof:
    """Properties of a module that are proved together.

    Attributes:
        module: of the RTL; the wrapper is ``wrappers/<wrapper>.sv``.
        wrapper: holds the properties.
        properties: each with its fault.
        covers: what must be reachable, or nothing would be proved, and within how many cycles.
        parameters: of the wrapper, where they are not its own defaults.
        bound: cycles from the first of reset on in which the properties hold; 0: always, which is
            proved by induction.
        apart: each assertion is proved by itself, behind a cycle in which all hold; that is easier
            than all at once.
        nightly: it takes too long for the gate.
        quick: what takes long are its faults and covers; the gate proves it without them.
        within: cycles in which a fault must show.
    """

    module: str
    wrapper: str
    properties: tuple[Property, ...]
    covers: tuple[str, ...]
    parameters: Mapping[str, int] = field(default_factory=dict)
    bound: int = 0
    apart: bool = False
    nightly: bool = False
    quick: bool = False
    within: int = 24

    @property
    def of_the_gate(self) -> bool:
        """Whether `make test` proves it."""
        return self.quick or not self.nightly

    @property
    def name(self) -> str:
        """As on the command line: the wrapper, and its parameters."""
        given = "-".join(f"{value}" for value in self.parameters.values())
        return "-".join(filter(None, [self.wrapper.removesuffix("_proof"), given]))


_FIFO = (
    Property(
        "assert_takes_what_it_has_room_for",
        "it takes an entry exactly when it has room",
        Edit("descriptor_fifo.sv", "push_ready = «level != (IndexBits + 1)'(Depth)»", "level[0]"),
    ),
    Property(
        "assert_offers_what_it_holds",
        "it offers one exactly when it holds one",
        Edit("descriptor_fifo.sv", "pop_valid = «level != '0»", "level > (IndexBits + 1)'(1)"),
    ),
    Property(
        "assert_in_order",
        "every entry leaves once, unchanged and in order",
        Edit("descriptor_fifo.sv", "head == LastIndex) ? '0 : head + «1'b1»", "IndexBits'(2)"),
    ),
)

_BANK = (
    Property(
        "assert_reads_as_an_array",
        "in clk each port reads the last written data; of several writers the highest port wins",
        Edit("memory_bank.sv", "if («pending[p][k]») found[k]", "pending[p][k] && p == 0"),
    ),
    Property(
        "assert_writes_as_an_array",
        "data written at an edge of clk is in block RAM before the next edge",
        Edit("memory_bank.sv", "write_data = «data[p]»", "data[0]"),
    ),
)

_BYTES = (
    Property(
        "assert_takes_beats_that_fit",
        "it takes a beat exactly when a full one has room",
        Edit("byte_fifo.sv", "in_ready = level «<=» LevelBits'", "<"),
    ),
    Property(
        "assert_level",
        "its level is the bytes that came less the bytes that were taken",
        Edit(
            "byte_fifo.sv", "level <= level + arriving - «LevelBits'(take)»", "LevelBits'(take[0])"
        ),
    ),
    Property(
        "assert_in_order",
        "every byte reaches the window in order, unchanged",
        Edit("byte_fifo.sv", "bytes[tail+«PointerBits'(i)»]", "PointerBits'(i ^ 1)"),
    ),
)

_PLANNER = (
    Property(
        "assert_length",
        "a burst has at least one beat, and no more than the limit",
        Edit("burst_planner.sv", "words_left «<» 33'(beats)", ">"),
    ),
    Property(
        "assert_within_4_kib",
        "it never crosses 4 KiB",
        Edit("burst_planner.sv", "33'(words_to_boundary) «<» 33'(beats)", ">"),
    ),
    Property(
        "assert_bytes_are_left",
        "it has at least one byte, and no more than are left",
        Edit(
            "burst_planner.sv",
            "burst_span - «32'(address[OffsetBits-1:0])»",
            "32'(address[OffsetBits:0])",
        ),
    ),
    Property(
        "assert_last",
        "the last burst is the one with the last byte",
        Edit("burst_planner.sv", "final_burst = «words_left == 33'(beats)»", "words_left[0]"),
    ),
    Property(
        "assert_words",
        "its bytes lie in its words and no word is empty, also in a transfer of 4 GiB less a byte",
        Edit(
            "burst_planner.sv",
            "span = «33'(left) + 33'(address[OffsetBits-1:0])»",
            "{1'b0, left + 32'(address[OffsetBits-1:0])}",
        ),
    ),
    Property(
        "assert_longest",
        "it ends only at the limit, at 4 KiB or at the end of the transfer",
        Edit(
            "burst_planner.sv",
            "beats = «BeatBits'(words_to_boundary)»",
            "BeatBits'(words_to_boundary) - 1'b1",
        ),
    ),
)

_TRANSFER = (
    Property(
        "assert_sum",
        "the bursts together have the bytes of the transfer",
        Edit(
            "burst_planner.sv",
            "bytes = final_burst ? left : burst_span - «32'(address[OffsetBits-1:0])»",
            "32'd0",
        ),
    ),
    Property(
        "assert_moves",
        "every burst has bytes",
        Edit(
            "burst_planner.sv",
            "«final_burst ? left : burst_span - 32'(address[OffsetBits-1:0])»",
            "burst_span & 32'hffff_ffdf",
        ),
    ),
)

_INSTRUCTIONS = (
    Property(
        "assert_takes_what_it_has_room_for",
        "it takes an instruction exactly when it has room",
        Edit(
            "instruction_queue.sv",
            "in_ready = «stored != (PointerBits + 1)'(Depth)»",
            "stored[PointerBits-1:0] != '1",
        ),
    ),
    Property(
        "assert_offers_what_it_holds",
        "it offers one exactly when it holds one",
        Edit("instruction_queue.sv", "out_valid <= «from_store || passes_by»", "from_store"),
    ),
    Property(
        "assert_in_order",
        "every instruction leaves once, unchanged and in order",
        Edit("instruction_queue.sv", "passes_by = exit_free && «stored == '0» && taken", "1'b1"),
    ),
    Property(
        "assert_stays",
        "an offered instruction stays unchanged until it is taken",
        Edit("instruction_queue.sv", "exit_free = «!out_valid || out_ready»", "1'b1"),
    ),
)

_FLAGS = (
    Property(
        "assert_counts",
        "a flag is the last loaded value plus all increments since; a load goes first",
        Edit("sync_flags.sv", "values[f] + «increment[f]»", "16'(increment[f][14:0])"),
    ),
)

_TILE_QUEUE = (
    Property(
        "assert_nothing_passes_a_fence",
        "while a fence stands at the exit, no instruction goes to a unit",
        Edit(
            "tile_queue.sv",
            "OPCODE_TILE_FENCE: «fence = 1'b1;»",
            "begin fence = 1'b1; unit[0] = 1'b1; end",
        ),
    ),
    Property(
        "assert_one_unit",
        "an instruction goes to at most one unit",
        Edit(
            "tile_queue.sv",
            "OPCODE_RING_PRODUCER: «unit[TILE_UNIT_RING_PRODUCER] = 1'b1»",
            "unit = '1",
        ),
    ),
    Property(
        "assert_fence_waits",
        "a fence passes only when its units are idle and its token count is reached",
        Edit(
            "tile_fence.sv",
            "«(instruction.wait_idle & ~units2fence_idle) == '0» && counted",
            "1'b1",
        ),
    ),
    Property(
        "assert_fence_goes",
        "it then passes at once",
        Edit(
            "tile_fence.sv",
            "reached = «(instruction.wait_idle & ~units2fence_idle) == '0 && counted»",
            "units2fence_idle == '1 && counted",
        ),
    ),
    Property(
        "assert_loads",
        "it loads the flags it names, and reports to the scalar core if its instruction says so",
        Edit("tile_fence.sv", "count_valid = passed && «instruction.increment»", "1'b1"),
    ),
)

_SCALAR_FENCE = (
    Property(
        "assert_waits_for_flags",
        "it waits for each flag it names",
        Edit("scalar_fence.sv", ">= «16'h8000»", "16'hc000"),
    ),
    Property(
        "assert_waits_for_tiles",
        "it waits for the fences of each tile it names",
        Edit("scalar_fence.sv", "counts[t] «<» 32'", "=="),
    ),
    Property(
        "assert_waits_for_units",
        "it waits for each unit it names",
        Edit(
            "scalar_fence.sv",
            "«(core2fence_instruction_data.wait_idle & ~units2fence_idle) == '0»",
            "1'b1",
        ),
    ),
    Property(
        "assert_goes",
        "it waits for no other event",
        Edit(
            "scalar_fence.sv",
            "core2fence_instruction_ready = «reached»",
            "reached && units2fence_idle[0]",
        ),
    ),
    Property(
        "assert_goes_for_a_tile",
        "it passes when the tile it names has passed its fences",
        Edit("scalar_fence.sv", "counts[t] «<» 32'", "<="),
    ),
    Property(
        "assert_loads_when_it_goes",
        "it loads its flags in the cycle in which it passes",
        Edit(
            "scalar_fence.sv", "fence2flags_load_valid = «passed»", "core2fence_instruction_valid"
        ),
    ),
)

_DISPATCH = (
    Property(
        "assert_none_but_its_own",
        "no unit or tile gets an instruction that is not for it",
        Edit(
            "instruction_dispatch.sv",
            "core2activation_instruction_valid = core2units_instruction_valid && «pop.fifo»",
            "1'b1",
        ),
    ),
    Property(
        "assert_once",
        "none gets it twice",
        Edit("instruction_dispatch.sv", "tiles[Tiles-1:0] & «~taken»", "'1"),
    ),
    Property(
        "assert_none_lost",
        "all have it before the next one comes",
        Edit(
            "instruction_dispatch.sv",
            "core2units_instruction_ready = «(wanted & ~core2tiles_instruction_ready) == '0»",
            "1'b1",
        ),
    ),
    Property(
        "assert_offered_at_once",
        "it is offered to all at once",
        Edit(
            "instruction_dispatch.sv",
            "core2tiles_instruction_valid = core2units_instruction_valid ? «wanted»",
            "(wanted & (~wanted + 1'b1))",
        ),
    ),
    Property(
        "assert_goes_on",
        "the next one comes when all have room",
        Edit(
            "instruction_dispatch.sv",
            "core2units_instruction_ready = «core2fence_instruction_ready»",
            "1'b0",
        ),
    ),
)

_RING = (
    Property(
        "assert_one_at_a_time",
        "one row arrives at a time",
        Edit(
            "ring_bus.sv",
            "tiles2ring_row_ready[t] = arrives && «sender == SenderBits'(t + 1)»",
            "sender != '0",
        ),
    ),
    Property(
        "assert_none_invented",
        "a row arrives only if it was sent",
        Edit("ring_bus.sv", "arrives = «carrying && left == '0»", "left == '0"),
    ),
    Property(
        "assert_arrives_at_its_receivers",
        "a row arrives at each of its receivers once, and at no other",
        Edit("ring_bus.sv", "arrives && row.targets[t] && «row.channel == 1'(c)»", "1'b1"),
    ),
    Property(
        "assert_arrives_whole",
        "it arrives with all its words",
        Edit(
            "ring_bus.sv",
            "if (sender == SenderBits'(t + 1)) row = «tiles2ring_row_data[t]»",
            "tiles2ring_row_data[0]",
        ),
    ),
    Property(
        "assert_receivers_have_room",
        "every receiver has room for it on its channel",
        Edit("ring_bus.sv", "targets[t] && !tiles_ready[t][«channel»]", "0"),
    ),
    Property(
        "assert_first_goes_first",
        "of the senders whose receivers have room, the infeed goes first, then the tiles in order",
        Edit("ring_bus.sv", "«int s = Senders - 1; s >= 0; s--»", "int s = 0; s < Senders; s++"),
    ),
    Property(
        "assert_never_idle",
        "a free bus at once takes up a row that can be sent; a row takes CyclesPerRow cycles",
        Edit("ring_bus.sv", "LeftBits'(CyclesPerRow - «2»)", "1"),
    ),
    Property(
        "assert_served_when_alone",
        "a row whose receivers have room arrives within 2 CyclesPerRow cycles if no earlier sender "
        "can send meanwhile",
        Edit("ring_bus.sv", "«int s = Senders - 1; s >= 0; s--»", "int s = 0; s < Senders; s++"),
    ),
    Property(
        "assert_overtaken_once",
        "otherwise it waits for rows of earlier senders, and for at most one row of a later sender",
        Edit("ring_bus.sv", "«int s = Senders - 1; s >= 0; s--»", "int s = 0; s < Senders; s++"),
    ),
    Property(
        "assert_token",
        "a token goes with its row, on the row's channel",
        Edit("ring_bus.sv", "passes ? row.channel == «1'(c)»", "1'(!c)"),
    ),
)

_BUS = (
    Property(
        "assert_address_of_reads_stays",
        "a read address stays until it is taken",
        Edit("bus_share.sv", "queue_read.arvalid && («queue_asked» ||", "1'b0"),
    ),
    Property(
        "assert_address_of_writes_stays",
        "so does a write address",
        Edit("bus_share.sv", "queue_writes = «queue_wrote» || (queue_write", "1'b0"),
    ),
    Property(
        "assert_word_stays",
        "so does a word",
        Edit("bus_share.sv", "wdata = «queue_writes» ?", "queue_writes ^ queue_asked"),
    ),
    Property(
        "assert_one_is_taken",
        "a request that the bus takes is taken from one side only",
        Edit("bus_share.sv", "dma_write.awready = m_axi_write.awready && «!queue_writes»", "1'b1"),
    ),
    Property(
        "assert_taken_as_it_is",
        "it is taken as that side offers it",
        Edit("bus_share.sv", "awaddr = «queue_writes» ?", "queue_write.awvalid"),
    ),
    Property(
        "assert_words_stay_together",
        "no word of another burst comes between the words of a burst",
        Edit("bus_share.sv", "m_axi_write.wready && «m_axi_write.wlast»", "1'b1"),
    ),
    Property(
        "assert_word_beside_its_address",
        "a word is offered together with its address, because memory may wait for both",
        Edit(
            "bus_share.sv",
            "wvalid = queue_writes ? «queue_write.wvalid»",
            "took_address && queue_write.wvalid",
        ),
    ),
    Property(
        "assert_engine_goes_first",
        "if both sides have a request, the DMA engine's goes first",
        Edit("bus_share.sv", "queue_read.arvalid && («queue_asked || !dma_read.arvalid»)", "1'b1"),
    ),
    Property(
        "assert_answers_find_their_side",
        "responses go to the side that sent the request",
        Edit("bus_share.sv", "for_queue = m_axi_read.rid == «2'(ReadStreams)»", "2'd2"),
    ),
    Property(
        "assert_answers_wait_for_their_side",
        "a response is taken when that side takes it",
        Edit("bus_share.sv", "bready = «answers_queue» ? queue_write.bready", "!answers_queue"),
    ),
)

_OUTPUT = (
    Property(
        "assert_one_at_a_time",
        "it takes a unit or a word in a cycle, not both",
        Edit(
            "host_output.sv",
            "outfeed2output_unit_ready = in_ready && «!core2output_word_valid»",
            "1'b1",
        ),
    ),
    Property(
        "assert_takes_what_it_has_room_for",
        "it takes one of them whenever it has room for eight bytes",
        Edit("byte_fifo.sv", "in_ready = level «<=» LevelBits'", "<"),
    ),
    Property(
        "assert_beat_stays",
        "a beat stays unchanged until it is taken",
        Edit("host_output.sv", "moves = «!output2dma_byte_valid || output2dma_byte_ready»", "1'b1"),
    ),
    Property(
        "assert_beat_has_bytes",
        "a beat has bytes, and zeros after them",
        Edit("host_output.sv", "< available) ? window[8*i+:8] : «8'd0»", "window[8*i+:8]"),
    ),
    Property(
        "assert_in_order",
        "every byte leaves once, in order",
        Edit(
            "host_output.sv",
            "in_data (core2output_word_valid ? «{32'd0, core2output_word_data}»",
            "{core2output_word_data, 32'd0}",
        ),
    ),
    Property(
        "assert_idle",
        "it is idle exactly when all bytes that came are written and all bursts are answered",
        Edit("host_output.sv", "held == '0 && «unanswered == '0»", "1'b1"),
    ),
)

_WHOLE_BEATS = tuple(each for each in _OUTPUT if each.label != "assert_beat_has_bytes")
"""On a bus of 4 bytes a beat has nothing behind its bytes, as units and words are whole beats."""

_INTERRUPTS = (
    Property(
        "assert_counts",
        "each host interrupt has its own 16-bit count",
        Edit("interrupts.sv", "counts[raise_number] + «16'd1»", "16'(counts[3] != 16'd5)"),
    ),
    Property(
        "assert_sets",
        "a host interrupt sets its own status bit and no other",
        Edit("interrupts.sv", "set_host = «raise_valid»", "raise_valid && !chunk_told"),
    ),
    Property(
        "assert_tells",
        "so do a chunk reported to the host, and each error, whatever comes in the same cycle",
        Edit(
            "interrupts.sv",
            "set_fatal_error = «errors != '0 || queue_errors != '0»",
            "(errors != '0) != (queue_errors != '0)",
        ),
    ),
    Property(
        "assert_host_line",
        "a host interrupt's line is up while its status and its mask are set",
        Edit("interrupts.sv", "«host_status & host_control» }", "host_status"),
    ),
    Property(
        "assert_other_lines",
        "the same holds for the lines of the queue and of fatal errors",
        Edit("interrupts.sv", "fatal_error_status && «fatal_error_control»", "1'b1"),
    ),
)

_CHUNKS = (
    Property(
        "assert_address_of_reads_stays",
        "a read address stays until it is taken, whatever registers the host writes meanwhile",
        Edit("chunk_queue.sv", "bus_address = «on_bus» ?", "1'b0"),
    ),
    Property(
        "assert_address_of_writes_stays",
        "so does a write address",
        Edit("chunk_queue.sv", "reachable = «on_bus» ||", "1'b0"),
    ),
    Property(
        "assert_word_stays",
        "so does a word of the status block",
        Edit("chunk_queue.sv", "status = (8 * Bytes)'(«head»)", "completed_head[31:0]"),
    ),
    Property(
        "assert_words_with_their_address",
        "a write's word is offered as soon as its address, because memory may wait for both",
        Edit("chunk_queue.sv", "(«m_axi_write.awvalid» && 32'(word) != 32'(Words)) ||", "1'b0"),
    ),
    Property(
        "assert_as_many_words_as_it_says",
        "a write has as many words as its address says",
        Edit("chunk_queue.sv", "wlast = «32'(word) == 32'(Words - 1)»", "1'b1"),
    ),
    Property(
        "assert_within_4_kib",
        "no access crosses 4 KiB",
        Edit("chunk_queue.sv", "found && «found_address[3:0] == '0»", "1'b1"),
    ),
    Property(
        "assert_reads_its_entry",
        "the next entry is read from its place in the ring, whatever the ring's length",
        Edit("chunk_queue.sv", "«{next[59:0], 4'd0}»", "{next[60:0], 3'd0}"),
    ),
    Property(
        "assert_head_in_the_block",
        "the status block holds zeros and the head of the cycle before its address is offered",
        Edit("chunk_queue.sv", "«completed_head[31:0]»", "32'(completed_head[15:0])"),
    ),
)
_PART_OF_A_WORD = Property(
    "assert_strobes",
    "in a wide word only the bytes of the block have strobes",
    Edit("chunk_queue.sv", "DataBytes'((«1 << Bytes») - 1)", "1 >> Bytes"),
)

_WRITER = (
    Property(
        "assert_address_stays",
        "an address stays until it is taken",
        Edit("dma_writer.sv", "if («m_axi_write.awready») m_axi_write.awvalid <= 1'b0", "1'b1"),
    ),
    Property(
        "assert_word_stays",
        "so does a word",
        Edit("dma_writer.sv", "take = «word_sent» ?", "m_axi_write.wvalid"),
    ),
    Property(
        "assert_within_4_kib",
        "no burst crosses 4 KiB",
        Edit("burst_planner.sv", "if («33'(words_to_boundary) < 33'(beats)») begin", "1'b0"),
    ),
    Property(
        "assert_length",
        "no burst is longer than MaxBurst",
        Edit("dma_writer.sv", "awlen <= «8'(burst_beats) - 8'd1»", "8'(burst_beats)"),
    ),
    Property(
        "assert_as_many_words_as_it_says",
        "a burst has as many words as its address says",
        Edit("dma_writer.sv", "wlast = beats_left == «BeatBits'(1)»", "BeatBits'(2)"),
    ),
    Property(
        "assert_words_have_bytes",
        "every word has a strobe",
        Edit("dma_writer.sv", "bytes_left <= bytes_left - «32'(in_word)»", "32'(DataBytes)"),
    ),
    Property(
        "assert_strobes_without_gap",
        "the strobes of a word have no gap",
        Edit(
            "dma_writer.sv",
            "wstrb[i] = «i >= int'(offset) && i < strobes_end»",
            "(i == int'(offset) || i + 1 == strobes_end)",
        ),
    ),
    Property(
        "assert_whole_words_between",
        "only the first word of a burst may begin late, and only the last may end early",
        Edit("dma_writer.sv", "in_word = CountBits'(DataBytes) - «CountBits'(offset)»", "1'b1"),
    ),
    Property(
        "assert_bytes_of_the_burst",
        "a burst has as many strobes as bytes",
        Edit("dma_writer.sv", "bytes_left <= «burst_bytes»", "burst_bytes + 32'd1"),
    ),
    Property(
        "assert_bytes_of_the_descriptor",
        "the bursts of a descriptor together have its bytes",
        Edit("dma_writer.sv", "left <= left - «burst_bytes»", "32'(burst_beats)"),
    ),
    Property(
        "assert_interrupt_behind_its_outputs",
        "an interrupt leaves when every earlier word is written and answered",
        Edit("dma_writer.sv", "!sending && «!sent_valid» && !m_axi_write.awvalid", "1'b1"),
    ),
    Property(
        "assert_never_too_many",
        "at most Outstanding bursts are unanswered",
        Edit("dma_writer.sv", "!pause && «sent_ready» && 32'(level)", "1'b1"),
    ),
    Property(
        "assert_busy",
        "it is busy while a burst is on the bus or unanswered",
        Edit("dma_writer.sv", "busy = sending || m_axi_write.awvalid || «sent_valid»", "1'b0"),
    ),
    Property(
        "assert_paused_begins_nothing",
        "in a pause no burst begins and no interrupt leaves",
        Edit("dma_writer.sv", "!m_axi_write.awvalid && «!pause»; assign next_ready", "1'b1"),
    ),
)

_ARBITER = (
    Property(
        "assert_address_stays",
        "an address stays until it is taken",
        Edit("dma_reader.sv", "accepts = «(!m_axi_read.arvalid || m_axi_read.arready)» &&", "1'b1"),
    ),
    Property(
        "assert_one_is_served",
        "one stream is served at a time, and only one with a request",
        Edit("dma_reader.sv", "request_ready[chosen] = accepts && «any»", "1'b1"),
    ),
    Property(
        "assert_never_too_many",
        "at most Outstanding bursts are pending",
        Edit("dma_reader.sv", "in_flight != «CounterBits'(Outstanding)»", "'1"),
    ),
    Property(
        "assert_turn",
        "a stream with a request is served after at most two others",
        Edit("dma_reader.sv", "served <= «chosen»", "2'd0"),
    ),
    Property(
        "assert_not_idle",
        "no stream waits while the bus is free and fewer are pending",
        Edit("dma_reader.sv", "«in_flight != CounterBits'(Outstanding)»", "in_flight == '0"),
    ),
    Property(
        "assert_busy",
        "it is busy until the last word of every burst has come",
        Edit("dma_reader.sv", "busy = «in_flight != '0»", "m_axi_read.arvalid"),
    ),
    Property(
        "assert_paused_requests_nothing",
        "in a pause no burst is requested",
        Edit("read_stream.sv", "request_valid = asking && «!pause»", "1'b1"),
    ),
)

_STREAM = (
    Property(
        "assert_beat_stays",
        "a beat stays unchanged until it is taken",
        Edit("read_stream.sv", ".pop_ready («stream_ready»)", "1'b1"),
    ),
    Property(
        "assert_beat_has_bytes",
        "a beat has bytes, and zeros after them",
        Edit("read_stream.sv", "!response_error && «CountBits'(i) < arriving.count»", "1'b1"),
    ),
    Property(
        "assert_offers_what_came",
        "every word that came is offered, also one that came with an error",
        Edit(
            "read_stream.sv",
            ".push_valid(«response_valid»), .push_ready(beat_ready)",
            "response_valid && !response_error",
        ),
    ),
    Property(
        "assert_has_room",
        "a burst is requested only when its words have room",
        Edit("read_stream.sv", "RoomBits'(BufferBeats) - «reserved»", "'0"),
    ),
    Property(
        "assert_address",
        "each byte is requested at its own address",
        Edit("read_stream.sv", "ask_address + «AddressBits'(burst_bytes)»", "40'(DataBytes)"),
    ),
    Property(
        "assert_unchanged",
        "every byte leaves in order, unchanged, or as 0 if its word came with an error",
        Edit("read_stream.sv", "response_data >> «{offset, 3'b000}»", "{offset[0], 3'b000}"),
    ),
    Property(
        "assert_in_order",
        "descriptors leave in order, each once",
        Edit(
            "read_stream.sv",
            "expected_ready = !receiving || (response_valid && «arriving.last»)",
            "1'b1",
        ),
    ),
    Property(
        "assert_ends_with_its_last_byte",
        "a descriptor ends when its last byte has left",
        Edit("read_stream.sv", "arriving.last = receive_left «<=» in_word", "<"),
    ),
)

_ENGINE = (
    Property(
        "assert_fence_waits",
        "a fence passes only when all earlier descriptors have ended",
        Edit("dma_engine.sv", "head_ready = !pause && «drained»", "1'b1"),
    ),
    Property(
        "assert_nothing_passes_a_fence",
        "until then no later descriptor goes to a queue",
        Edit("dma_engine.sv", "read_valid[i] = good && «is_data»", "1'b1"),
    ),
    Property(
        "assert_fence_goes",
        "then it passes",
        Edit("dma_engine.sv", "head_ready = !pause && «drained»", "(drained && next_index[0])"),
    ),
    Property(
        "assert_in_order",
        "descriptors begin in order",
        Edit("dma_engine.sv", "dma2monitor_start_index = «next_index»", "pending"),
    ),
    Property(
        "assert_each_begins_or_is_refused",
        "each either begins or is refused with one error",
        Edit("dma_engine.sv", "length_0: leaves && «outcome == OutcomeLength0»", "1'b0"),
    ),
    Property(
        "assert_goes_to_one",
        "a descriptor that begins is a fence, or goes to exactly one queue, which takes it",
        Edit(
            "dma_engine.sv",
            "head_ready = «(|(read_valid & read_ready)) || (write_valid && write_ready)»",
            "1'b1",
        ),
    ),
    Property(
        "assert_paused_begins_nothing",
        "no descriptor begins during a pause",
        Edit("dma_engine.sv", "(outcome != OutcomeStarted) head_ready = «!pause»", "1'b1"),
    ),
    Property(
        "assert_counts",
        "the register counts all descriptors that have ended",
        Edit(
            "dma_engine.sv", "completed <= completed + «done_now»", "32'(dma2monitor_done_valid[0])"
        ),
    ),
)

_REGISTERS = (
    Property(
        "assert_answer_stays",
        "a response to the host stays unchanged until it is taken",
        Edit("axi_lite.sv", "s_axil_write.bready = «s_axil_bready»", "1'b1"),
    ),
    Property(
        "assert_answers_requests",
        "each performed request gets one response, in their order, and there are no others",
        Edit("registers.sv", "page_table.rd_ack = «read_done»", "1'b1"),
    ),
    Property(
        "assert_performs",
        "a request is performed once, a write with its word; at once if no other is pending",
        Edit("axi_lite.sv", "s_axil_write.wvalid = «s_axil_wvalid»", "1'b1"),
    ),
    Property(
        "assert_answers_soon",
        "it is answered in the next cycle, or in the one after that (page table)",
        Edit(
            "registers.sv",
            "read_done <= rst_n && hwif_out.page_table.req && «!hwif_out.page_table.req_is_wr»",
            "1'b0",
        ),
    ),
    Property(
        "assert_fails",
        "the response is an error for unknown offsets and for writes of read-only registers, and "
        "for no other request",
        Edit("axi_lite.sv", "s_axil_rresp = «s_axil_read.rresp»", "2'b00"),
    ),
    Property(
        "assert_reads_what_was_written",
        "a register reads as the last value written to each of its bytes, and after reset as the "
        "table says",
        Edit("axi_lite.sv", "s_axil_write.wstrb = «s_axil_wstrb»", "8'hff"),
    ),
    Property(
        "assert_event_stays",
        "an event sets its status bit, whatever the host clears in that cycle",
        Edit(
            "registers.sv",
            "interrupt_1.hwset = «set_host[1]»",
            "set_host[1] && !block.axil_aw_accept",
        ),
    ),
    Property(
        "assert_cleared_by_the_host",
        "a status bit is cleared only by a write of the host",
        Edit(
            "registers.sv",
            "fatal_error_status = «hwif_out.fatal_err_int_status.pending.value»",
            "hwif_out.fatal_err_int_status.pending.value && !paused",
        ),
    ),
)

_TILE_ARRAY = (
    Property(
        "assert_core",
        "each tile has its own instructions and base, and reports its own state to the core",
        Edit("tile_array.sv", "idle(«tiles2monitor_idle[t]»)", "tiles2monitor_idle[t^1]"),
    ),
    Property(
        "assert_ring",
        "each has its own handshakes with the ring; all see the arriving row",
        Edit("tile_array.sv", "row_ready(«tiles2ring_row_ready[t]»)", "tiles2ring_row_ready[t^1]"),
    ),
    Property(
        "assert_mesh",
        "each has its own links of the mesh",
        Edit("tile_array.sv", "tile_word_data(«mesh2tiles_word_data[t]»)", "'0"),
    ),
)

PROOFS = (
    Proof("descriptor_fifo", "fifo_proof", _FIFO, ("cover_full", "cover_leaves")),
    Proof(
        "descriptor_fifo",
        "fifo_proof",
        _FIFO,
        ("cover_full", "cover_leaves"),
        {"Width": 4, "Depth": 5},
    ),
    Proof(
        "descriptor_fifo",
        "fifo_proof",
        _FIFO,
        ("cover_full", "cover_leaves"),
        {"Width": 109, "Depth": 32},
        nightly=True,
        within=40,
    ),
    Proof(
        "instruction_queue",
        "instruction_queue_proof",
        _INSTRUCTIONS,
        ("cover_full", "cover_leaves"),
    ),
    Proof(
        "byte_fifo",
        "byte_fifo_proof",
        _BYTES,
        ("cover_full", "cover_leaves"),
        {"InBytes": 4, "OutBytes": 4, "Capacity": 16},
    ),
    Proof(
        "byte_fifo",
        "byte_fifo_proof",
        _BYTES,
        ("cover_full", "cover_leaves"),
        {"InBytes": 8, "OutBytes": 8, "Capacity": 32},
        nightly=True,
    ),
    *(
        Proof(
            "byte_fifo",
            "byte_fifo_proof",
            _BYTES,
            ("cover_full", "cover_leaves"),
            {"InBytes": taken, "OutBytes": given, "Capacity": 16},
        )
        for taken, given in ((2, 4), (8, 4))
    ),
    *(
        Proof(
            "burst_planner",
            "planner_proof",
            _PLANNER,
            ("cover_boundary", "cover_last", "cover_4_gib"),
            {"DataBytes": width},
        )
        for width in (4, 8, 16, 32)
    ),
    Proof("burst_planner", "transfer_proof", _TRANSFER, ("cover_three_bursts",)),
    Proof(
        "sync_flags",
        "sync_flags_proof",
        _FLAGS,
        ("cover_wraps", "cover_loads"),
        {"Flags": 9, "Producers": 2},
    ),
    Proof(
        "sync_flags",
        "sync_flags_proof",
        _FLAGS,
        ("cover_wraps", "cover_loads"),
        {"Flags": 19, "Producers": 3},
        nightly=True,
    ),
    Proof(
        "tile_queue, tile_fence",
        "tile_queue_proof",
        _TILE_QUEUE,
        ("cover_waited", "cover_unit_behind"),
        {"Depth": 2},
        nightly=True,
        quick=True,
    ),
    *(
        Proof(
            "memory_bank",
            "memory_bank_proof",
            _BANK,
            ("cover_forwards", "cover_two_write"),
            {"ReadPorts": reads, "WritePorts": writes, "Ratio": ratio},
            nightly=reads > 3,
        )
        for reads, writes, ratio in ((2, 3, 4), (3, 2, 5), (6, 6, 7), (6, 4, 7))
    ),
    Proof("scalar_fence", "scalar_fence_proof", _SCALAR_FENCE, ("cover_three", "cover_forgets")),
    Proof(
        "scalar_fence",
        "scalar_fence_proof",
        _SCALAR_FENCE,
        ("cover_three", "cover_forgets"),
        {"Tiles": 3},
    ),
    Proof("instruction_dispatch", "dispatch_proof", _DISPATCH, ("cover_one_by_one", "cover_unit")),
    Proof(
        "instruction_dispatch",
        "dispatch_proof",
        _DISPATCH,
        ("cover_one_by_one", "cover_unit"),
        {"Tiles": 3},
        nightly=True,
    ),
    Proof(
        "bus_share",
        "bus_share_proof",
        _BUS,
        ("cover_both_read", "cover_both_write", "cover_words_first"),
    ),
    Proof(
        "host_output",
        "host_output_proof",
        _OUTPUT,
        ("cover_full", "cover_leaves", "cover_waits_for_an_answer"),
        within=8,
    ),
    *(
        Proof(
            "host_output",
            "host_output_proof",
            properties,
            ("cover_full", "cover_leaves", "cover_waits_for_an_answer"),
            {"DataBytes": width},
            nightly=True,
            within=20,
        )
        for width, properties in ((4, _WHOLE_BEATS), (16, _OUTPUT))
    ),
    Proof("interrupts", "interrupts_proof", _INTERRUPTS, ("cover_counts", "cover_all_at_once")),
    *(
        Proof(
            "chunk_queue",
            "chunk_queue_proof",
            (*_CHUNKS[:4], _PART_OF_A_WORD) if width == 32 else _CHUNKS,
            ("cover_reads", "cover_waits", "cover_early_words", "cover_tells"),
            {"DataBytes": width},
            nightly=width != 32,
            quick=True,
        )
        for width in (4, 8, 32)
    ),
    Proof(
        "registers",
        "registers_proof",
        _REGISTERS,
        ("cover_both", "cover_read", "cover_page", "cover_fails"),
        nightly=True,
        within=10,
    ),
    Proof(
        "dma_engine",
        "engine_proof",
        _ENGINE,
        ("cover_fence_behind_another", "cover_refused"),
        {"DataBytes": 4},
        nightly=True,
        quick=True,
        within=6,
    ),
    Proof(
        "read_stream",
        "stream_proof",
        _STREAM,
        ("cover_second_burst", "cover_behind_another", "cover_full"),
        {"DataBytes": 4, "MaxBurst": 2, "SizeBits": 8},
        apart=True,
        nightly=True,
        within=12,
    ),
    Proof(
        "dma_writer",
        "writer_proof",
        _WRITER,
        ("cover_two_unanswered", "cover_descriptor_of_two_bursts", "cover_interrupt"),
        {"DataBytes": 4, "MaxBurst": 2},
        nightly=True,
        quick=True,
    ),
    Proof(
        "dma_reader",
        "arbiter_proof",
        _ARBITER,
        ("cover_all_ask", "cover_waits"),
        {"DataBytes": 4, "MaxBurst": 2},
        nightly=True,
        quick=True,
        within=12,
    ),
    Proof(
        "ring_bus",
        "ring_proof",
        (*_RING[1:3], _RING[4]),
        ("cover_all_wait", "cover_to_two"),
        {"Tiles": 1, "CyclesPerRow": 2},
        within=8,
    ),
    Proof(
        "ring_bus",
        "ring_proof",
        _RING,
        ("cover_all_wait", "cover_to_two"),
        {"Tiles": 2, "CyclesPerRow": 4},
        nightly=True,
    ),
    Proof(
        "ring_bus",
        "ring_proof",
        _RING,
        ("cover_all_wait", "cover_to_two"),
        {"Tiles": 4, "CyclesPerRow": 5},
        nightly=True,
    ),
    Proof("tile_array", "tile_array_proof", _TILE_ARRAY, ("cover_last",)),
)
"""Every proof, the quick ones of a module before the long ones."""
