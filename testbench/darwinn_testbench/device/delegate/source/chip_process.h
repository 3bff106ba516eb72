/* The process that runs the chip: one for each delegate, reached by a pair of connected sockets. */
#ifndef DARWINN_CHIP_PROCESS_H
#define DARWINN_CHIP_PROCESS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kinds of messages: darwinn_testbench/device/delegate/messages.py. */
enum {
  MESSAGE_DONE = 0,
  MESSAGE_ERROR = 1,
  MESSAGE_OPEN = 2,
  MESSAGE_RUN = 3,
  MESSAGE_CLOSE = 4,
};

enum { ERROR_BYTES = 1024 };

typedef struct {
  pid_t pid;
  pid_t owner; /* the process that started it: a forked child cannot share the socket */
  int socket;
  int timeout; /* seconds for one request */
  pthread_mutex_t lock;
  char error[ERROR_BYTES]; /* why the last call failed */
} ChipProcess;

/* Bytes that grow; `failed` is set when memory ends. */
typedef struct {
  char* data;
  size_t size, room;
  int failed;
} Buffer;

void buffer_add(Buffer*, const void* data, size_t size);
void buffer_add_number(Buffer*, uint32_t value);
void buffer_add_size(Buffer*, uint64_t value);
void buffer_free(Buffer*);

/* Start the process with options `keys[i]=values[i]`; -1 and `error` if that fails. */
int chip_process_start(ChipProcess*, char** keys, char** values, size_t count);

/* One request and its answer, which replaces `answer`'s contents; -1 and `error` if it fails. */
int chip_process_ask(ChipProcess*, uint32_t kind, const Buffer* request, Buffer* answer);

/* End the process and wait for it. */
void chip_process_end(ChipProcess*);

#endif
