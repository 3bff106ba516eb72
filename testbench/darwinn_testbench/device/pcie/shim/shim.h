/* A stand-in for the kernel driver of /dev/apex_0, in front of a program's C library.
 *
 * The driver itself, and the chip, are in the process that started the program ("darwinn device");
 * this library hands over what the program asks of the device file. What it takes from the
 * environment is FOLDER_VARIABLE, the folder with the socket of that process.
 */
#ifndef DARWINN_SHIM_H
#define DARWINN_SHIM_H

#ifndef __x86_64__
#error "the stand-in for /dev/apex_0 decodes x86-64 instructions"
#endif

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "messages.h" /* what is said to the device: written from messages.py */

#define EXPORTED __attribute__((visibility("default")))
#define PAGE 4096u

/* connection.c: the device, which a program may have open several times. */
bool device_is_there(void);
const char *class_folder(void);
int device_open(void);
void device_close(void);
/* 0 or an errno; a descriptor that comes along is put into *received, if there is one. */
int device_ask(struct message *message, int *received);
uint64_t register_read(uint32_t offset);
void register_write(uint32_t offset, uint64_t value);
int set_event(uint64_t vector, int descriptor);
int clear_event(uint64_t vector);

/* windows.c: pages of registers, and the coherent buffer, in the program's memory. */
void *map_window(void *address, size_t size, int protection, int flags, off_t offset);
void forget_windows(uintptr_t begin, size_t size);
void keep_coherent(uint64_t address, size_t size, int descriptor);
void drop_coherent(void);
/* The bus address behind pages that the program has of the coherent buffer; 0 for others. */
uint64_t coherent_bus_address(uint64_t address);
bool takes_signal(int number, const struct sigaction *action, struct sigaction *before);

/* What the C library does, past the functions that stand in front of it. */
int real_sigaction(int number, const struct sigaction *action, struct sigaction *before);
void *real_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset);
int real_close(int descriptor);
void complain(const char *text);

#endif
