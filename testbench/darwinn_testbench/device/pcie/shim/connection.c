/* The connection to the device: requests of the program, and the chip's accesses to its memory. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define VECTORS 13
#define ABSENT UINT64_MAX /* what reads of a device give that is gone */

static struct sockaddr_un place = {.sun_family = AF_UNIX};
static char folder[PATH_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int control = -1, channel = -1, memory = -1;
static int users;
static pthread_t server;

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static int events[VECTORS];

void complain(const char *text)
{
    char line[256];
    int size = snprintf(line, sizeof line, "darwinn: /dev/apex_0: %s\n", text);
    if (write(STDERR_FILENO, line, (size_t)size) < 0)
        return;
}

static void hang_up(void)
{
    for (int *each[] = {&control, &channel, &memory}, i = 0; i < 3; i++) {
        if (*each[i] >= 0)
            real_close(*each[i]);
        *each[i] = -1;
    }
}

/* A child has neither the thread that serves the chip nor the memory that it was given. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&event_lock, NULL);
    hang_up();
    users = 0;
    for (int i = 0; i < VECTORS; i++)
        events[i] = -1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv(FOLDER_VARIABLE);
    for (int i = 0; i < VECTORS; i++)
        events[i] = -1;
    if (!given)
        return;
    int socket_size = snprintf(place.sun_path, sizeof place.sun_path, "%s/socket", given);
    int folder_size = snprintf(folder, sizeof folder, "%s/class", given);
    if (socket_size >= (int)sizeof place.sun_path || folder_size >= (int)sizeof folder)
        place.sun_path[0] = 0;
    pthread_atfork(NULL, NULL, in_child);
}

bool device_is_there(void)
{
    return place.sun_path[0] != 0;
}

const char *class_folder(void)
{
    return folder;
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
static int ask(struct message *message, int *received)
{
    if (control < 0)
        return ENODEV;
    if (give(control, message, sizeof *message) && take_message(control, message, received))
        return (int)message->what;
    complain("the device is gone");
    real_close(control);
    control = -1;
    return ENODEV;
}

int device_ask(struct message *message, int *received)
{
    pthread_mutex_lock(&lock);
    int error = ask(message, received);
    pthread_mutex_unlock(&lock);
    return error;
}

uint64_t register_read(uint32_t offset)
{
    struct message message = {.what = OPERATION_READ, .words = {offset}};
    return device_ask(&message, NULL) ? ABSENT : message.words[0];
}

void register_write(uint32_t offset, uint64_t value)
{
    struct message message = {.what = OPERATION_WRITE, .words = {offset, value}};
    device_ask(&message, NULL);
}

static void interrupt(uint64_t vector)
{
    uint64_t one = 1;
    pthread_mutex_lock(&event_lock);
    if (vector < VECTORS && events[vector] >= 0 && write(events[vector], &one, sizeof one) < 0)
        complain("an eventfd takes no events");
    pthread_mutex_unlock(&event_lock);
}

/* The kernel copies, so that memory which the program has freed is an error, and no crash. */
static uint32_t move(const struct memory_request *request, char *data)
{
    off_t at = (off_t)request->address;
    ssize_t count = request->access == ACCESS_READ ? pread(memory, data, request->size, at)
                                                   : pwrite(memory, data, request->size, at);
    return count == (ssize_t)request->size ? 0 : EFAULT;
}

static void *serve(void *argument)
{
    static char data[PIECE_BYTES];
    struct memory_request request;
    (void)argument;
    while (take(channel, &request, sizeof request)) {
        if (request.access == ACCESS_INTERRUPT) {
            interrupt(request.address);
            continue;
        }
        bool is_read = request.access == ACCESS_READ;
        if (request.size > sizeof data || (!is_read && !take(channel, data, request.size)))
            break;
        struct memory_answer answer = {.error = move(&request, data), .size = request.size};
        if (!give(channel, &answer, sizeof answer))
            break;
        if (is_read && !answer.error && !give(channel, data, request.size))
            break;
    }
    return NULL;
}

/* With the lock held: a connection, and a thread that serves the chip and takes no signals. */
static int connect_device(void)
{
    struct message message = {.what = OPERATION_OPEN};
    sigset_t all, before;
    control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memory = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (control < 0 || memory < 0)
        return errno;
    if (connect(control, (struct sockaddr *)&place, sizeof place))
        return ENODEV;
    int error = ask(&message, &channel);
    if (error)
        return error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&server, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int device_open(void)
{
    struct message message = {.what = OPERATION_OPEN};
    pthread_mutex_lock(&lock);
    int error = users ? ask(&message, NULL) : connect_device();
    if (!error)
        users++;
    else if (!users)
        hang_up();
    pthread_mutex_unlock(&lock);
    return error;
}

void device_close(void)
{
    struct message message = {.what = OPERATION_CLOSE};
    pthread_mutex_lock(&lock);
    if (users) {
        ask(&message, NULL);
        users--;
        if (!users) {
            shutdown(channel, SHUT_RDWR);
            pthread_join(server, NULL);
            hang_up();
            for (uint64_t vector = 0; vector < VECTORS; vector++)
                clear_event(vector);
            drop_coherent();
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The device keeps an eventfd open until it is cleared, whatever the program does with its own. */
int set_event(uint64_t vector, int descriptor)
{
    int error = clear_event(vector);
    if (error)
        return error;
    int kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (kept < 0)
        return errno;
    pthread_mutex_lock(&event_lock);
    events[vector] = kept;
    pthread_mutex_unlock(&event_lock);
    return 0;
}

int clear_event(uint64_t vector)
{
    if (vector >= VECTORS)
        return EINVAL;
    pthread_mutex_lock(&event_lock);
    int kept = events[vector];
    events[vector] = -1;
    pthread_mutex_unlock(&event_lock);
    if (kept >= 0)
        real_close(kept);
    return 0;
}
