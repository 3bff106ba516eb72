"""Deliberate faults of the RTL: where each stands, and the test of the suite that must catch it."""

from __future__ import annotations

from dataclasses import dataclass

from darwinn_rtl.axi_rules import RULES, Rule
from weaving import Edit

CYCLES = "tests/rtl/dma/test_programs.py::test_random_programs_equal_the_models_to_the_cycle"

FAR = (
    "tests/rtl/dma/test_programs.py::test_programs_over_all_of_memory_equal_the_models_to_the_cycle"
)

PROGRAMS = "tests/rtl/dma/test_programs.py::"
LIMITS = "tests/rtl/dma/test_programs.py::test_every_bit_of_the_burst_limit_counts"
SIZES = "tests/rtl/dma/test_programs.py::test_every_bit_of_a_size_counts"

SENDERS = "tests/rtl/chip/test_coincidences.py::test_whatever_comes_together_loses_no_row"
COINCIDENCES = "tests/rtl/dma/test_coincidences.py::test_whatever_comes_together_changes_no_byte"

WRONG = "tests/rtl/dma/test_programs.py::test_whatever_is_wrong_is_reported"

TILE_CYCLES = "tests/rtl/tile/test_timing.py::test_programs_of_a_tile_take_the_predicted_cycles"

TENSOR = "tests/rtl/tile/test_tensor_unit.py::test_multiply_accumulate[gate]"
MAXIMUM = "tests/rtl/tile/test_tensor_unit.py::test_a_maximum_is_that_of_its_byte_planes[14-10]"
INTERPOLATION = "tests/rtl/tile/test_tensor_unit.py::test_interpolation[gate]"
TENSOR_BY_HAND = "tests/rtl/tile/test_tensor_unit.py::test_ties_round_to_even"
WATCHER = "tests/rtl/tile/test_tensor_unit.py::test_a_watcher_passes_at_its_value_and_not_before[1]"
PACKING = (
    "tests/rtl/tile/test_narrow_to_wide.py"
    "::test_random_instructions_pack_the_rows_of_the_slow_model[gate]"
)
SPREADING = (
    "tests/rtl/tile/test_wide_to_narrow.py"
    "::test_random_instructions_move_the_words_of_the_slow_model[gate]"
)
SCALES = (
    "tests/rtl/tile/test_wide_to_narrow.py"
    "::test_a_load_of_scales_begins_at_the_half_that_is_free[1-0]"
)
FULL_ROWS = (
    "tests/rtl/tile/test_narrow_to_wide.py::test_rows_of_every_length_around_a_full_one[4-64]"
)
MESH = (
    "tests/rtl/tile/test_mesh_bus.py"
    "::test_random_instructions_send_and_write_the_words_of_the_slow_model[gate]"
)
RING = (
    "tests/rtl/tile/test_ring_bus.py"
    "::test_random_instructions_send_and_write_the_rows_of_the_slow_model[gate]"
)
WRITE_SIDES = (
    "tests/rtl/tile/test_narrow_to_wide.py"
    "::test_the_double_buffer_goes_on_across_guarded_instructions[guarded by flag 16-0]"
)
READ_SIDES = (
    "tests/rtl/tile/test_ring_bus.py"
    "::test_the_read_side_goes_on_until_a_fence_loads_its_flag[None-sides2-0-0]"
)
PARTIAL_SUMS = "tests/rtl/tile/test_tensor_unit.py::test_sums_in_wide_memory_go_on"
GUARDED = (
    "tests/rtl/tile/test_wide_to_narrow.py"
    "::test_a_guard_is_asked_once_for_a_word_that_waits_for_its_row[30]"
)
IMMEDIATE = "tests/rtl/tile/test_mesh_bus.py::test_an_immediate_takes_no_word_that_has_arrived"
FIFTH_WATCHER = (
    "tests/rtl/tile/test_narrow_to_wide.py"
    "::test_the_double_buffer_goes_on_whichever_watcher_guards[4]"
)
LOAD = "tests/rtl/tile/test_tile_fence.py::test_a_load_takes_the_place_of_an_increment_in_its_cycle"
MOMENT = "tests/rtl/chip/test_ring_and_dispatch.py::"
FENCED_FLAG = MOMENT + "test_a_scalar_fence_waits_for_each_flag_and_loads_each[8]"
CHIP = "tests/rtl/chip/test_scalar_side.py::"
POP = CHIP + "test_pops_fill_the_buffers"
INFEED = CHIP + "test_infeeds_send_their_rows"
OUTFEED = CHIP + "test_outfeeds_take_their_units"
FULL_OUTFEED = CHIP + "test_a_full_outfeed_holds_the_ring"
SCALAR_FENCE = CHIP + "test_fences_wait_and_load"
PLAYED = "tests/rtl/chip/test_engine.py::test_samples_run_on_the_rtl[dense]"
WALKED = "tests/rtl/chip/test_whole_chip.py::test_every_step_of_a_driver"
TILE_FENCE = "tests/rtl/tile/test_tile_fence.py::test_fences_wait_load_and_count[gate]"


def _event(name: str) -> str:
    return f"tests/rtl/dma/test_events.py::test_event[{name}]"


def _floats(name: str) -> str:
    return f"tests/rtl/tile/test_arithmetic.py::test_results_are_those_of_ieee_754[{name}-gate]"


def _interrupts(name: str) -> str:
    return f"tests/rtl/dma/test_interrupts.py::test_interrupts[{name}]"


def _rule(name: str) -> str:
    told = "test_what_breaks_a_rule_is_told_under_its_name"
    return f"tests/rtl/dma/test_axi_check.py::{told}[{name}]"


def untold(rule: Rule) -> str:
    """The name of the fault that keeps a rule of the bus from being told."""
    return f"{rule.constant}Untold"


def _queue(name: str) -> str:
    return f"tests/rtl/dma/test_queue.py::test_queue[{name}]"


PLAIN_MEMORY = (
    "tests/rtl/chip/test_plain_memory.py::test_the_memory_does_what_its_description_says[8 bytes]"
)


def _player(name: str) -> str:
    return f"tests/rtl/chip/test_plain_player.py::test_the_player_{name}"


@dataclass(frozen=True)
class Mutation:
    """A fault: its name, what it is in words, where it stands, and the test that catches it."""

    name: str
    fault: str
    edits: tuple[Edit, ...]
    test: str


def _mutation(name: str, fault: str, *edits: Edit, test: str = CYCLES) -> Mutation:
    return Mutation(name, fault, edits, test)


MUTATIONS = (
    _mutation(
        "QueueOverflows",
        "a full queue takes one more entry",
        Edit("descriptor_fifo.sv", "push_ready = «level != (IndexBits + 1)'(Depth)»", "1'b1"),
    ),
    _mutation(
        "ByteQueueOverflows",
        "a full queue of bytes takes one more byte",
        Edit("byte_fifo.sv", "level <= LevelBits'(«Capacity - InBytes»)", "Capacity - InBytes + 1"),
    ),
    _mutation(
        "BoundaryIgnored",
        "bursts cross 4 KiB",
        Edit("burst_planner.sv", "«33'(words_to_boundary) < 33'(beats)»", "1'b0"),
    ),
    _mutation(
        "BurstOneLonger",
        "the longest burst has one word more than the limit",
        Edit("burst_planner.sv", "beats = «limit»", "limit + BeatBits'(1)"),
    ),
    _mutation(
        "EveryWordIsTheLast",
        "memory calls each word of a burst the last",
        Edit("host_memory.sv", "m_axi_read.rlast <= «read_taken»", "1'b1"),
    ),
    _mutation(
        "AnswerBeforeTheLastWord",
        "memory answers a write when its first word has come",
        Edit("host_memory.sv", "push_valid(word_written && «m_axi_write.wlast»)", "1'b1"),
        test=PLAYED,
    ),
    _mutation(
        "FenceIgnored",
        "a fence waits for nothing",
        Edit("dma_engine.sv", "drained = «pending == '0»", "1'b1"),
    ),
    _mutation(
        "FenceOneEarly",
        "a fence does not wait for the last descriptor",
        Edit("dma_engine.sv", "drained = «pending == '0»", "pending <= 32'd1"),
    ),
    _mutation(
        "WindowOneLonger",
        "a byte behind the window can be reached",
        Edit("dma_engine.sv", "> «{1'b0, window_size}»", "{1'b0, window_size} + 65'd1"),
    ),
    _mutation(
        "Length0NotReported",
        "a descriptor of no bytes is dropped without a word",
        Edit("dma_engine.sv", "length_0: leaves && «outcome == OutcomeLength0»", "1'b0"),
    ),
    _mutation(
        "CompletionsMerged",
        "two completions in one cycle count as one",
        Edit(
            "dma_engine.sv",
            "$countones(«dma2monitor_done_valid»)",
            "DoneEvents'(|dma2monitor_done_valid)",
        ),
    ),
    _mutation(
        "PauseIgnored",
        "bursts are asked for during a pause",
        Edit("read_stream.sv", "asking && «!pause»", "1'b1"),
        test=_event("Pause"),
    ),
    _mutation(
        "FencePassesInPause",
        "a fence passes during a pause",
        Edit("dma_engine.sv", "head_ready = «!pause && drained»", "drained"),
        test=_event("PausedInEveryCycle"),
    ),
    _mutation(
        "PausedForGood",
        "DMA stays paused after the pause",
        Edit("dma_engine.sv", "paused <= «pause» && !reader_busy", "(pause || paused)"),
        test=_event("PausedInEveryCycle"),
    ),
    _mutation(
        "BurstLimitOneMore",
        "a limit of one more than the longest burst is taken",
        Edit("dma_engine.sv", "burst_limiter > «64'(MaxBurst)»", "64'(MaxBurst) + 64'd1"),
        test=LIMITS,
    ),
    _mutation(
        "SizeOfAWriteCut",
        "the size of a write has 24 bits",
        Edit("dma_writer.sv", "left <= «next.size»", "{8'd0, next.size[23:0]}"),
        test=SIZES,
    ),
    _mutation(
        "EmptyOnBothSidesLost",
        "a descriptor and a chunk of no bytes in one cycle are reported by neither",
        Edit(
            "registers.sv",
            "length_0 = «errors.length_0 || queue_errors.length_0»",
            "errors.length_0 ^ queue_errors.length_0",
        ),
        test=_queue("EmptyOnBothSides"),
    ),
    _mutation(
        "InnerErrorLost",
        "an error in an inner word of an entry of the ring is lost",
        Edit("chunk_queue.sv", "failed <= «failed || (read_word && m_axi_read.rresp[1])»", "1'b0"),
        test="tests/rtl/dma/test_queue.py::test_queue_on_a_bus_of_4_bytes",
    ),
    _mutation(
        "LastFullRowCut",
        "a full row with its bytes exchanged, the last one, loses its words",
        Edit(
            "narrow_to_wide.sv",
            "unit2wide_write_count = «(words + CountBits'(3)) & ~CountBits'(3)»",
            "write_step.last ? (words & CountBits'(60)) : (words + CountBits'(3)) & ~CountBits'(3)",
        ),
        test=FULL_ROWS,
    ),
    _mutation(
        "SecondWaitForgiven",
        "a payload may change from the second cycle of its wait on",
        Edit(
            "handshake_check.sv",
            "waited && valid && «payload != was»",
            "payload != was && waits == 32'd1",
        ),
        test="tests/rtl/dma/test_axi_check.py::test_a_handshake_is_checked_by_itself",
    ),
    _mutation(
        "BlockCountedAsOutput",
        "words of the status block count as output while a word of output waits",
        Edit(
            "host_interface.sv",
            "bus2output_word_valid = dma_write.wvalid && «dma_write.wready»",
            "m_axi_write.wready",
        ),
        test=COINCIDENCES,
    ),
    _mutation(
        "FullOutfeedBegins",
        "a full outfeed is ready for a row of a tile as an instruction begins",
        Edit(
            "ring_bus.sv",
            "tiles2ring_row_data[t].channel, ring2tiles_row_ready, «ring2outfeed_row_ready»",
            "ring2outfeed_row_ready || outfeed.start",
        ),
        test=MOMENT + "test_an_outfeed_that_is_full_as_its_instruction_begins_has_no_room[6]",
    ),
    _mutation(
        "CompletedOf20Bits",
        "the count of completed descriptors wraps at 2^20",
        Edit(
            "dma_engine.sv",
            "completed <= «completed + done_now»",
            "32'(20'(completed + done_now))",
        ),
        test=PROGRAMS + "test_the_count_of_completed_descriptors_has_more_than_20_bits",
    ),
    _mutation(
        "InterruptBeforeTheAnswer",
        "an interrupt leaves while the last burst of the output before it is unanswered",
        Edit("dma_writer.sv", "!sending && «!sent_valid» && !m_axi_write.awvalid", "1'b1"),
        test=COINCIDENCES,
    ),
    _mutation(
        "InterruptBeforeTheLastByte",
        "an interrupt leaves while the output before it waits for bytes",
        Edit("dma_writer.sv", "next.is_interrupt && «!writing» && !sending", "1'b1"),
        test=COINCIDENCES,
    ),
    _mutation(
        "ErrorOfTheOneBefore",
        "the number of a descriptor whose read has failed lacks its lowest bit",
        Edit(
            "dma_engine.sv", "error_descriptor = «read_error_index»;", "read_error_index & ~32'd1"
        ),
    ),
    _mutation(
        "RefusedDuringPause",
        "a descriptor that is refused leaves during a pause",
        Edit("dma_engine.sv", "if (outcome != OutcomeStarted) head_ready = «!pause»;", "1'b1"),
        test=_event("Pause"),
    ),
    _mutation(
        "ReadErrorIgnored",
        "words with an error response arrive as they are",
        Edit("read_stream.sv", "(«!response_error» &&", "1'b1"),
    ),
    _mutation(
        "ReadErrorNotReported",
        "an error response of a read leaves the status as it is",
        Edit("read_stream.sv", "response_valid && «response_error»", "1'b0"),
    ),
    _mutation(
        "RoomForgotten",
        "bursts are asked for without room for their words",
        Edit("read_stream.sv", "(«granted» ? RoomBits'(request_beats)", "1'b0"),
        Edit("read_stream.sv", "RoomBits'(«left_buffer»)", "1'b0"),
    ),
    _mutation(
        "DoneOnArrival",
        "a read completes before its unit has taken the last beat",
        Edit("read_stream.sv", "«left_buffer && leaving.last»", "response_valid && arriving.last"),
        Edit("read_stream.sv", "«leaving.index»", "receive_index"),
    ),
    _mutation(
        "FirstWordNotShifted",
        "a read within a word gives the word's first bytes",
        Edit("read_stream.sv", "response_data >> «{offset, 3'b000}»", "'0"),
    ),
    _mutation(
        "StreamPreferred",
        "streams do not take turns",
        Edit("dma_reader.sv", "served <= «chosen»", "2'(ReadStreams - 1)"),
    ),
    _mutation(
        "OneMoreOutstanding",
        "one read burst too many is on its way",
        Edit("dma_reader.sv", "in_flight != CounterBits'(«Outstanding»)", "Outstanding + 1"),
    ),
    _mutation(
        "StrobeDropped",
        "the last byte of a word has no strobe",
        Edit(
            "dma_writer.sv",
            "strobes_end = int'(offset) + «int'(in_word)»",
            "int'(in_word) - int'(in_word > 1)",
        ),
    ),
    _mutation(
        "StrobesBeyondEnd",
        "the last word of a write has strobes to its end",
        Edit(
            "dma_writer.sv", "«i < strobes_end»", "i < strobes_end || bytes_left < 32'(DataBytes)"
        ),
    ),
    _mutation(
        "InterruptOvertakes",
        "an interrupt does not wait for the answers to its outputs",
        Edit("dma_writer.sv", "«!sent_valid» && !m_axi_write.awvalid", "1'b1"),
    ),
    _mutation(
        "WriteErrorIgnored",
        "an error response of a write leaves the status as it is",
        Edit("dma_writer.sv", "answer && «m_axi_write.bresp[1]»", "1'b0"),
    ),
    _mutation(
        "BurstBeforeItsBytes",
        "a write begins with a byte missing",
        Edit("dma_writer.sv", "«32'(level)» >= burst_bytes", "32'(level) + 32'd1"),
    ),
    _mutation(
        "DoneAtFirstResponse",
        "a write completes with the answer to its first burst",
        Edit("dma_writer.sv", "answer && «answered.last»", "1'b1"),
    ),
    _mutation(
        "InterruptLost",
        "a host interrupt does not set its status",
        Edit("interrupts.sv", "set_host = «raise_valid»", "1'b0"),
    ),
    _mutation(
        "InterruptCountedTwice",
        "a host interrupt counts as two",
        Edit("interrupts.sv", "counts[raise_number] + «16'd1»", "16'd2"),
    ),
    _mutation(
        "MaskIgnored",
        "a masked interrupt raises its line",
        Edit("interrupts.sv", "«host_status & host_control» };", "host_status"),
        test=_event("InterruptStorm"),
    ),
    _mutation(
        "ErrorInterruptLost",
        "an error response of a write raises no fatal error",
        Edit(
            "interrupts.sv",
            "set_fatal_error = «errors != '0»",
            "errors != '0 && !errors.write_response",
        ),
    ),
    _mutation(
        "FirstErrorOverwritten",
        "a later error takes the place of the first",
        Edit("registers.sv", "= inbound_fault && «no_first_error»", "1'b1"),
        Edit("registers.sv", "= extended_fault && «no_first_error»", "1'b1"),
        Edit("registers.sv", "= length_0 && «no_first_error»", "1'b1"),
    ),
    _mutation(
        "StatusNotCleared",
        "a status bit survives its clearing",
        Edit("registers.sv", "hwset = «set_host[0]»", "set_host[0] || host_status[0]"),
        test=_event("InterruptStorm"),
    ),
    _mutation(
        "LimitOneMore",
        "every loop of a traversal runs once more",
        Edit(
            "traversal.sv",
            "index[k] == «walk.loop[k].limit»",
            "walk.loop[k].limit + CounterBits'(1)",
        ),
        test=TENSOR,
    ),
    _mutation(
        "AlternateLimitIgnored",
        "the last pass is as long as the others",
        Edit("traversal.sv", "alternate_pass = «(walk.alternate_loop != '0)»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "AlternateResetIgnored",
        "a shorter pass goes on from the wrong address",
        Edit("traversal.sv", "alternate_pass && «k > int'(alternate_target)»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "DoubleBufferStays",
        "a traversal stays in its first buffer",
        Edit("traversal.sv", "toggles = «1'(block_ended >> walk.double_loop)»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "NextBufferMistaken",
        "the next address is that of the other buffer",
        Edit(
            "traversal.sv",
            "((«last ? walk.double_start : second ^ toggles») ? walk",
            "last ? second ^ toggles : walk.double_start",
        ),
        test="tests/rtl/tile/test_tensor_unit.py"
        "::test_sums_of_a_double_buffer_end_where_their_address_changes[0]",
    ),
    _mutation(
        "WatcherOneEarly",
        "a watcher passes one count early",
        Edit("watchers.sv", "[watcher[k].flag] - «awaited[k]»", "awaited[k] - 16'd1"),
        test=WATCHER,
    ),
    _mutation(
        "WatcherStrideIgnored",
        "a watcher waits for the same value again",
        Edit("watchers.sv", "waits[k] && «take[side[k]]»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "FlagCountedTwice",
        "an increment of a sync flag counts as two",
        Edit(
            "sync_flags.sv", "«units2flags_produce[p].amount»", "units2flags_produce[p].amount << 1"
        ),
        test=TENSOR,
    ),
    _mutation(
        "TileFenceIgnored",
        "a tile fence waits for nothing",
        Edit("tile_fence.sv", "queue2fence_instruction_ready = «reached»", "1'b1"),
        test=TILE_FENCE,
    ),
    _mutation(
        "TileFenceLoadsNothing",
        "a tile fence leaves the flags as they are",
        Edit("tile_fence.sv", "load_valid = «passed»", "1'b0"),
        test=TILE_FENCE,
    ),
    _mutation(
        "TokenCountIgnored",
        "a tile fence does not count tokens",
        Edit("tile_fence.sv", "«instruction.producer_count_valid[c]» &&", "1'b0"),
        test=TILE_FENCE,
    ),
    _mutation(
        "TokensMayBeMore",
        "a tile fence passes with more tokens than awaited",
        Edit(
            "tile_fence.sv",
            "«flags2fence_tokens[c] != instruction.producer_count»",
            "flags2fence_tokens[c] < instruction.producer_count",
        ),
        test=TILE_FENCE,
    ),
    _mutation(
        "WideWriteOneShort",
        "the last word of a row is not written",
        Edit("wide_memory.sv", "CountBits'(«w») >= units2wide_write_count", "w + 1"),
        test=TENSOR,
    ),
    _mutation(
        "MultiplierStands",
        "the fourth multiplier of every cell stands still",
        Edit("tensor_cells.sv", "«3'(k) >= products»", "3'(k) >= products || k == 3"),
        test=TENSOR,
    ),
    _mutation(
        "ZeroPointIgnored",
        "the zero point of the parameters is 0",
        Edit("tensor_cells.sv", "zero_point = «{16'b0, instruction.parameter_zero_point}»", "'0"),
        test=TENSOR,
    ),
    _mutation(
        "SumsNotContinued",
        "sums in wide memory begin at 0 again",
        Edit("tensor_unit.sv", "!keeps_sums && «!first_pass»", "1'b0"),
        test=PARTIAL_SUMS,
    ),
    _mutation(
        "LastBlockIgnored",
        "the last block has as many lanes as the others",
        Edit("tensor_unit.sv", "last_block = «1'b1»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "ScaleHalfStays",
        "scales and biases come from the first half",
        Edit("tensor_unit.sv", "unit2scale_half = «!watcher_latest[k][0]»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "ClipIgnored",
        "results are not clipped from above",
        Edit("output_stage.sv", "clips && «less_than(high_clip, clipped)»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "ReductionTakesRow",
        "a maximum of one byte plane takes all four",
        Edit(
            "tensor_cells.sv",
            "case («instruction.mac_disable»)",
            "multiplies ? instruction.mac_disable : '0",
        ),
        test=MAXIMUM,
    ),
    _mutation(
        "NearestAsBias",
        "the bit of the nearest pixel adds a bias",
        Edit("tensor_unit.sv", "nearest = «taps_instruction.apply_bias»", "1'b0"),
        Edit("tensor_output.sv", "instruction.apply_bias && «!interpolates»", "1'b1"),
        test=INTERPOLATION,
    ),
    _mutation(
        "HalfPixelForgotten",
        "the nearest pixel is the one before",
        Edit("tensor_unit.sv", "half_pixel = «nearest»", "1'b0"),
        test=INTERPOLATION,
    ),
    _mutation(
        "RoundsHalfUp",
        "ties are rounded up, not to even",
        Edit("float32_pkg.sv", "guard && («sticky || value[8]»)", "1'b1"),
        test=TENSOR_BY_HAND,
    ),
    _mutation(
        "ResultsWrap",
        "results beyond the highest are cut off",
        Edit("output_stage.sv", "«shifted > highest»", "1'b0"),
        test=TENSOR,
    ),
    _mutation(
        "QueueHeadWrapsLate",
        "the queue's head wraps late",
        Edit("registers.sv", "head + 1 >= «size»", "size + 64'd1"),
        test=_event("InstructionQueue"),
    ),
    _mutation(
        "PrologueCounted",
        "the words of a prologue count as ends of blocks",
        Edit("traversal.sv", "inner_done = «!in_prologue»", "1'b1"),
        test=SPREADING,
    ),
    _mutation(
        "PrologueOneShort",
        "a prologue has one element less",
        Edit("traversal.sv", "prologue_inner_limit} + (CounterBits + 1)'(«1»)", "0"),
        test=SPREADING,
    ),
    _mutation(
        "RowOneWordShort",
        "narrow-to-wide closes a row after 63 words",
        Edit("narrow_to_wide.sv", "place == CountBits'(«RowWords - 1»)", "RowWords - 2"),
        test=PACKING,
    ),
    _mutation(
        "BlockNotFilled",
        "an unfinished block keeps words of the row before",
        Edit("narrow_to_wide.sv", "if («place == '0»)", "1'b0"),
        test=PACKING,
    ),
    _mutation(
        "HalvesAsBytes",
        "blocks of halves are turned as blocks of bytes",
        Edit("narrow_to_wide.sv", "«instruction.transpose_16bit»", "1'b0"),
        test=PACKING,
    ),
    _mutation(
        "WriteSideForgotten",
        "every guarded instruction starts at its side",
        Edit("narrow_to_wide.sv", "ended_now && «shares»", "1'b0"),
        test=WRITE_SIDES,
    ),
    _mutation(
        "RowKeptAcrossBlocks",
        "wide-to-narrow uses every row up",
        Edit("wide_to_narrow.sv", "«write_step.ended[4'(instruction.row_loop)]»", "1'b0"),
        test=SPREADING,
    ),
    _mutation(
        "ScaleLoadAtFirstHalf",
        "a load of scales begins at the encoded half",
        Edit("wide_to_narrow.sv", "if («instruction.scale_bias») begin write_walk", "1'b0"),
        test=SCALES,
    ),
    _mutation(
        "ImmediateIgnored",
        "a mesh port writes what arrived last for a constant",
        Edit("mesh_bus.sv", "unit2narrow_write_data = «instruction.immediate_valid»", "1'b0"),
        test=MESH,
    ),
    _mutation(
        "OffSideSends",
        "a side of the mesh that is off sends a word",
        Edit("mesh_bus.sv", "read_on = «moves(instruction.narrow_read)»", "1'b1"),
        test=MESH,
    ),
    _mutation(
        "LinkFlagsSwapped",
        "words sent count for the opposite link",
        Edit("mesh_bus.sv", "OutboundFlags[«Link»]", "Link ^ 2"),
        test=MESH,
    ),
    _mutation(
        "TurnIgnored",
        "a ring producer does not wait for its turn",
        Edit("ring_producer.sv", "passed || «pass»", "1'b1"),
        test=RING,
    ),
    _mutation(
        "TokenLost",
        "the turn on the ring is not passed on",
        Edit("ring_producer.sv", "token = «instruction.token_producer_increment»", "1'b0"),
        test=RING,
    ),
    _mutation(
        "ReadSideForgotten",
        "every ring producer starts at its side",
        Edit("ring_producer.sv", "ended_now && «shares»", "1'b0"),
        test=READ_SIDES,
    ),
    _mutation(
        "RowWordsIgnored",
        "a ring consumer writes 64 words of every row",
        Edit(
            "ring_consumer.sv",
            "unit2wide_write_count <= «ring2unit_row_words»",
            "CountBits'(RowWords)",
        ),
        test=RING,
    ),
    _mutation(
        "PopOneByteEarly",
        "a pop takes a unit whose last byte is missing",
        Edit("input_pop.sv", "level >= LevelBits'(«UnitBytes»)", "UnitBytes - 1"),
        test=POP,
    ),
    _mutation(
        "InfeedIncrementIgnored",
        "an infeed counts one, whatever it is told",
        Edit("ring_infeed.sv", "«instruction.sync_increment»", "16'd1"),
        test=INFEED,
    ),
    _mutation(
        "InfeedTurnLost",
        "a turn within a row is not passed on",
        Edit("ring_infeed.sv", "!closes && «token»", "1'b0"),
        Edit("ring_infeed.sv", "«!token || infeed2ring_token_ready»", "1'b1"),
        test=INFEED,
    ),
    _mutation(
        "LastRowKept",
        "an infeed does not send its last row if it is short",
        Edit("ring_infeed.sv", "7'd1 || «step.last»", "1'b0"),
        test=INFEED,
    ),
    _mutation(
        "RestOfRowKept",
        "the next outfeed takes the rest of the last row",
        Edit("ring_outfeed.sv", "7'd1 || «step.last»", "1'b0"),
        test=OUTFEED,
    ),
    _mutation(
        "ScalarFenceIgnored",
        "a scalar fence waits for nothing",
        Edit("scalar_fence.sv", "core2fence_instruction_ready = «reached»", "1'b1"),
        test=SCALAR_FENCE,
    ),
    _mutation(
        "TileFencesNotForgotten",
        "the fences of tiles go on counting",
        Edit(
            "scalar_fence.sv",
            "passed && «core2fence_instruction_data.reset_tile_fences[t]»",
            "1'b0",
        ),
        test=SCALAR_FENCE,
    ),
    _mutation(
        "RingRoomIgnored",
        "rows arrive at an outfeed that is full",
        Edit(
            "ring_bus.sv",
            "infeed2ring_row_valid && «has_room( infeed2ring_row_data.targets,"
            " infeed2ring_row_data.channel, ring2tiles_row_ready, ring2outfeed_row_ready )»",
            "1'b1",
        ),
        test=FULL_OUTFEED,
    ),
    _mutation(
        "HostLineStuck",
        "the line of host interrupt 1 stays down",
        Edit(
            "interrupts.sv",
            "«host_status & host_control» };",
            "host_status & host_control & 4'b1101",
        ),
        test=_interrupts("HostLines"),
    ),
    _mutation(
        "HostLinesSwapped",
        "the lines of host interrupts 0 and 1 are swapped",
        Edit(
            "interrupts.sv",
            "«host_status & host_control» };",
            "host_status & host_control & 4'b1100 | {2'b0, host_status[0] && host_control[0],"
            " host_status[1] && host_control[1]}",
        ),
        test=_interrupts("HostLines"),
    ),
    _mutation(
        "QueueMaskIgnored",
        "the instruction queue's line is up though it is masked",
        Edit("interrupts.sv", "instruction_queue_status && «instruction_queue_control»", "1'b1"),
        test=_interrupts("QueueMask"),
    ),
    _mutation(
        "CountOfEightBits",
        "the count of an interrupt wraps at 256",
        Edit(
            "interrupts.sv",
            "counts[raise_number] + «16'd1»",
            "&counts[raise_number][7:0] ? -16'd255 : 16'd1",
        ),
        test=_interrupts("CountsBeyondAByte"),
    ),
    _mutation(
        "ErrorDescriptorStays",
        "the number of the descriptor with an error stays 0",
        Edit("registers.sv", "last_error_descriptor <= «error_descriptor»", "32'd0"),
        test=_interrupts("ErrorDescriptor"),
    ),
    _mutation(
        "ErrorDescriptorOfReads",
        "a read with an error is reported under the number of the next descriptor",
        Edit("dma_engine.sv", "if («read_error») error_descriptor", "1'b0"),
        test=_interrupts("ErrorDescriptor"),
    ),
    _mutation(
        "HeadsStay",
        "the heads of the instruction queue stay when it is turned off",
        Edit("registers.sv", "if (!rst_n || «!queue_enabled»)", "1'b0"),
        test=_interrupts("Heads"),
    ),
    _mutation(
        "CompletedAtFetch",
        "the completed head moves when a chunk is begun",
        Edit("registers.sv", "if («chunk_done») begin", "chunk_fetched"),
        test=_interrupts("Heads"),
    ),
    _mutation(
        "RefusedChunkCounted",
        "a chunk that is refused moves the fetched head",
        Edit(
            "dma_engine.sv",
            "chunk_fetched = leaves && «outcome == OutcomeStarted»",
            "1'b1",
        ),
        test=_interrupts("Heads"),
    ),
    _mutation(
        "RegisterStrobesIgnored",
        "a write of some bytes of a register writes all",
        Edit("axi_lite.sv", "s_axil_write.wstrb = «s_axil_wstrb»", "8'hff"),
        test=_interrupts("ByteStrobes"),
    ),
    _mutation(
        "ReadDecodeErrorIgnored",
        "an answer to a read that nobody is there counts as good",
        Edit("dma_reader.sv", "«m_axi_read.rresp[1]»", "m_axi_read.rresp == 2'b10"),
        test=_interrupts("DecodeErrors"),
    ),
    _mutation(
        "WriteDecodeErrorIgnored",
        "an answer to a write that nobody is there counts as good",
        Edit("dma_writer.sv", "answer && «m_axi_write.bresp[1]»", "m_axi_write.bresp == 2'b10"),
        test=_interrupts("DecodeErrors"),
    ),
    _mutation(
        "PausedEarly",
        "DMA is paused before the last write has been answered",
        Edit("dma_writer.sv", "m_axi_write.awvalid || «sent_valid»", "1'b0"),
        test=_interrupts("PausedBehindTheLastAnswer"),
    ),
    _mutation(
        "RingWrapsLate",
        "the ring has one entry more than the host says",
        Edit("chunk_queue.sv", "next + 64'd1 >= «settings.size»", "settings.size + 64'd1"),
        test=_queue("RingOfChunks"),
    ),
    _mutation(
        "StatusBlockOnce",
        "a chunk that is done while the status block is written is forgotten",
        Edit("chunk_queue.sv", "untold <= «chunk_done» ||", "chunk_done && !(busy && writes)"),
        test=_queue("ToldBehindTheBlock"),
    ),
    _mutation(
        "ToldBeforeAnswer",
        "the host is told of a chunk before its status block is written",
        Edit("chunk_queue.sv", "? «told && !stale» : chunk_done", "chunk_done"),
        test=_queue("ToldBehindTheBlock"),
    ),
    _mutation(
        "BadSettingsTaken",
        "a queue without entries is turned on",
        Edit("chunk_queue.sv", "well_set = «settings.size != '0»", "1'b1"),
        test=_queue("QueueErrors"),
    ),
    _mutation(
        "ChunkOfNothingTaken",
        "a chunk of length 0 is offered to the scalar core",
        Edit("chunk_queue.sv", "bad_entry = read_failed || «size == '0»", "1'b0"),
        test=_queue("QueueErrors"),
    ),
    _mutation(
        "InvalidPageRead",
        "a page that is not valid is read",
        Edit("chunk_queue.sv", "«table2queue_entry[0]» &&", "1'b1"),
        test=_queue("QueueErrors"),
    ),
    _mutation(
        "HaltedQueueReads",
        "the queue reads while the scalar core is halted",
        Edit("chunk_queue.sv", "!stopped && «settings.runs»", "1'b1"),
        test=_queue("QueueStandsStill"),
    ),
    _mutation(
        "LineOfOutputsStuck",
        "the line of host interrupt 0, by which the driver hears of outputs, stays down",
        Edit(
            "interrupts.sv", "«host_status & host_control» };", "host_status & host_control & 4'he"
        ),
        test=PLAYED,
    ),
    _mutation(
        "StatusBlockOfNothing",
        "the head in the status block stays 0",
        Edit("chunk_queue.sv", "«completed_head[31:0]»", "32'd0"),
        test=PLAYED,
    ),
    _mutation(
        "RowBitTurned",
        "a bit of every row of the infeed is turned on the ring",
        Edit(
            "ring_bus.sv", "row = «infeed2ring_row_data»;", "infeed2ring_row_data ^ ring_row_t'(1)"
        ),
        test=WALKED,
    ),
    _mutation(
        "AddressOf32Bits",
        "reads go to the low 32 bits of their address",
        Edit("read_stream.sv", "ask_address <= «next.address»", "AddressBits'(next.address[31:0])"),
        test=FAR,
    ),
    _mutation(
        "CarryStopsAt1MiB",
        "the address of a write's next burst carries no further than 20 bits",
        Edit(
            "dma_writer.sv",
            "address <= «address + AddressBits'(burst_bytes)»",
            "{address[AddressBits-1:20], 20'(address[19:0] + 20'(burst_bytes))}",
        ),
        test=FAR,
    ),
    _mutation(
        "SizeOf16Bits",
        "of a size only 16 bits are kept",
        Edit("dma_engine.sv", "size: «head.size»", "32'(head.size[15:0])"),
        test=FAR,
    ),
    _mutation(
        "LimitOf40BitsIgnored",
        "a larger window reaches beyond 2^40 bytes",
        Edit("dma_engine.sv", "«window_offset + 65'(head.size) > 65'(1) << AddressBits»", "1'b0"),
        test=FAR,
    ),
    _mutation(
        "SpanOf32Bits",
        "almost 4 GiB from within a word are a few bytes",
        Edit(
            "burst_planner.sv",
            "span = «33'(left) + 33'(address[OffsetBits-1:0])»",
            "33'(32'(left + 32'(address[OffsetBits-1:0])))",
        ),
        test=FAR,
    ),
    _mutation(
        "FenceMisses32",
        "a fence passes while 32 descriptors are pending",
        Edit("dma_engine.sv", "drained = «pending == '0»", "pending[4:0] == '0"),
        test=FAR,
    ),
    _mutation(
        "ImmediateTakesWord",
        "a constant takes a word that has arrived over the mesh",
        Edit("mesh_bus.sv", "(receives && «!instruction.immediate_valid»)", "1'b1"),
        test=IMMEDIATE,
    ),
    _mutation(
        "GuardAskedAgain",
        "a guard is asked anew while its word waits for a row",
        Edit("wide_to_narrow.sv", "write_step.valid && «!write_passed» && pass[1]", "1'b1"),
        test=GUARDED,
    ),
    _mutation(
        "FourWatchersShare",
        "watchers 4 and 5 do not share the double buffer",
        Edit(
            "narrow_to_wide.sv",
            "(«instruction.watcher[k].valid» && instruction.watcher[k].flag",
            "instruction.watcher[k].valid && k < 4",
        ),
        test=FIFTH_WATCHER,
    ),
    _mutation(
        "LoadAddsIncrement",
        "an increment in the cycle of a load is added to what is loaded",
        Edit(
            "sync_flags.sv",
            "values[f] <= «fence2flags_load_value»",
            "fence2flags_load_value + increment[f]",
        ),
        test=LOAD,
    ),
    _mutation(
        "OddOfMinusZero",
        "an odd function of -0 is negated",
        Edit("output_stage.sv", "clipped.sign && «!is_zero(clipped[30:0])»;", "1'b1"),
        test=_floats("around_zero"),
    ),
    _mutation(
        "AdderForgetsSticky",
        "a sum forgets what is shifted out of its smaller part",
        Edit(
            "float32_pkg.sv",
            "(low >> shift) | «48'((low & ((48'd1 << shift) - 48'd1)) != '0)»",
            "48'd0",
        ),
        test=_floats("additions"),
    ),
    _mutation(
        "SubnormalIsNormal",
        "a subnormal number has a leading one",
        Edit("float32_pkg.sv", "return {«magnitude[30:23] != '0», magnitude", "1'b1"),
        test=_floats("reduced"),
    ),
    _mutation(
        "InfinityTimesZero",
        "infinity times 0 is infinity",
        Edit("float32_pkg.sv", "(«is_zero(a[30:0]) || is_zero(b[30:0])») ? QuietNan", "1'b0"),
        test=_floats("any_scale"),
    ),
    _mutation(
        "NothingIsANumber",
        "what is no number is a large one",
        Edit("float32_pkg.sv", "if («is_nan(x[30:0])») return '0", "1'b0"),
        test=_floats("any_scale"),
    ),
    _mutation(
        "LowByteSaturated",
        "a result beyond 32 bits, whose low byte leaves, is the nearest end",
        Edit("output_stage.sv", "to_int32(value, «!raw»)", "1'b1"),
        test=_floats("low_bytes"),
    ),
    _mutation(
        "RoomOfChannelA",
        "a row on channel B waits for room on channel A",
        Edit("ring_bus.sv", "targets[t] && «!tiles_ready[t][channel]»", "!tiles_ready[t][0]"),
        test=MOMENT + "test_rows_wait_for_room_on_their_own_channel[0-None]",
    ),
    _mutation(
        "TurnLost",
        "a turn of the infeed that ends with a row's is lost",
        Edit("ring_bus.sv", "infeed2ring_token_ready = «!passes»", "1'b1"),
        test=MOMENT + "test_no_turn_is_lost_where_two_end_at_once[0-0-0]",
    ),
    _mutation(
        "TokenOfTileLost",
        "rows of tiles end no turn",
        Edit("ring_bus.sv", "passes = arrives && «row.token»", "row.token && sender == '0"),
        test=MOMENT + "test_no_turn_is_lost_where_two_end_at_once[1-0-0]",
    ),
    _mutation(
        "LastSenderFirst",
        "of several senders the last one goes first",
        Edit("ring_bus.sv", "if («offers[s]») sender", "offers[s] && (offers >> s) == Senders'(1)"),
        test=MOMENT + "test_the_infeed_goes_first_and_then_tiles_in_order",
    ),
    _mutation(
        "DispatchedAgain",
        "a tile takes an instruction again while another one has no room for it",
        Edit(
            "instruction_dispatch.sv",
            "taken <= «taken | (core2tiles_instruction_valid & core2tiles_instruction_ready)»",
            "'0",
        ),
        test=MOMENT + "test_an_instruction_reaches_each_of_its_tiles_once",
    ),
    _mutation(
        "IncrementOf4Bits",
        "the infeed's flag counts by the low 4 bits of the increment",
        Edit(
            "ring_infeed.sv",
            "infeed2flags_produce.amount = «instruction.sync_increment»",
            "16'(instruction.sync_increment[3:0])",
        ),
        test=MOMENT + "test_the_infeed_counts_by_its_increment",
    ),
    _mutation(
        "FencesOf4Bits",
        "of the fences of a tile 15 are counted at most",
        Edit("scalar_fence.sv", "«counts[t]» < 32'(", "32'(counts[t][3:0])"),
        test=MOMENT + "test_a_scalar_fence_counts_the_fences_of_each_tile[17]",
    ),
    _mutation(
        "LastFlagNotAwaited",
        "a scalar fence waits for all flags but the last",
        Edit(
            "scalar_fence.sv",
            "if («core2fence_instruction_data.expected_valid[f]» &&",
            "core2fence_instruction_data.expected_valid[f] && f != Flags - 1",
        ),
        test=FENCED_FLAG,
    ),
    _mutation(
        "WordOverUnit",
        "a unit of the outfeed is lost where the scalar core sends a word",
        Edit("host_output.sv", "in_ready && «!core2output_word_valid»", "1'b1"),
        test=MOMENT + "test_words_of_the_core_go_between_units_of_the_outfeed",
    ),
    _mutation(
        "OutputForgotten",
        "the chip is done while output bytes are in the DMA engine",
        Edit("host_output.sv", "&& «held == '0»", "1'b1"),
        test=MOMENT + "test_the_chip_is_not_done_while_output_waits_for_its_place",
    ),
    _mutation(
        "OldBlockTold",
        "the host is told of a block of a queue that has been turned off and on",
        Edit("chunk_queue.sv", "? «told && !stale» : chunk_done", "told"),
        test=_queue("OffAndOn"),
    ),
    _mutation(
        "BlockErrorGoesOn",
        "the queue goes on behind a status block that memory has refused",
        Edit("chunk_queue.sv", "(told && !stale && «m_axi_write.bresp[1]»)", "1'b0"),
        test=_queue("StoppedByEachError"),
    ),
    _mutation(
        "OfferedWhilePaused",
        "a chunk that has been read is offered while DMA is paused",
        Edit(
            "chunk_queue.sv", "queue2core_chunk_waits = offers && entry_valid && «runs»", "enabled"
        ),
        test=_queue("OffersNothing"),
    ),
    _mutation(
        "NotToldWhileReading",
        "without a status block a chunk that is done while the queue reads is forgotten",
        Edit("chunk_queue.sv", "!stale : «chunk_done»", "chunk_done && !busy"),
        test=_queue("WithoutBlock"),
    ),
    _mutation(
        "LookupOfTheHost",
        "the queue gets the host's entry of the page table where both look at it",
        Edit(
            "registers.sv",
            "page_table[«EntryBits'(queue2table_entry)»]",
            "hwif_out.page_table.req ? entry : EntryBits'(queue2table_entry)",
        ),
        test=_queue("MappedMeanwhile"),
    ),
    _mutation(
        "NumberBesideAnError",
        "the number of a bad descriptor is lost where the queue has an error as well",
        Edit(
            "registers.sv", "if («errors != '0») last_error", "errors != '0 && queue_errors == '0"
        ),
        test=_interrupts("ErrorsAtOnce"),
    ),
    _mutation(
        "InterruptAtFarAddress",
        "an interrupt may have an address beyond 32 bits",
        Edit("dma_engine.sv", "|| «head.address != '0»", "head.address[31:0] != '0"),
        test=WRONG,
    ),
    _mutation(
        "WindowOf48Bits",
        "of the size of the window 48 bits count",
        Edit("dma_engine.sv", "> «{1'b0, window_size}»", "65'(window_size[47:0])"),
        test=WRONG,
    ),
    _mutation(
        "LastWordFirst",
        "the last word of scalar memory is written to the first",
        Edit(
            "scalar_memory.sv",
            "words[«outfeed2memory_write_address»]",
            "(&outfeed2memory_write_address) ? '0 : outfeed2memory_write_address",
        ),
        test=MOMENT + "test_the_outfeed_reaches_every_place_of_scalar_memory",
    ),
    _mutation(
        "IdleBetween",
        "a unit of the core is idle as an instruction ends, though others wait",
        Edit(
            "buffer_walk.sv",
            "unit2core_idle = «!instruction_valid»",
            "!instruction_valid || (advance && step.last)",
        ),
        test=MOMENT + "test_a_scalar_fence_waits_for_all_instructions_of_a_unit[AV_POP-all]",
    ),
    _mutation(
        "OutputOverEarly",
        "output has been delivered though the outfeed has more",
        Edit("chip.sv", "output_idle && «outfeed_idle», outfeed_idle", "1'b1"),
        test=MOMENT + "test_a_scalar_fence_waits_for_output_that_has_not_come",
    ),
    _mutation(
        "BlockWaitsForItsAddress",
        "words of the status block wait until their address has been taken",
        Edit("chunk_queue.sv", "(«m_axi_write.awvalid» && 32'(word) != 32'(Words))", "1'b0"),
        test=_queue("WordsBesideAddresses"),
    ),
    _mutation(
        "OutputWaitsForItsAddress",
        "so do words of outputs",
        Edit("dma_writer.sv", "m_axi_write.wvalid = «sending»", "sending && !m_axi_write.awvalid"),
        test=_queue("WordsBesideAddresses"),
    ),
    _mutation(
        "OldFaultStops",
        "a fault of a queue that has been turned off and on stops the new one",
        Edit("chunk_queue.sv", "(unreachable && «!stale»)", "1'b1"),
        test=_queue("OffAndOn"),
    ),
    _mutation(
        "NobodyThereIsTaken",
        "an entry that nobody answers for is taken for one of the ring",
        Edit(
            "chunk_queue.sv",
            "read_failed = failed || «m_axi_read.rresp[1]»",
            "m_axi_read.rresp == 2'b10",
        ),
        test=_queue("QueueErrors"),
    ),
    _mutation(
        "PageBeyondTheBus",
        "of a page beyond the bus the low bits are taken",
        Edit("chunk_queue.sv", "«table2queue_entry[63:AddressBits] == '0»", "1'b1"),
        test=_queue("OutOfReach"),
    ),
    _mutation(
        "ChunkAddressCut",
        "of the address of a chunk the bits beyond the bus are lost",
        Edit(
            "chunk_queue.sv",
            "address: «chunk_address»",
            "{chunk_address[63], 23'd0, chunk_address[39:0]}",
        ),
        test=_queue("AnyChunk"),
    ),
    _mutation(
        "QueueRunsBefore",
        "the queue works before the scalar core runs",
        Edit(
            "registers.sv",
            "runs: «hwif_out.scalar_core_run_control.command.value == CommandRun»",
            "hwif_out.scalar_core_run_control.command.value != CommandHalt",
        ),
        test=_queue("QueueStandsStill"),
    ),
    _mutation(
        "ChunkLostWhenFull",
        "a chunk that is asked for while the engine is full of descriptors is lost",
        Edit(
            "chunk_queue.sv",
            "core2queue_chunk_ready = queue2dma_descriptor_valid && «queue2dma_descriptor_ready»",
            "1'b1",
        ),
        test=_queue("AskedWhileFull"),
    ),
    _mutation(
        "BadTailStops",
        "a tail out of the ring stops the queue for good",
        Edit("chunk_queue.sv", "stopped <= enabled && («stopped» ||", "stopped || bad_tail"),
        test=_queue("BehindABadTail"),
    ),
    _mutation(
        "OnWhenPutRight",
        "a queue that was turned on badly is on when its settings are put right",
        Edit("chunk_queue.sv", "(«asked ? enabled : well_set»)", "enabled || well_set"),
        test=_queue("BadlyTurnedOn"),
    ),
    _mutation(
        "ConfigurationFirstToo",
        "a bad configuration behind another error is a first error as well",
        Edit("registers.sv", "queue_errors.bad_configuration && «no_first_error»", "1'b1"),
        test=_interrupts("FirstError"),
    ),
    _mutation(
        "WaitsCountedOn",
        "the cycles that an offer waits are counted on behind a transfer",
        Edit("handshake_check.sv", "waits <= («rst_n && valid && !ready») ?", "rst_n && valid"),
        test="tests/rtl/dma/test_axi_check.py::test_a_handshake_is_checked_by_itself",
    ),
    _mutation(
        "EarlyWordsStay",
        "words whose address has come count as ahead of it in that cycle",
        Edit("axi_port_check.sv", "one(WAhead, «earlies - matched» ==", "earlies"),
        test="tests/rtl/dma/test_axi_check.py::test_legal_traffic_is_no_violation"
        "[a word comes with the address of 256 before it]",
    ),
    _mutation(
        "BlockAtAMultipleOf8",
        "a status block at an odd multiple of 8 is no bad configuration",
        Edit("chunk_queue.sv", "«settings.status_base[3:0]» == '0", "settings.status_base[2:0]"),
        test=_queue("QueueErrors"),
    ),
    _mutation(
        "WaitingFenceRestarts",
        "a fence that waits starts the double buffer anew",
        Edit(
            "tile.sv",
            "restart(«load_valid && load_mask[TILE_FLAG_NARROW_TO_WIDE_WRITE]»)",
            "load_mask[TILE_FLAG_NARROW_TO_WIDE_WRITE] && queue2fence_instruction_valid",
        ),
        test="tests/rtl/tile/test_narrow_to_wide.py"
        "::test_the_double_buffer_goes_on_while_a_fence_waits",
    ),
    _mutation(
        "ZeroPointOfBytesCut",
        "of the zero point of activations of 8 bits only 8 bits count",
        Edit(
            "tensor_cells.sv",
            "{24'b0, activations[8*k+:8]} - «{16'b0, instruction.activation_zero_point}»",
            "{24'b0, instruction.activation_zero_point[7:0]}",
        ),
        test="tests/rtl/tile/test_tensor_unit.py::test_every_bit_of_a_zero_point_counts"
        "[activation-0]",
    ),
    _mutation(
        "LastBlockOf8Bits",
        "an iteration is one of the last block if the low 8 bits of its number are",
        Edit(
            "tensor_unit.sv",
            "if («main_index[k] != instruction.main_limit[k]») last_block",
            "main_index[k][7:0] != instruction.main_limit[k][7:0]",
        ),
        test="tests/rtl/tile/test_tensor_unit.py::test_every_bit_of_a_loop_of_blocks_counts[0]",
    ),
    _mutation(
        "FallsAsReadyComes",
        "an offer may go in the cycle in which it would be taken",
        Edit("handshake_check.sv", "waited && «!valid»)", "!valid && !ready"),
        test="tests/rtl/dma/test_axi_check.py::test_a_handshake_is_checked_by_itself",
    ),
    _mutation(
        "AlternatePassOf8Bits",
        "a pass is the shorter one if the low 8 bits of its number are those of the last",
        Edit(
            "traversal.sv",
            "(«index[walk.alternate_loop] == walk.loop[walk.alternate_loop].limit»)",
            "index[walk.alternate_loop][7:0] == walk.loop[walk.alternate_loop].limit[7:0]",
        ),
        test="tests/rtl/tile/test_edges.py"
        "::test_every_bit_of_the_loop_of_an_alternate_limit_counts",
    ),
    _mutation(
        "InfiniteWithAFraction",
        "a high clip that is no number keeps the low byte, as an infinite one does",
        Edit(
            "tensor_output.sv",
            "high_exponent == '1 && «instruction.high_clip[22:0] == '0»;",
            "1'b1",
        ),
        test=_floats("any_clip"),
    ),
    _mutation(
        "BelowTheWindow",
        "a transfer that begins below the window and ends in it is performed",
        Edit("dma_engine.sv", "outside = «window_offset[64]» ||", "1'b0"),
        test=FAR,
    ),
    _mutation(
        "PausedBesideTheQueue",
        "DMA is paused while the instruction queue is on the bus",
        Edit("dma_engine.sv", "!writer_busy && «!queue_busy»;", "1'b1"),
        test=_queue("PausedBehindTheBlock"),
    ),
    _mutation(
        "ErrorOfTheLastBurst",
        "an error response counts for the last burst of a write alone",
        Edit(
            "dma_writer.sv",
            "error_valid = answer && «m_axi_write.bresp[1]»;",
            "m_axi_write.bresp[1] && answered.last",
        ),
    ),
    _mutation(
        "BytesOf8Bits",
        "of the bytes that are left of a burst 8 bits count",
        Edit("dma_writer.sv", "if («bytes_left < 32'(in_word)»)", "bytes_left[7:0] < 8'(in_word)"),
        test=PROGRAMS + "test_random_programs_equal_the_models_with_odd_sizes",
    ),
    _mutation(
        "TailAtTheEnd",
        "a tail of as many entries as the ring has is no error",
        Edit(
            "chunk_queue.sv",
            "!(enabled && «settings.tail < settings.size»);",
            "settings.tail <= settings.size",
        ),
        test=_queue("QueueErrors"),
    ),
    _mutation(
        "LongestChunkRefused",
        "a chunk of 256 MiB is too long",
        Edit("chunk_queue.sv", "size == '0 || «size > LongestChunk»;", "size >= LongestChunk"),
        test=_queue("AnySize"),
    ),
    _mutation(
        "PagesBeyondTheTable",
        "a simple address beyond the page table is one of its pages",
        Edit(
            "chunk_queue.sv", "found = «device_address[62:25] == '0»", "device_address[62:26] == '0"
        ),
        test=_queue("OutOfReach"),
    ),
    _mutation(
        "RestOfAPageLost",
        "a write of some bytes of an entry of the page table clears the others",
        Edit(
            "registers.sv",
            "page_table[entry] <= («page_table[entry] & ~hwif_out.page_table.wr_biten»",
            "64'd0",
        ),
        test=_interrupts("ByteStrobes"),
    ),
    _mutation(
        "BeforeTheFirstPixel",
        "an interpolation cannot begin before the first pixel",
        Edit(
            "tensor_unit.sv",
            "x = half_pixel + «32'(taps_instruction.x_start)» +",
            "32'($unsigned(taps_instruction.x_start))",
        ),
        test=INTERPOLATION,
    ),
    _mutation(
        "SumsOfTheWholeRow",
        "sums in wide memory are written behind the last lane too",
        Edit("tensor_unit.sv", "unit2wide_write_count = «lanes»;", "CountBits'(RowWords)"),
        test=TENSOR,
    ),
    _mutation(
        "ZeroPointRowOneEarly",
        "the zero points begin anew in their last row",
        Edit(
            "tensor_unit.sv",
            "(«stepped_zero_point_row > {1'b0, instruction.zero_point_limit}»)",
            "stepped_zero_point_row >= {1'b0, instruction.zero_point_limit}",
        ),
        test=TENSOR,
    ),
    _mutation(
        "BaseOf15Bits",
        "of the base that the core gives 15 bits count",
        Edit(
            "narrow_to_wide.sv",
            "narrow_read.base <= «queue2unit_base[15:0]»;",
            "16'(queue2unit_base[14:0])",
        ),
        test=PACKING,
    ),
    _mutation(
        "LastWatchedForgotten",
        "between its blocks a watcher has waited for the block before the last",
        Edit(
            "watchers.sv",
            "latest[k] = «waits[k] ? awaited[k] : awaited[k] - watcher[k].stride»;",
            "awaited[k] - watcher[k].stride",
        ),
        test=TENSOR,
    ),
    _mutation(
        "SingleWordOff",
        "a side of the mesh that moves one word is off",
        Edit("mesh_bus.sv", "moves = «walk.loop[0].stride != '0»;", "1'b0"),
        test=MESH,
    ),
    _mutation(
        "RestartAsItEnds",
        "a fence that loads flag 16 as the ring producer ends changes no side",
        Edit(
            "ring_producer.sv",
            "if («fence2unit_restart») shared_side",
            "fence2unit_restart && !(ended_now && shares)",
        ),
        test="tests/rtl/tile/test_ring_bus.py::test_the_read_side_goes_on_until_a_fence_loads_its_flag[16-sides0-0-0]",
    ),
    _mutation(
        "ResponseMayChange",
        "the response of a word may change while the word waits",
        Edit("axi_port_check.sv", "rdata == rdata_was && «r_response == r_response_was»", "1'b1"),
        test=_rule("r_stable"),
    ),
    _mutation(
        "StrobesBeforeAddress",
        "a word may have strobes before an address that is not aligned",
        Edit("axi_port_check.sv", "lanes[i] = «32'(i) >= first» &&", "32'(i) >= (first & ~inner)"),
        test=_rule("w_strobes"),
    ),
    _mutation(
        "LastOfManyForgotten",
        "a read that ends as the last of all that may wait is not told as one in the wrong order",
        Edit("axi_port_check.sv", "i = 1; «i < MaxReads»;", "i < MaxReads - 1"),
        test=_rule("r_order"),
    ),
    _mutation(
        "PlainRegionOneLonger",
        "of plain memory a region has a byte more",
        Edit(
            "plain_memory.v",
            "«address - region_start[i] < region_size[i]»",
            "address - region_start[i] <= region_size[i]",
        ),
        test=PLAIN_MEMORY,
    ),
    _mutation(
        "PlainAnswerEarly",
        "plain memory answers a write a cycle early",
        Edit("plain_memory.v", "answer_due[answer_end] <= «now + LATENCY»", "now + LATENCY - 1"),
        test=PLAIN_MEMORY,
    ),
    _mutation(
        "PlainInnerErrorLost",
        "of a write to plain memory only the last word can fail",
        Edit("plain_memory.v", "answer_failed[answer_end] <= «failed || misses»", "misses"),
        test=PLAIN_MEMORY,
    ),
    _mutation(
        "PlainQueueOverflows",
        "plain memory takes one more read than it can hold",
        Edit("plain_memory.v", "arready = «reads != REQUESTS»", "reads != REQUESTS + 1"),
        test=PLAIN_MEMORY,
    ),
    _mutation(
        "PlainBesideIsKnown",
        "a byte beside the regions of plain memory is known",
        Edit("plain_memory.v", "place < 0 ? «8'bx» : bytes[place]", "8'd0"),
        test=PLAIN_MEMORY,
    ),
    _mutation(
        "PlainLateForgiven",
        "the plain player lets the chip be late by a cycle",
        Edit("plain_player.v", "!taken && cycles < «until_cycle»", "until_cycle + 1"),
        Edit("plain_player.v", "else if («cycles != until_cycle»)", "cycles < until_cycle"),
        test=_player("compares_each_cycle[READ]"),
    ),
    _mutation(
        "PlainEarlyForgiven",
        "the plain player lets the chip be early by a cycle",
        Edit("plain_player.v", "else if («cycles != until_cycle»)", "cycles < until_cycle - 1"),
        test=_player("compares_each_cycle[SETTLE]"),
    ),
    _mutation(
        "PlainLastByteForgiven",
        "the plain player does not compare the last byte of memory",
        Edit("plain_player.v", "at = 0; at < «second»; at = at + 1) begin if", "second - 1"),
        test=_player("compares_each_byte_of_memory"),
    ),
    _mutation(
        "PlainUnknownCompletion",
        "the plain player does not notice that a completion is unknown",
        Edit("plain_player.v", "tile_units_idle, «done_valid», m_arvalid", "1'b0"),
        test=_player("notices_what_the_chip_does[dma2monitor_done_valid]"),
    ),
    _mutation(
        "PlainUnknownStrobes",
        "the plain player does not notice that strobes are unknown",
        Edit("plain_player.v", "m_wvalid && ^{«m_wstrb», m_wlast} === 1'bx", "1'b0"),
        test=_player("notices_what_the_chip_does[m_axi_wstrb]"),
    ),
    _mutation(
        "PlainHalfTheSum",
        "the plain player compares half the sum of the instruction stream",
        Edit(
            "plain_player.v",
            "«{sum_high[15:0], sum_low[15:0]} !== second[31:0]»",
            "sum_low[15:0] !== second[15:0]",
        ),
        test=_player("compares_all_parts_of_a_number[FETCH]"),
    ),
    _mutation(
        "PlainRefusalForgiven",
        "of two errors of a register's port the plain player knows one",
        Edit("plain_player.v", "refused = «rresp != 0»", "rresp == 2'b11"),
        test=_player("notices_what_the_chip_does[s_axil_rresp 2]"),
    ),
    _mutation(
        "PlainFailedReadForgiven",
        "the plain player does not notice that a read of memory has failed",
        Edit("plain_player.v", "m_rvalid && m_rready && «m_rresp[1]»", "1'b0"),
        test=_player("notices_what_the_chip_does[a read that fails]"),
    ),
    _mutation(
        "OneStreamHoldsAll",
        "while nobody takes the bytes of a stream, no stream asks for more",
        Edit(
            "dma_reader.sv",
            "if («request_valid[(int'(served)+i)%ReadStreams]»)",
            "request_valid[(int'(served)+i)%ReadStreams] && (stream_valid & ~stream_ready) == '0",
        ),
        test="tests/rtl/dma/test_events.py::test_event[StreamsAreIndependent]",
    ),
    _mutation(
        "StreamsChangePlaces",
        "inputs come in the stream of parameters, and parameters in that of inputs",
        Edit("dma_engine.sv", "is_data && head.tag == «4'(i)»", "4'(i == 0 ? 0 : 3 - i)"),
        test=PLAYED,
    ),
    _mutation(
        "ChunkStopsWithQueue",
        "a chunk that is being fetched waits while the queue is off",
        Edit(
            "host_interface.sv",
            "dma2input_activation_ready, «dma2core_instruction_ready»",
            "dma2core_instruction_ready && queue_enabled",
        ),
        test=_queue("AnyMoment"),
    ),
    _mutation(
        "QueueIsNeverFull",
        "a full queue of instructions takes one more",
        Edit("instruction_queue.sv", "in_ready = «stored != (PointerBits + 1)'(Depth)»", "1'b1"),
        test="tests/rtl/chip/test_ring_and_dispatch.py::test_a_full_queue_holds_back_the_core",
    ),
    _mutation(
        "RowsDoNotWait",
        "a ring consumer takes a row while it holds one",
        Edit("ring_consumer.sv", "ring2unit_row_ready = «!arrived_valid || writes»", "1'b1"),
        test="tests/rtl/chip/test_tiles.py::test_rows_wait_on_the_ring_for_tiles_that_are_late",
    ),
    _mutation(
        "AbsentTilesAreAwaited",
        "a fence of the core waits for tiles that the build does not have",
        Edit(
            "scalar_fence.sv",
            "reached = «(core2fence_instruction_data.wait_idle & ~units2fence_idle) == '0»",
            "(core2fence_instruction_data.wait_idle & ~units2fence_idle) == '0"
            " && (core2fence_instruction_data.tile_fence_valid >> Tiles) == '0",
        ),
        test="tests/rtl/chip/test_coincidences.py::test_a_fence_does_not_wait_for_tiles_that_a_build_lacks",
    ),
    _mutation(
        "RunWaitsForResults",
        "a run of sums that has ended waits until the unit's results have left",
        Edit("tensor_output.sv", "unit2output_sums_ready = !busy || «last_word»", "1'b0"),
        test=TILE_CYCLES,
    ),
    _mutation(
        "SumsCountedAtTheEnd",
        "the flag of partial sums counts the last iteration only",
        Edit(
            "tensor_unit.sv",
            "take && «sum_step.ended[instruction.partial_sum_producer_depth]»",
            "sum_step.last",
        ),
        test=TENSOR,
    ),
    _mutation(
        "FlagWhileTheNextIsTaken",
        "a ring consumer counts a row on its flag when the next one comes, too",
        Edit(
            "ring_consumer.sv",
            "«writes && write_step.ended[4'(instruction.producer_depth)]»",
            "(writes || arrives) && write_step.ended[4'(instruction.producer_depth)]",
        ),
        test=RING,
    ),
    _mutation(
        "IdleBeforeTheLastRow",
        "narrow-to-wide is idle when it has read its last word",
        Edit(
            "narrow_to_wide.sv",
            "unit2fence_idle = !starting && «!write_step.valid»",
            "!read_step.valid",
        ),
        test=TILE_CYCLES,
    ),
    _mutation(
        "SumWithBiasWraps",
        "a sum with its bias wraps at the ends of int32",
        Edit("output_stage.sv", "if («unsaturated[32] != unsaturated[31]»)", "1'b0"),
        test="tests/rtl/tile/test_tensor_unit.py::test_a_sum_with_its_bias_saturates",
    ),
    _mutation(
        "RowOfAnotherSender",
        "of several tiles that have a row, the ring carries that of the last",
        Edit(
            "ring_bus.sv",
            "if («sender == SenderBits'(t + 1)») row",
            "sender == SenderBits'(t + 1)"
            " || (sender != '0 && sender < SenderBits'(t + 1) && tiles2ring_row_valid[t])",
        ),
        test=SENDERS,
    ),
    _mutation(
        "NarrowWrapsGoOn",
        "a wrapping burst of fewer bytes than a word of the bus may have the lanes behind it",
        Edit("axi_port_check.sv", "if («burst[1:0] == Wrap») address =", "1'b0"),
        test="tests/rtl/dma/test_axi_check.py::test_each_word_of_a_burst_has_its_lanes[0-2]",
    ),
    _mutation(
        "OldBlockStops",
        "a status block of before the queue was turned off, whose write fails, stops it",
        Edit("chunk_queue.sv", "(told && «!stale» && m_axi_write.bresp[1])", "1'b1"),
        test=_queue("OffAndOn"),
    ),
    _mutation(
        "OddRowsGoOn",
        "a row of an odd number of words does not end at the host",
        Edit(
            "ring_outfeed.sv",
            "advance && («next >= 7'(instruction.row_words) + 7'd1» ||",
            "next == 7'(instruction.row_words) + 7'd1",
        ),
        test=MOMENT + "test_a_row_ends_with_the_unit_that_reaches_its_length[host]",
    ),
    _mutation(
        "PopLateBeforeMore",
        "a pop takes a unit a cycle late while bytes come behind it",
        Edit(
            "input_pop.sv",
            "pass && «level >= LevelBits'(UnitBytes)»",
            "level >= LevelBits'(UnitBytes) + LevelBits'(dma2input_unit_valid)",
        ),
        test=MOMENT + "test_a_unit_is_taken_in_whatever_comes_behind_it[activations]",
    ),
    *(
        _mutation(
            untold(rule),
            f"what breaks {rule.name} is not told",
            Edit(
                "axi_port_check.sv", "if («broken[i]») begin", f"broken[i] && i != {rule.constant}"
            ),
            test=_rule(rule.name),
        )
        for rule in RULES
    ),
)
