"""Records of the instructions that have any.

Written by `python -m darwinn_sim.kernel.records`; do not edit.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import sync, traversal
from darwinn_sim.kernel.structure import Numbers, Record


class Branch(Record):
    """Branch."""

    pc: int
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    conditional: int
    branch_predicate: int
    branch_polarity: int
    offset: int
    reserved_32: int
    relative: int


class CoefficientTable(Record):
    """CoefficientTable."""

    pc: int
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    coefficient: Annotated[NDArray[np.float32], 40]
    lower_bound: Annotated[NDArray[np.float32], 7]
    degree: int


class Loop(Record):
    """Loop."""

    pc: int
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    count: int
    body: int


class Mesh(Record):
    """MeshSouth or MeshWest or MeshNorth or MeshEast."""

    pc: int
    narrow_read: traversal.Parameters
    narrow_write: traversal.Parameters
    read_producer: sync.Producer
    write_producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    base_override: int
    immediate_valid: int
    immediate: int


class NarrowToWide(Record):
    """NarrowToWide."""

    pc: int
    narrow_read: traversal.Parameters
    wide_write: traversal.Parameters
    producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    base_override: int
    transpose: int
    transpose_16bit: int
    row_loop: int


class PopInput(Record):
    """PopInput."""

    pc: int
    buffer: traversal.Parameters
    producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    fifo: int


class RingConsumer(Record):
    """RingConsumerA or RingConsumerB."""

    pc: int
    wide_write: traversal.Parameters
    producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    base_override: int
    destination: int


class RingInfeed(Record):
    """RingInfeed."""

    pc: int
    buffer: traversal.Parameters
    token_producer: sync.Producer
    producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    fifo: int
    sync_increment: int
    consumer_b: int
    targets: int
    tiles_register: int
    base_register: int
    counter_register: int
    row_words: int


class RingOutfeed(Record):
    """RingOutfeed."""

    pc: int
    buffer: traversal.Parameters
    producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    base_register: int
    counter_register: int
    row_words: int
    to_host: int


class RingProducer(Record):
    """RingProducer."""

    pc: int
    wide_read: traversal.Parameters
    row_producer: sync.Producer
    token_producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    base_override: int
    consumer_b: int
    targets: int


class Scalar(Record):
    """Scalar."""

    pc: int
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    load_op: int
    load_register: int
    load_address: int
    store_op: int
    store_address: int
    store_register: int
    alu_op: int
    alu_immediate: int
    alu_destination: int
    alu_a: int
    alu_b: int
    function_op: int
    function_destination: int
    function_source: int


class ScalarFence(Record):
    """ScalarFence."""

    pc: int
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    reset_tile_fences: int
    reset_flags: int
    reset_value: int
    tile_fence_count: int
    tile_fence_valid: int
    expected: Annotated[Numbers, 9]
    expected_valid: int
    wait_idle: int


class Tensor(Record):
    """TensorMac or TensorMax or TensorSum or TensorInterpolate."""

    pc: int
    narrow_read: traversal.Parameters
    narrow_write: traversal.Parameters
    parameter_read: traversal.Parameters
    partial_sum: traversal.Parameters
    narrow_write_producer: sync.Producer
    parameter_read_producer: sync.Producer
    partial_sum_producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    main_limit: Annotated[Numbers, 8]
    main_alternate_limit: int
    main_alternate_loop: int
    hiccup: int
    partial_sum_wrap: int
    zero_activation_power_save: int
    partial_sum_read: int
    activation_16bit: int
    parameter_16bit: int
    reserved_1848: int
    mac_disable: int
    load_parameter_zero_point: int
    parameter_zero_point: int
    activation_zero_point: int
    zero_point_limit: int
    zero_point_stride: int
    zero_point_base: int
    alternate_base: int
    output_block_loop: int
    reduction_loops: int
    last_block_lanes: int
    block_lanes: int
    function: int
    output_scale: np.float32
    high_clip: np.float32
    low_clip: np.float32
    immediate_bias: int
    output_zero_point: int
    apply_bias: int
    use_scales: int
    symmetric_function: int
    odd_function: int
    x_loop: int
    x_start: int
    x_step: int
    y_loop: int
    y_start: int
    y_step: int
    x_pitch: int
    y_pitch: int
    nearest_pixel: int


class TileFence(Record):
    """TileFence."""

    pc: int
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    tag: int
    reset_flags: int
    reset_value: int
    wait_idle: int
    producer_count_valid: int
    producer_count: int
    increment: int
    halt: int
    narrow_sleep: int
    wide_sleep: int


class WideToNarrow(Record):
    """WideToNarrow."""

    pc: int
    wide_read: traversal.Parameters
    narrow_write: traversal.Parameters
    producer: sync.Producer
    watchers: sync.Watchers
    gate: int
    predicate: int
    polarity: int
    trace: int
    opcode: int
    tiles: int
    base_register: int
    tiles_register: int
    tiles_override: int
    register_sources: int
    tag: int
    base_override: int
    scale_bias: int
    transpose: int
    double_operand: int
    row_loop: int
