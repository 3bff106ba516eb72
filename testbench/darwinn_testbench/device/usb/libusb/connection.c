/* The socket to the chip's process, and the pump: the thread that reads it and watches the clock. */
#define _GNU_SOURCE
#include "stand_in.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_VARIABLE "DARWINN_USB_SOCKET"

enum { NOT_CONNECTED, CONNECTED, BROKEN };

static int state = NOT_CONNECTED, channel = -1, kick = -1;
static uint32_t last_number;
static struct pending *waiting;
static pthread_cond_t replied;
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

/* Whoever waits for a reply goes by the clock that nobody sets. */
__attribute__((constructor)) static void prepare(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&replied, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static bool receive(void *into, size_t size) {
    for (char *at = into; size;) {
        ssize_t count = recv(channel, at, size, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

static bool discard(size_t size) {
    char away[4096];
    for (; size; size -= size < sizeof away ? size : sizeof away)
        if (!receive(away, size < sizeof away ? size : sizeof away)) return false;
    return true;
}

static struct pending *take(uint32_t number) {
    for (struct pending **at = &waiting; *at; at = &(*at)->next)
        if ((*at)->number == number) {
            struct pending *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

/* With `big`: the reply to `pending` has come. */
static void conclude(struct pending *pending) {
    if (pending->transfer) {
        transfer_replied(pending->transfer);
    } else {
        pending->done = true;
        pthread_cond_broadcast(&replied);
    }
}

/* With `big`: whoever handles events is to look which device is there. */
static void wake_all(void) {
    for (libusb_context *context = contexts; context; context = context->next) wake(context);
}

static bool read_reply(void) {
    struct reply reply;
    if (!receive(&reply, sizeof reply)) return false;
    pthread_mutex_lock(&big);
    if (reply.operation == OP_CHANGED) {
        wake_all();
        pthread_mutex_unlock(&big);
        return true;
    }
    struct pending *pending = take(reply.number);
    pthread_mutex_unlock(&big);
    if (!pending) return discard(reply.size);
    /* Nobody else knows of it now, so that its buffer is filled without the lock. */
    size_t fits = reply.size < pending->room ? reply.size : pending->room;
    if (!receive(pending->into, fits) || !discard(reply.size - fits)) {
        reply.status = ERROR_NO_DEVICE;
        fits = 0;
    }
    pthread_mutex_lock(&big);
    pending->status = reply.status;
    pending->moved = reply.moved;
    pending->came = fits;
    conclude(pending);
    pthread_mutex_unlock(&big);
    return true;
}

/* The chip's process is gone: whatever waits for it ends. */
static void lose(void) {
    pthread_mutex_lock(&big);
    state = BROKEN;
    while (waiting) {
        struct pending *pending = take(waiting->number);
        pending->status = ERROR_NO_DEVICE;
        pending->moved = pending->came = 0;
        conclude(pending);
    }
    wake_all();
    pthread_mutex_unlock(&big);
}

static bool has_deadline(const struct pending *pending) {
    return pending->deadline.tv_sec || pending->deadline.tv_nsec;
}

/* Cancel the transfers whose time is over; milliseconds to the next one, -1 if there is none. */
static int expire(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long next = -1;
    pthread_mutex_lock(&big);
    for (struct pending *at = waiting; at;) {
        if (!at->transfer || at->timed_out || !has_deadline(at)) {
            at = at->next;
        } else if (!is_before(&now, &at->deadline)) {
            struct pending over = {.number = at->number};
            at->timed_out = true;
            pthread_mutex_unlock(&big);
            cancel(&over);
            pthread_mutex_lock(&big);
            at = waiting;
        } else {
            long left = (at->deadline.tv_sec - now.tv_sec) * 1000 +
                        (at->deadline.tv_nsec - now.tv_nsec) / 1000000 + 1;
            if (next < 0 || left < next) next = left;
            at = at->next;
        }
    }
    pthread_mutex_unlock(&big);
    return next > 3600000 ? 3600000 : (int)next;
}

static void *pump(void *nothing) {
    (void)nothing;
    for (;;) {
        struct pollfd ready[2] = {{channel, POLLIN, 0}, {kick, POLLIN, 0}};
        if (poll(ready, 2, expire()) < 0 && errno != EINTR) break;
        uint64_t count;
        if (ready[1].revents & POLLIN && read(kick, &count, sizeof count) < 0) continue;
        if (ready[0].revents && !read_reply()) break;
    }
    lose();
    return NULL;
}


/* A child after fork() is a client of its own: the connection stays with its parent. */
static void in_child(void) {
    if (channel >= 0) close(channel);
    if (kick >= 0) close(kick);
    channel = kick = -1;
    state = NOT_CONNECTED;
    waiting = NULL;
    pthread_mutex_init(&big, NULL);
    pthread_mutex_init(&sending, NULL);
    prepare();
}

static int open_channel(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv(SOCKET_VARIABLE);
    if (!path || strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    if (connect(made, (struct sockaddr *)&address, sizeof address) < 0) {
        close(made);
        return -1;
    }
    return made;
}

/* Signals are for the threads of the program. */
static bool begin_pump(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    bool began = !pthread_create(&thread, NULL, pump, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (began) pthread_detach(thread);
    return began;
}

/* With `big`. */
static bool connected(void) {
    static bool prepared;
    if (state == CONNECTED) return true;
    if (state == BROKEN || (channel = open_channel()) < 0) return false;
    kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (kick < 0 || !begin_pump()) {
        close(channel);
        channel = -1;
        return false;
    }
    if (!prepared) pthread_atfork(NULL, NULL, in_child);
    prepared = true;
    state = CONNECTED;
    return true;
}

static bool send_all(const void *data, size_t size) {
    for (const char *at = data; size;) {
        ssize_t count = send(channel, at, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

/* Send a message, in two parts; its reply goes to `pending`, if it is not NULL. */
int start(struct pending *pending, enum operation operation, uint32_t where, uint32_t room,
          const void *first, size_t first_size, const void *second, size_t second_size) {
    pthread_mutex_lock(&sending);
    pthread_mutex_lock(&big);
    if (!connected()) {
        pthread_mutex_unlock(&big);
        pthread_mutex_unlock(&sending);
        return ERROR_NO_DEVICE;
    }
    if (!++last_number) ++last_number;
    struct request request = {operation, last_number, where, room,
                              (uint32_t)(first_size + second_size)};
    if (pending) {
        pending->number = request.number;
        pending->done = pending->timed_out = false;
        pending->next = waiting;
        waiting = pending;
        /* The pump is to look at the clock. */
        uint64_t one = 1;
        if (pending->transfer && has_deadline(pending) && write(kick, &one, sizeof one) < 0)
            pending->deadline = (struct timespec){0, 0};
    }
    pthread_mutex_unlock(&big);
    /* Should it fail, the pump sees it too, and ends what waits. */
    if (!send_all(&request, sizeof request) || !send_all(first, first_size) ||
        !send_all(second, second_size))
        shutdown(channel, SHUT_RDWR);
    pthread_mutex_unlock(&sending);
    return SUCCESS;
}

/* Wait for the reply, or for the time to be over: then the reply says what had moved until then. */
void finish(struct pending *pending) {
    pthread_mutex_lock(&big);
    while (!pending->done) {
        if (!has_deadline(pending) || pending->timed_out) {
            pthread_cond_wait(&replied, &big);
        } else if (pthread_cond_timedwait(&replied, &big, &pending->deadline) == ETIMEDOUT &&
                   !pending->done) {
            pending->timed_out = true;
            pthread_mutex_unlock(&big);
            cancel(pending);
            pthread_mutex_lock(&big);
        }
    }
    pthread_mutex_unlock(&big);
}

int call(enum operation operation, uint32_t where, void *into, size_t room, size_t *came) {
    struct pending pending = {.into = into, .room = room};
    int status = start(&pending, operation, where, (uint32_t)room, NULL, 0, NULL, 0);
    if (status) return status;
    finish(&pending);
    if (came) *came = pending.came;
    return pending.status;
}

void limit(struct pending *pending, unsigned int milliseconds) {
    struct timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};
    pending->deadline = (struct timespec){0, 0};
    if (milliseconds) time_after(&pending->deadline, &time);
}

/* The reply comes all the same: it says whether it was in time. */
void cancel(const struct pending *pending) {
    start(NULL, OP_CANCEL, pending->number, 0, NULL, 0, NULL, 0);
}
