/* Contexts, and handling events: callbacks run here, in the threads of the program. */
#define _GNU_SOURCE
#include "stand_in.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LONGEST_WAIT 60

pthread_mutex_t big = PTHREAD_MUTEX_INITIALIZER;
struct libusb_context *contexts;
static libusb_context *standard;

libusb_context *context_of(libusb_context *context) { return context ? context : standard; }

EXPORT int libusb_init(libusb_context **context) {
    pthread_mutex_lock(&big);
    if (!context && standard) {
        standard->references++;
        pthread_mutex_unlock(&big);
        return SUCCESS;
    }
    libusb_context *made = calloc(1, sizeof *made);
    if (!made || (made->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(made);
        pthread_mutex_unlock(&big);
        return ERROR_NO_MEM;
    }
    made->references = 1;
    pthread_mutex_init(&made->events, NULL);
    pthread_mutex_init(&made->waiters, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&made->handled, &monotonic);
    pthread_condattr_destroy(&monotonic);
    made->last_ended = &made->ended;
    made->next = contexts;
    contexts = made;
    /* As in libusb, the first context also serves who gives none. */
    if (context) *context = made;
    if (!standard) standard = made;
    pthread_mutex_unlock(&big);
    return SUCCESS;
}

EXPORT void libusb_exit(libusb_context *context) {
    context = context_of(context);
    if (!context) return;
    pthread_mutex_lock(&big);
    if (--context->references) {
        pthread_mutex_unlock(&big);
        return;
    }
    for (libusb_context **at = &contexts; *at; at = &(*at)->next)
        if (*at == context) {
            *at = context->next;
            break;
        }
    if (standard == context) standard = NULL;
    pthread_mutex_unlock(&big);
    forget_hotplug(context);
    for (int number = 0; number < MAX_DEVICES; number++)
        libusb_unref_device(context->known[number]);
    close(context->wake);
    pthread_mutex_destroy(&context->events);
    pthread_mutex_destroy(&context->waiters);
    pthread_cond_destroy(&context->handled);
    free(context);
}

void time_after(struct timespec *at, const struct timeval *from_now) {
    clock_gettime(CLOCK_MONOTONIC, at);
    at->tv_sec += from_now->tv_sec;
    at->tv_nsec += from_now->tv_usec * 1000L;
    at->tv_sec += at->tv_nsec / 1000000000L;
    at->tv_nsec %= 1000000000L;
}

bool is_before(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Make whoever handles events look. */
void wake(libusb_context *context) {
    uint64_t one = 1;
    if (write(context->wake, &one, sizeof one) < 0) return;
}

/* The next transfer that has ended, or NULL; with `big`. */
static struct transfer *take_ended(libusb_context *context) {
    struct transfer *transfer = context->ended;
    if (transfer) {
        context->ended = transfer->next;
        if (!context->ended) context->last_ended = &context->ended;
        transfer->progress = IDLE;
    }
    return transfer;
}

/* Wait, and run the callbacks of what has happened. */
static int handle(libusb_context *context, const struct timeval *time) {
    long milliseconds = time->tv_sec * 1000L + (time->tv_usec + 999) / 1000;
    struct pollfd ready = {context->wake, POLLIN, 0};
    int count = poll(&ready, 1, milliseconds > 3600000 ? 3600000 : (int)milliseconds);
    if (count < 0) return errno == EINTR ? ERROR_INTERRUPTED : ERROR_IO;
    if (!count) return SUCCESS;
    uint64_t times;
    if (read(context->wake, &times, sizeof times) < 0 && errno != EAGAIN) return ERROR_IO;
    tell_hotplug(context);
    for (;;) {
        pthread_mutex_lock(&big);
        struct transfer *transfer = take_ended(context);
        pthread_mutex_unlock(&big);
        if (!transfer) return SUCCESS;
        run_callback(transfer);
    }
}

EXPORT int libusb_try_lock_events(libusb_context *context) {
    context = context_of(context);
    if (!context || pthread_mutex_trylock(&context->events)) return 1;
    context->handling = true;
    return 0;
}

EXPORT void libusb_lock_events(libusb_context *context) {
    context = context_of(context);
    pthread_mutex_lock(&context->events);
    context->handling = true;
}

EXPORT void libusb_unlock_events(libusb_context *context) {
    context = context_of(context);
    context->handling = false;
    pthread_mutex_unlock(&context->events);
    pthread_mutex_lock(&context->waiters);
    pthread_cond_broadcast(&context->handled);
    pthread_mutex_unlock(&context->waiters);
}

/* Closing a device wakes whoever handles events, and waits for nobody. */
EXPORT int libusb_event_handling_ok(libusb_context *context) {
    (void)context;
    return 1;
}

EXPORT int libusb_event_handler_active(libusb_context *context) {
    return context_of(context)->handling;
}

EXPORT void libusb_interrupt_event_handler(libusb_context *context) { wake(context_of(context)); }

EXPORT void libusb_lock_event_waiters(libusb_context *context) {
    pthread_mutex_lock(&context_of(context)->waiters);
}

EXPORT void libusb_unlock_event_waiters(libusb_context *context) {
    pthread_mutex_unlock(&context_of(context)->waiters);
}

EXPORT int libusb_wait_for_event(libusb_context *context, struct timeval *time) {
    context = context_of(context);
    if (!time) {
        pthread_cond_wait(&context->handled, &context->waiters);
        return 0;
    }
    if (time->tv_sec < 0 || time->tv_usec < 0 || time->tv_usec >= 1000000)
        return ERROR_INVALID_PARAM;
    struct timespec until;
    time_after(&until, time);
    return pthread_cond_timedwait(&context->handled, &context->waiters, &until) == ETIMEDOUT;
}

EXPORT int libusb_handle_events_timeout_completed(libusb_context *context, struct timeval *time,
                                                  int *completed) {
    context = context_of(context);
    if (!context || !time || time->tv_sec < 0 || time->tv_usec < 0 || time->tv_usec >= 1000000)
        return ERROR_INVALID_PARAM;
    for (;;) {
        if (!libusb_try_lock_events(context)) {
            int status = completed && *completed ? SUCCESS : handle(context, time);
            libusb_unlock_events(context);
            return status;
        }
        libusb_lock_event_waiters(context);
        if ((completed && *completed) || libusb_event_handler_active(context)) break;
        libusb_unlock_event_waiters(context);
    }
    int status = SUCCESS;
    if (!(completed && *completed)) status = libusb_wait_for_event(context, time);
    libusb_unlock_event_waiters(context);
    return status < 0 ? status : SUCCESS;
}

EXPORT int libusb_handle_events_timeout(libusb_context *context, struct timeval *time) {
    return libusb_handle_events_timeout_completed(context, time, NULL);
}

EXPORT int libusb_handle_events_completed(libusb_context *context, int *completed) {
    struct timeval time = {LONGEST_WAIT, 0};
    return libusb_handle_events_timeout_completed(context, &time, completed);
}

EXPORT int libusb_handle_events(libusb_context *context) {
    return libusb_handle_events_completed(context, NULL);
}

EXPORT int libusb_handle_events_locked(libusb_context *context, struct timeval *time) {
    context = context_of(context);
    if (!time || time->tv_sec < 0 || time->tv_usec < 0 || time->tv_usec >= 1000000)
        return ERROR_INVALID_PARAM;
    return handle(context, time);
}

/* The pump watches the clock, so that programs need not. */
EXPORT int libusb_pollfds_handle_timeouts(libusb_context *context) {
    (void)context;
    return 1;
}

EXPORT int libusb_get_next_timeout(libusb_context *context, struct timeval *time) {
    (void)context, (void)time;
    return 0;
}

EXPORT const struct libusb_pollfd **libusb_get_pollfds(libusb_context *context) {
    context = context_of(context);
    struct {
        const struct libusb_pollfd *list[2];
        struct libusb_pollfd only;
    } *made = calloc(1, sizeof *made);
    if (!made || !context) return NULL;
    made->only = (struct libusb_pollfd){context->wake, POLLIN};
    made->list[0] = &made->only;
    return made->list;
}

EXPORT void libusb_free_pollfds(const struct libusb_pollfd **list) { free((void *)list); }

/* A context has one descriptor, from its beginning to its end: there is nothing to notify of. */
EXPORT void libusb_set_pollfd_notifiers(libusb_context *context, libusb_pollfd_added_cb added,
                                        libusb_pollfd_removed_cb removed, void *user_data) {
    (void)context, (void)added, (void)removed, (void)user_data;
}
