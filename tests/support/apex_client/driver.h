/* What a user-space driver does with /dev/apex_0; each ends the program where that fails. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define PAGE 4096ull

__attribute__((noreturn, format(printf, 2, 3))) void end(int status, const char *format, ...);

/* Registers: their place, writing one, and checking what one holds. */
volatile uint64_t *at(uint32_t offset);
void put(uint32_t offset, uint64_t value);
void await(uint32_t offset, uint64_t value);

/* The sequences of a driver; open_device leaves errno where the file cannot be opened. */
void open_device(void);
void close_device(void);
void drop_files(void);

/* Buffers by device address; map and unmap leave errno. */
void map_buffer(uint64_t device, size_t size, uint32_t way, const char *path);
void fill_buffer(uint64_t device, const char *path);
void save_buffer(uint64_t device, const char *path);
void unmap_buffer(uint64_t device);
void free_buffer(uint64_t device);

void queue(uint64_t device, uint32_t size);
void wait_for(uint64_t count);

#endif
