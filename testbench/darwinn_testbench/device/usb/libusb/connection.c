/* The socket to the chip's process. Who waits for a reply reads it, one thread at a time, so that no
 * other has to be woken. The pump is a thread that does so for what nobody waits for in here:
 * transfers that end with a callback, whose time it watches too, and hot-plug events. */
#define _GNU_SOURCE
#include "stand_in.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOT_CONNECTED, CONNECTED, BROKEN };

static int state = NOT_CONNECTED, channel = -1, kick = -1;
static bool reading; /* a thread is */
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
    if (reply.operation == OPERATION_CHANGED) {
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

/* With `big`: have the pump look at what there is to do. */
void kick_pump(void) {
    uint64_t one = 1;
    if (state != NOT_CONNECTED && write(kick, &one, sizeof one) < 0) return;
}

/* With `big`: the chip's process is gone: whatever waits for it ends. */
static void lose(void) {
    state = BROKEN;
    while (waiting) {
        struct pending *pending = take(waiting->number);
        pending->status = ERROR_NO_DEVICE;
        pending->moved = pending->came = 0;
        conclude(pending);
    }
    wake_all();
    kick_pump();
}

static bool has_deadline(const struct pending *pending) {
    return pending->deadline.tv_sec || pending->deadline.tv_nsec;
}

/* Until then, as poll() counts; 0: it is over. */
static int milliseconds_to(const struct timespec *deadline) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!is_before(&now, deadline)) return 0;
    long left = (deadline->tv_sec - now.tv_sec) * 1000 +
                (deadline->tv_nsec - now.tv_nsec) / 1000000 + 1;
    return left > 3600000 ? 3600000 : (int)left;
}

/* End the transfers whose time is over; milliseconds to the next one, -1 if there is none. */
static int expire_all(void) {
    int next = -1;
    pthread_mutex_lock(&big);
    for (struct pending *at = waiting; at;) {
        if (!at->transfer || at->timed_out || !has_deadline(at)) {
            at = at->next;
            continue;
        }
        int left = milliseconds_to(&at->deadline);
        if (left) {
            if (next < 0 || left < next) next = left;
            at = at->next;
        } else {
            struct pending over = {.number = at->number, .milliseconds = at->milliseconds};
            at->timed_out = true;
            pthread_mutex_unlock(&big);
            expire(&over);
            pthread_mutex_lock(&big);
            at = waiting;
        }
    }
    pthread_mutex_unlock(&big);
    return next;
}

/* With `big`: whether the pump is to read, unless another thread does. */
static bool is_for_pump(void) {
    for (struct pending *at = waiting; at; at = at->next)
        if (at->transfer) return true;
    for (libusb_context *context = contexts; context; context = context->next)
        if (context->hotplugs) return true;
    return false;
}

/* With `big`, and while no other thread reads: the next reply, if it comes in time or before what
 * else is polled is ready. Milliseconds as for poll(). */
static void read_within(struct pollfd *ready, nfds_t count, int milliseconds) {
    reading = true;
    pthread_mutex_unlock(&big);
    int found = poll(ready, count, milliseconds);
    bool is_lost = (found < 0 && errno != EINTR) || (found > 0 && ready->revents && !read_reply());
    pthread_mutex_lock(&big);
    if (is_lost) lose();
    reading = false;
    /* For another one who waits. */
    pthread_cond_broadcast(&replied);
}

static void *pump(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&big);
    while (state == CONNECTED) {
        struct pollfd ready[2] = {{channel, POLLIN, 0}, {kick, POLLIN, 0}};
        pthread_mutex_unlock(&big);
        int milliseconds = expire_all();
        pthread_mutex_lock(&big);
        if (!reading && is_for_pump()) {
            read_within(ready, 2, milliseconds);
        } else {
            pthread_mutex_unlock(&big);
            poll(ready + 1, 1, milliseconds);
            pthread_mutex_lock(&big);
        }
        uint64_t count;
        if (ready[1].revents & POLLIN && read(kick, &count, sizeof count) < 0) continue;
    }
    pthread_mutex_unlock(&big);
    return NULL;
}

/* A child after fork() is a client of its own: the connection stays with its parent. */
static void in_child(void) {
    if (channel >= 0) close(channel);
    if (kick >= 0) close(kick);
    channel = kick = -1;
    state = NOT_CONNECTED;
    reading = false;
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

/* All parts at once, so that the other side is woken by the whole message; they are used up. */
static bool send_all(struct iovec *parts, size_t count) {
    for (;;) {
        for (; count && !parts->iov_len; count--) parts++;
        if (!count) return true;
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t sent = sendmsg(channel, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) return false;
        for (struct iovec *at = parts; sent > 0; at++) {
            size_t part = (size_t)sent < at->iov_len ? (size_t)sent : at->iov_len;
            at->iov_base = (char *)at->iov_base + part;
            at->iov_len -= part;
            sent -= (ssize_t)part;
        }
    }
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
    struct request request = {.operation = operation, .number = last_number, .where = where,
                              .room = room, .size = (uint32_t)(first_size + second_size)};
    if (pending) {
        pending->number = request.number;
        pending->done = pending->timed_out = false;
        pending->next = waiting;
        waiting = pending;
        if (pending->transfer && (has_deadline(pending) || !reading)) kick_pump();
    }
    pthread_mutex_unlock(&big);
    struct iovec parts[] = {{&request, sizeof request},
                            {(void *)first, first_size},
                            {(void *)second, second_size}};
    /* Should it fail, whoever reads sees it too, and ends what waits. */
    if (!send_all(parts, sizeof parts / sizeof *parts)) shutdown(channel, SHUT_RDWR);
    pthread_mutex_unlock(&sending);
    return SUCCESS;
}

/* With `big`: read, or wait while another thread does, for the reply or until the time is over. */
static void await_reply(const struct timespec *deadline) {
    if (!reading) {
        struct pollfd ready = {channel, POLLIN, 0};
        read_within(&ready, 1, deadline ? milliseconds_to(deadline) : -1);
    } else if (deadline) {
        pthread_cond_timedwait(&replied, &big, deadline);
    } else {
        pthread_cond_wait(&replied, &big);
    }
}

/* Wait for the reply, or for the time to be over: then the reply says what had moved until then. */
void finish(struct pending *pending) {
    pthread_mutex_lock(&big);
    while (!pending->done) {
        bool is_limited = has_deadline(pending) && !pending->timed_out;
        await_reply(is_limited ? &pending->deadline : NULL);
        if (is_limited && !pending->done && !milliseconds_to(&pending->deadline)) {
            pending->timed_out = true;
            pthread_mutex_unlock(&big);
            expire(pending);
            pthread_mutex_lock(&big);
        }
    }
    if (!reading && is_for_pump()) kick_pump();
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
    pending->milliseconds = milliseconds;
    if (milliseconds) time_after(&pending->deadline, &time);
}

/* The time is over by this process' clock; that of the chip decides. The reply comes all the same:
 * it says whether it was in time. */
void expire(const struct pending *pending) {
    start(NULL, OPERATION_EXPIRE, pending->number, pending->milliseconds, NULL, 0, NULL, 0);
}

/* The reply comes all the same. */
void cancel(const struct pending *pending) {
    start(NULL, OPERATION_CANCEL, pending->number, 0, NULL, 0, NULL, 0);
}
