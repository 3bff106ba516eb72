// What Python calls of every player. The class ThisPlayer is that of the source that includes this.

#pragma once

extern "C" {

const char* player_failure() { return failure.c_str(); }

ThisPlayer* player_open(int seed, const char* argument) { return new ThisPlayer(seed, argument); }

void player_close(ThisPlayer* player) { delete player; }

void player_reset(ThisPlayer* player) { player->reset(); }

uint64_t player_cycle(ThisPlayer* player) { return player->cycles; }

#if VM_TRACE_FST
void player_write_waves(ThisPlayer* player, const char* path) { player->write_waves(path); }
#endif

#if VM_COVERAGE
void player_write_coverage(ThisPlayer* player, const char* path) { player->write_coverage(path); }
#endif

uint32_t player_write_register(ThisPlayer* player, uint32_t offset, uint64_t value,
                               uint64_t limit) {
    return player->write_register(offset, value, limit);
}

uint32_t player_read_register(ThisPlayer* player, uint32_t offset, uint64_t* value,
                              uint64_t limit) {
    return player->read_register(offset, value, limit);
}

// Goes on for so many cycles, whatever happens in them.
uint32_t player_run(ThisPlayer* player, uint64_t cycles) {
    if (!cycles) return DONE;
    const uint64_t end = player->cycles + cycles - 1;
    return player->wait(cycles, [&] { return player->cycles >= end; });
}

uint32_t player_events(ThisPlayer* player, const Event** events) {
    *events = player->events.data();
    return static_cast<uint32_t>(player->events.size());
}

void player_forget_events(ThisPlayer* player) { player->events.clear(); }
}
