/* The connections to devices: requests of the program, and the chip's accesses to its memory. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ABSENT UINT64_MAX /* what reads of a device give that is gone */

static struct device devices[MAX_DEVICES];
static unsigned there;
static char folder[PATH_MAX];

void complain(const struct device *device, const char *text)
{
    char line[256];
    int size = snprintf(line, sizeof line, "darwinn: /dev/" DEVICE_NAME "%u: %s\n", device->number,
                        text);
    if (write(STDERR_FILENO, line, (size_t)size) < 0)
        return;
}

static void hang_up(struct device *device)
{
    int *each[] = {&device->control, &device->channel, &device->memory};
    for (int i = 0; i < 3; i++) {
        if (*each[i] >= 0)
            real_close(*each[i]);
        *each[i] = -1;
    }
}

static void make_unused(struct device *device)
{
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->event_lock, NULL);
    device->users = 0;
    for (int i = 0; i < VECTORS; i++)
        device->events[i] = -1;
}

/* A child has neither the threads that serve the chips nor the memory that they were given. */
static void in_child(void)
{
    for (unsigned number = 0; number < there; number++) {
        hang_up(&devices[number]);
        make_unused(&devices[number]);
    }
}

static bool is_there(const char *path)
{
    return !syscall(SYS_access, path, F_OK);
}

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv(FOLDER_VARIABLE);
    if (!given || snprintf(folder, sizeof folder, "%s/" CLASS_NAME, given) >= (int)sizeof folder)
        return;
    for (; there < MAX_DEVICES; there++) {
        struct device *device = &devices[there];
        char *path = device->place.sun_path;
        int size = snprintf(path, sizeof device->place.sun_path, "%s/" SOCKET_NAME "%u", given,
                            there);
        if (size >= (int)sizeof device->place.sun_path || !is_there(path))
            break;
        device->number = there;
        device->place.sun_family = AF_UNIX;
        device->control = device->channel = device->memory = device->coherent.descriptor = -1;
        make_unused(device);
    }
    pthread_atfork(NULL, NULL, in_child);
}

bool devices_are_there(void)
{
    return there != 0;
}

const char *class_folder(void)
{
    return folder;
}

struct device *device_named(const char *path)
{
    for (unsigned number = 0; path && number < there; number++) {
        char name[32];
        snprintf(name, sizeof name, "/dev/" DEVICE_NAME "%u", number);
        if (!strcmp(path, name))
            return &devices[number];
    }
    return NULL;
}

static bool take(int socket, void *data, size_t size)
{
    char *at = data;
    while (size) {
        ssize_t count = recv(socket, at, size, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

static bool give(int socket, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        ssize_t count = send(socket, at, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

/* A message, and the descriptor that may come with its first byte. */
static bool take_message(int socket, struct message *message, int *received)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } beside;
    struct iovec part = {message, sizeof *message};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &beside,
                          .msg_controllen = sizeof beside};
    ssize_t count;
    do
        count = recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    if (count <= 0)
        return false;
    struct cmsghdr *found = CMSG_FIRSTHDR(&head);
    if (found && found->cmsg_level == SOL_SOCKET && found->cmsg_type == SCM_RIGHTS) {
        int descriptor;
        memcpy(&descriptor, CMSG_DATA(found), sizeof descriptor);
        if (received)
            *received = descriptor;
        else
            real_close(descriptor);
    }
    return take(socket, (char *)message + count, sizeof *message - (size_t)count);
}

/* With the lock held. */
static int ask(struct device *device, struct message *message, int *received)
{
    int control = device->control;
    if (control < 0)
        return ENODEV;
    if (give(control, message, sizeof *message) && take_message(control, message, received))
        return (int)message->what;
    complain(device, "the device is gone");
    real_close(control);
    device->control = -1;
    return ENODEV;
}

int device_ask(struct device *device, struct message *message, int *received)
{
    pthread_mutex_lock(&device->lock);
    int error = ask(device, message, received);
    pthread_mutex_unlock(&device->lock);
    return error;
}

uint64_t register_read(struct device *device, uint32_t offset)
{
    struct message message = {.what = OPERATION_READ, .words = {offset}};
    return device_ask(device, &message, NULL) ? ABSENT : message.words[0];
}

void register_write(struct device *device, uint32_t offset, uint64_t value)
{
    struct message message = {.what = OPERATION_WRITE, .words = {offset, value}};
    device_ask(device, &message, NULL);
}

static void interrupt(struct device *device, uint64_t vector)
{
    uint64_t one = 1;
    pthread_mutex_lock(&device->event_lock);
    if (vector < VECTORS && device->events[vector] >= 0 &&
        write(device->events[vector], &one, sizeof one) < 0)
        complain(device, "an eventfd takes no events");
    pthread_mutex_unlock(&device->event_lock);
}

/* The kernel copies, so that memory which the program has freed is an error, and no crash. */
static uint32_t move(struct device *device, const struct memory_request *request)
{
    off_t at = (off_t)request->address;
    ssize_t size = request->access == ACCESS_READ
                       ? pread(device->memory, device->moved, request->size, at)
                       : pwrite(device->memory, device->moved, request->size, at);
    return size == (ssize_t)request->size ? 0 : EFAULT;
}

static void *serve(void *argument)
{
    struct device *device = argument;
    int channel = device->channel;
    char *data = device->moved;
    struct memory_request request;
    while (take(channel, &request, sizeof request)) {
        if (request.access == ACCESS_INTERRUPT) {
            interrupt(device, request.address);
            continue;
        }
        bool is_read = request.access == ACCESS_READ;
        if (request.size > sizeof device->moved || (!is_read && !take(channel, data, request.size)))
            break;
        struct memory_answer answer = {.error = move(device, &request), .size = request.size};
        if (!give(channel, &answer, sizeof answer))
            break;
        if (is_read && !answer.error && !give(channel, data, request.size))
            break;
    }
    return NULL;
}

/* With the lock held: a connection, and a thread that serves the chip and takes no signals. */
static int connect_device(struct device *device)
{
    struct message message = {.what = OPERATION_OPEN};
    sigset_t all, before;
    device->control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    device->memory = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (device->control < 0 || device->memory < 0)
        return errno;
    if (connect(device->control, (struct sockaddr *)&device->place, sizeof device->place))
        return ENODEV;
    int error = ask(device, &message, &device->channel);
    if (error)
        return error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&device->server, NULL, serve, device);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int device_open(struct device *device)
{
    struct message message = {.what = OPERATION_OPEN};
    pthread_mutex_lock(&device->lock);
    int error = device->users ? ask(device, &message, NULL) : connect_device(device);
    if (!error)
        device->users++;
    else if (!device->users)
        hang_up(device);
    pthread_mutex_unlock(&device->lock);
    return error;
}

void device_close(struct device *device)
{
    struct message message = {.what = OPERATION_CLOSE};
    pthread_mutex_lock(&device->lock);
    if (device->users) {
        ask(device, &message, NULL);
        device->users--;
        if (!device->users) {
            shutdown(device->channel, SHUT_RDWR);
            pthread_join(device->server, NULL);
            hang_up(device);
            for (uint64_t vector = 0; vector < VECTORS; vector++)
                clear_event(device, vector);
            drop_coherent(device);
        }
    }
    pthread_mutex_unlock(&device->lock);
}

/* The device keeps an eventfd open until it is cleared, whatever the program does with its own. */
int set_event(struct device *device, uint64_t vector, int descriptor)
{
    int error = clear_event(device, vector);
    if (error)
        return error;
    int kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (kept < 0)
        return errno;
    pthread_mutex_lock(&device->event_lock);
    device->events[vector] = kept;
    pthread_mutex_unlock(&device->event_lock);
    return 0;
}

int clear_event(struct device *device, uint64_t vector)
{
    if (vector >= VECTORS)
        return EINVAL;
    pthread_mutex_lock(&device->event_lock);
    int kept = device->events[vector];
    device->events[vector] = -1;
    pthread_mutex_unlock(&device->event_lock);
    if (kept >= 0)
        real_close(kept);
    return 0;
}
