/* Starts the chip's process and exchanges messages with it.

   The two ends of a socket pair have no name in any folder: nobody else can connect, nothing is
   left behind, and when either process dies, however, the other one sees the end of the stream. */
#define _GNU_SOURCE
#include "chip_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h" /* DARWINN_PYTHON, DARWINN_PYTHONPATH, DARWINN_MODULE: written by build.py */

extern char** environ;

enum { DEFAULT_TIMEOUT = 600 };

/* --- bytes ---------------------------------------------------------------------------------- */

static int buffer_reserve(Buffer* buffer, size_t size) {
  if (size <= buffer->room) return 0;
  size_t room = buffer->room ? buffer->room : 4096;
  while (room < size) room *= 2;
  char* data = realloc(buffer->data, room);
  if (!data) {
    buffer->failed = 1;
    return -1;
  }
  buffer->data = data;
  buffer->room = room;
  return 0;
}

void buffer_add(Buffer* buffer, const void* data, size_t size) {
  if (buffer->failed || size > MAXIMUM_BYTES || buffer_reserve(buffer, buffer->size + size)) {
    buffer->failed = 1;
    return;
  }
  if (size) memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
}

void buffer_add_text(Buffer* buffer, const Text* text) {
  uint32_t size = *text ? (uint32_t)strlen(*text) : 0;
  buffer_add(buffer, &size, sizeof size);
  buffer_add(buffer, *text, size);
}

void buffer_add_numbers(Buffer* buffer, const Numbers* numbers) {
  buffer_add(buffer, &(*numbers)->size, sizeof(int));
  buffer_add(buffer, (*numbers)->data, sizeof(int) * (size_t)(*numbers)->size);
}

void buffer_add_octets(Buffer* buffer, const Octets* octets) {
  buffer_add(buffer, &octets->size, sizeof octets->size);
  buffer_add(buffer, octets->data, octets->size);
}

void buffer_add_list(Buffer* buffer, const List* list) {
  buffer->failed |= list->records.failed;
  buffer_add(buffer, &list->count, sizeof list->count);
  buffer_add(buffer, list->records.data, list->records.size);
}

void buffer_free(Buffer* buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

/* --- the stream ------------------------------------------------------------------------------- */

static int fail(ChipProcess* chip, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(chip->error, sizeof chip->error, format, arguments);
  va_end(arguments);
  return -1;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Wait until the socket is ready for `events`. */
static int wait_for(ChipProcess* chip, short events, double deadline) {
  for (;;) {
    double left = deadline - now();
    if (left <= 0) return fail(chip, "the chip did not answer within %d s", chip->timeout);
    struct pollfd waiting = {chip->socket, events, 0};
    int ready = poll(&waiting, 1, left > 1000 ? 1000000 : (int)(1000 * left) + 1);
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return fail(chip, "poll: %s", strerror(errno));
  }
}

static int transfer(ChipProcess* chip, char* data, size_t size, int sends, double deadline) {
  while (size) {
    if (wait_for(chip, sends ? POLLOUT : POLLIN, deadline)) return -1;
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    ssize_t moved = sends ? send(chip->socket, data, size, flags)
                          : recv(chip->socket, data, size, flags);
    if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (moved <= 0) return fail(chip, "the chip's process has ended");
    data += moved;
    size -= (size_t)moved;
  }
  return 0;
}

static int receive(ChipProcess* chip, Buffer* answer, double deadline) {
  struct header header;
  if (transfer(chip, (char*)&header, sizeof header, 0, deadline)) return -1;
  if (header.magic != MAGIC || header.size > MAXIMUM_BYTES || header.kind > KIND_ERROR)
    return fail(chip, "the chip's process sent something else than a message");
  answer->size = 0;
  if (buffer_reserve(answer, header.size + 1)) return fail(chip, "out of memory");
  if (transfer(chip, answer->data, header.size, 0, deadline)) return -1;
  answer->size = header.size;
  answer->data[header.size] = 0;
  return header.kind == KIND_DONE ? 0 : fail(chip, "%s", answer->data);
}

/* After a broken exchange nothing that follows could be told apart. */
static void give_up(ChipProcess* chip) {
  if (chip->socket >= 0) close(chip->socket);
  chip->socket = -1;
}

static int exchange(ChipProcess* chip, uint32_t kind, const Buffer* request, Buffer* answer) {
  if (chip->socket < 0) return fail(chip, "the chip's process has ended");
  if (request->failed || request->size > MAXIMUM_BYTES) return fail(chip, "the request is too large");
  double deadline = now() + chip->timeout;
  struct header header = {.magic = MAGIC, .kind = kind, .size = request->size};
  answer->size = 0;
  if (transfer(chip, (char*)&header, sizeof header, 1, deadline) ||
      transfer(chip, request->data, request->size, 1, deadline) ||
      receive(chip, answer, deadline)) {
    /* An answer that is an error is complete; anything else broke off. */
    if (!answer->size) give_up(chip);
    return -1;
  }
  return 0;
}

int chip_process_ask(ChipProcess* chip, uint32_t kind, const Buffer* request, Buffer* answer) {
  /* First, since in a forked child the lock may be held by a thread that is not there. */
  if (chip->owner != getpid()) return fail(chip, "the delegate was made by another process");
  pthread_mutex_lock(&chip->lock);
  int result = exchange(chip, kind, request, answer);
  pthread_mutex_unlock(&chip->lock);
  return result;
}

/* --- the process ------------------------------------------------------------------------------ */

/* The environment without what steers another Python, and with where the chip's modules are. */
static char** chip_environment(void) {
  size_t count = 0, kept = 0;
  while (environ[count]) count++;
  char** result = calloc(count + 2, sizeof *result);
  if (!result) return NULL;
  for (size_t k = 0; k < count; k++)
    if (strncmp(environ[k], "PYTHON", 6) && strncmp(environ[k], "VIRTUAL_ENV=", 12))
      result[kept++] = environ[k];
  result[kept] = "PYTHONPATH=" DARWINN_PYTHONPATH;
  return result;
}

static int spawn(ChipProcess* chip, int socket, char** arguments) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  /* dup2 onto itself would keep close-on-exec: glibc clears it. Output is for people: stderr. */
  posix_spawn_file_actions_adddup2(&actions, socket, CHIP_SOCKET);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (fcntl(2, F_GETFD) < 0) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  /* Keys that interrupt the application are not for the chip, which ends with it. */
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  char** environment = chip_environment();
  int error = environment ? posix_spawn(&chip->pid, DARWINN_PYTHON, &actions, &attributes,
                                        arguments, environment)
                          : ENOMEM;
  free(environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error ? fail(chip, "%s: %s", DARWINN_PYTHON, strerror(error)) : 0;
}

/* Options `key=value` behind the fixed words, ended by NULL; each is to be freed. */
static char** arguments_of(char** keys, char** values, size_t count) {
  static char* const fixed[] = {DARWINN_PYTHON, "-P", "-m", DARWINN_MODULE};
  size_t words = sizeof fixed / sizeof *fixed;
  char** result = calloc(words + count + 1, sizeof *result);
  if (!result) return NULL;
  memcpy(result, fixed, sizeof fixed);
  for (size_t k = 0; k < count; k++)
    if (asprintf(&result[words + k], "%s=%s", keys[k], values[k]) < 0) result[words + k] = NULL;
  return result;
}

static void free_arguments(char** arguments, size_t count) {
  if (!arguments) return;
  for (size_t k = 0; k < count; k++) free(arguments[4 + k]);
  free(arguments);
}

/* Seconds as they are written in digits; the chip's process says what is wrong with others. */
static int seconds_of(const char* text) {
  size_t digits = strspn(text, "0123456789");
  int seconds = digits < 10 && !text[digits] ? atoi(text) : 0;
  return seconds ? seconds : DEFAULT_TIMEOUT;
}

int chip_process_start(ChipProcess* chip, char** keys, char** values, size_t count) {
  memset(chip, 0, sizeof *chip);
  chip->owner = getpid();
  chip->timeout = DEFAULT_TIMEOUT;
  chip->pid = chip->socket = -1;
  pthread_mutex_init(&chip->lock, NULL);
  for (size_t k = 0; k < count; k++)
    if (!strcmp(keys[k], "timeout")) chip->timeout = seconds_of(values[k]);
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
    return fail(chip, "socketpair: %s", strerror(errno));
  char** arguments = arguments_of(keys, values, count);
  int result = arguments ? spawn(chip, sockets[1], arguments) : fail(chip, "out of memory");
  free_arguments(arguments, count);
  close(sockets[1]);
  chip->socket = sockets[0];
  if (!result) {
    /* The first message says that the chip is ready, or why it cannot be. */
    Buffer greeting = {0};
    result = receive(chip, &greeting, now() + chip->timeout);
    buffer_free(&greeting);
  }
  if (result) chip_process_end(chip);
  return result;
}

void chip_process_end(ChipProcess* chip) {
  if (chip->owner != getpid()) return;
  give_up(chip);
  /* It ends by itself at the end of the stream, unless it computes. */
  for (int tries = 0; chip->pid > 0; tries++) {
    pid_t found = waitpid(chip->pid, NULL, WNOHANG);
    if (found == chip->pid || (found < 0 && errno != EINTR)) chip->pid = -1;
    if (found) continue;
    if (tries == 20) kill(chip->pid, SIGKILL);
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
}
