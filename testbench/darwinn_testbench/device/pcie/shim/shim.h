/* A stand-in for the kernel driver of /dev/apex_0 and its like, in front of a program's C library.
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

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "messages.h" /* what is said to the device: written from messages.py */

#define EXPORTED __attribute__((visibility("default")))
#define PAGE 4096u
#define VECTORS 13

/* A device, which a program may have open several times. */
struct device {
    unsigned number;
    struct sockaddr_un place;
    pthread_mutex_t lock; /* for what is asked of it, and for users */
    int control, channel, memory;
    int users;
    pthread_t server;
    char moved[PIECE_BYTES]; /* the server's own */
    pthread_mutex_t event_lock;
    int events[VECTORS];
    struct {
        uint64_t address;
        size_t size;
        int descriptor; /* -1: there is none */
        uintptr_t pages;
    } coherent;
};

/* connection.c: the devices. */
bool devices_are_there(void);
const char *class_folder(void);
/* The device of a path below /dev, or NULL. */
struct device *device_named(const char *path);
int device_open(struct device *device);
void device_close(struct device *device);
/* 0 or an errno; a descriptor that comes along is put into *received, if there is one. */
int device_ask(struct device *device, struct message *message, int *received);
uint64_t register_read(struct device *device, uint32_t offset);
void register_write(struct device *device, uint32_t offset, uint64_t value);
int set_event(struct device *device, uint64_t vector, int descriptor);
int clear_event(struct device *device, uint64_t vector);

/* windows.c: pages of registers, and coherent buffers, in the program's memory. */
void *map_window(struct device *device, void *address, size_t size, int protection, int flags,
                 off_t offset);
void forget_windows(uintptr_t begin, size_t size);
void keep_coherent(struct device *device, uint64_t address, size_t size, int descriptor);
void drop_coherent(struct device *device);
/* The bus address behind pages that the program has of the coherent buffer; 0 for others. */
uint64_t coherent_bus_address(const struct device *device, uint64_t address);
bool takes_signal(int number, const struct sigaction *action, struct sigaction *before);

/* What the C library does, past the functions that stand in front of it. */
int real_sigaction(int number, const struct sigaction *action, struct sigaction *before);
void *real_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset);
int real_close(int descriptor);
void complain(const struct device *device, const char *text);

#endif
