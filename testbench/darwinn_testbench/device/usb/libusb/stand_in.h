/* The inside of the stand-in for libusb-1.0: what its files know of each other.

   A process has one connection to the chip's process, and one thread, the pump, which reads it.
   The pump notes which transfers have ended; callbacks run in whoever handles events, as in libusb.
   `big` guards everything; nothing waits for anything but a condition while it is held. */
#ifndef DARWINN_LIBUSB_STAND_IN_H
#define DARWINN_LIBUSB_STAND_IN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi.h"

#define ON(address, endpoint) ((uint32_t)(address) << ADDRESS_SHIFT | (endpoint))

/* A message that waits for its reply: of a call (`call`), or of a transfer. */
struct pending {
    struct pending *next;
    uint32_t number;
    struct transfer *transfer;
    unsigned char *into; /* where the payload goes */
    size_t room;
    bool done, timed_out;
    struct timespec deadline; /* none if it is 0 */
    unsigned int milliseconds; /* until then */
    int status;
    size_t moved, came;
};

enum progress { IDLE, UNDER_WAY, ENDED };

/* A transfer as libusb allocates it: what is before the public part is ours. */
struct transfer {
    struct transfer *next; /* in the list of those that have ended */
    struct pending pending;
    enum progress progress;
    bool cancelled;
    libusb_context *context;
    uint32_t stream;
    _Alignas(16) struct libusb_transfer public;
};

struct libusb_device {
    int references;
    uint32_t claimed; /* a bit for each interface */
    libusb_context *context;
    uint8_t bus, port, address, speed;
    struct libusb_device_descriptor descriptor;
    size_t configuration_size;
    uint8_t *configuration;
};

struct libusb_device_handle {
    libusb_device *device;
    uint32_t claimed;
};

struct hotplug {
    struct hotplug *next;
    int number, events, vendor, product, class;
    libusb_hotplug_callback_fn callback;
    void *user_data;
    bool gone;
};

struct libusb_context {
    struct libusb_context *next;
    int references;
    int wake; /* an eventfd that is readable while something is to be handled */
    pthread_mutex_t events, waiters;
    pthread_cond_t handled;
    _Atomic bool handling;
    struct transfer *ended, **last_ended;
    libusb_device *known[MAX_DEVICES]; /* those that were found last */
    struct hotplug *hotplugs;
    libusb_device *told[MAX_DEVICES]; /* those that hot-plug callbacks know of */
    int last_hotplug;
};

extern pthread_mutex_t big;
extern struct libusb_context *contexts;

/* connection.c */
int start(struct pending *pending, enum operation operation, uint32_t where, uint32_t room,
          const void *first, size_t first_size, const void *second, size_t second_size);
void finish(struct pending *pending);
int call(enum operation operation, uint32_t where, void *into, size_t room, size_t *came);
void cancel(const struct pending *pending);
void expire(const struct pending *pending);
void kick_pump(void);
void limit(struct pending *pending, unsigned int milliseconds);

/* context.c */
libusb_context *context_of(libusb_context *context);
void wake(libusb_context *context);
void time_after(struct timespec *at, const struct timeval *from_now);
bool is_before(const struct timespec *a, const struct timespec *b);

/* devices.c, also public */
void libusb_unref_device(libusb_device *device);
libusb_device *libusb_ref_device(libusb_device *device);

/* descriptors.c */
const uint8_t *next_descriptor(const uint8_t *at, const uint8_t *end);

/* devices.c */
libusb_device *find_device(libusb_context *context, unsigned number, unsigned *count);

/* hotplug.c */
void tell_hotplug(libusb_context *context);
void forget_hotplug(libusb_context *context);

/* transfers.c */
void transfer_replied(struct transfer *transfer);
void run_callback(struct transfer *transfer);
int request(libusb_device_handle *handle, uint8_t type, uint8_t code, uint16_t value,
            uint16_t index, unsigned char *data, uint16_t size);

#endif
