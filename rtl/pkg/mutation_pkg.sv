// Deliberate faults, to see whether the tests notice: with the macro MUTATIONS one is chosen by
// +mutation=NAME at the start of a simulation, without it there is none and nothing of them is left.

package mutation_pkg;

  typedef enum int {
    None,
    // Queue of descriptors, queue of bytes.
    QueueOverflows,
    ByteQueueOverflows,
    // Bursts.
    BoundaryIgnored,
    BurstOneLonger,
    // Engine.
    FenceIgnored,
    FenceOneEarly,
    WindowOneLonger,
    Length0NotReported,
    CompletionsMerged,
    PauseIgnored,
    // Read master and streams.
    ReadErrorIgnored,
    ReadErrorNotReported,
    RoomForgotten,
    DoneOnArrival,
    FirstWordNotShifted,
    StreamPreferred,
    OneMoreOutstanding,
    // Write master.
    StrobeDropped,
    StrobesBeyondEnd,
    InterruptOvertakes,
    WriteErrorIgnored,
    BurstBeforeItsBytes,
    DoneAtFirstResponse,
    // Interrupts and registers.
    InterruptLost,
    InterruptCountedTwice,
    MaskIgnored,
    ErrorInterruptLost,
    FirstErrorOverwritten,
    StatusNotCleared,
    QueueHeadWrapsLate,
    // Traversals, watchers, flags, fences of tiles.
    LimitOneMore,
    AlternateLimitIgnored,
    AlternateResetIgnored,
    DoubleBufferStays,
    WatcherOneEarly,
    WatcherStrideIgnored,
    FlagCountedTwice,
    TileFenceIgnored,
    TileFenceLoadsNothing,
    TokenCountIgnored,
    TokensMayBeMore,
    WideWriteOneShort,
    // Tensor unit.
    MultiplierStands,
    ReductionTakesRow,
    ZeroPointIgnored,
    SumsNotContinued,
    LastBlockIgnored,
    ScaleHalfStays,
    ClipIgnored,
    RoundsHalfUp,
    ResultsWrap,
    NearestAsBias,
    HalfPixelForgotten,
    // Units that move words.
    PrologueCounted,
    PrologueOneShort,
    RowOneWordShort,
    BlockNotFilled,
    HalvesAsBytes,
    WriteSideForgotten,
    RowKeptAcrossBlocks,
    ScaleLoadAtFirstHalf,
    ImmediateIgnored,
    OffSideSends,
    LinkFlagsSwapped,
    TurnIgnored,
    TokenLost,
    ReadSideForgotten,
    RowWordsIgnored,
    // The scalar core's side.
    PopOneByteEarly,
    InfeedIncrementIgnored,
    InfeedTurnLost,
    LastRowKept,
    RestOfRowKept,
    ScalarFenceIgnored,
    TileFencesNotForgotten,
    RingRoomIgnored,
    Mutations
  } mutation_e;

`ifdef MUTATIONS
  function automatic mutation_e selected();
    string wanted;
    mutation_e candidate;
    if ($value$plusargs("mutation=%s", wanted) == 0) return None;
    candidate = candidate.first();
    for (int i = 0; i < candidate.num(); i++) begin
      if (candidate.name() == wanted) return candidate;
      candidate = candidate.next();
    end
    $fatal(1, "there is no mutation %s", wanted);
    return None;
  endfunction

  // Bit n: the fault n is to be made.
  logic [Mutations-1:0] mutated = Mutations'(1) << selected();
`else
  localparam logic [Mutations-1:0] mutated = '0;
`endif

endpackage : mutation_pkg
