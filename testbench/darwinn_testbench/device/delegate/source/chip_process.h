/* The process that runs the chip: one for each delegate, reached by a pair of connected sockets. */
#ifndef DARWINN_CHIP_PROCESS_H
#define DARWINN_CHIP_PROCESS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tflite_abi.h"

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
void buffer_free(Buffer*);

/* Fields of messages that are not numbers. */
typedef const char* Text;
typedef const TfLiteIntArray* Numbers;
typedef struct {
  const void* data;
  uint64_t size;
} Octets;
typedef struct {
  Buffer records;
  uint32_t count;
} List;

void buffer_add_text(Buffer*, const Text*);
void buffer_add_numbers(Buffer*, const Numbers*);
void buffer_add_octets(Buffer*, const Octets*);
void buffer_add_list(Buffer*, const List*);

#include "messages.h" /* written from messages.py */

/* Start the process with options `keys[i]=values[i]`; -1 and `error` if that fails. */
int chip_process_start(ChipProcess*, char** keys, char** values, size_t count);

/* One request and its answer, which replaces `answer`'s contents; -1 and `error` if it fails. */
int chip_process_ask(ChipProcess*, uint32_t kind, const Buffer* request, Buffer* answer);

/* End the process and wait for it. */
void chip_process_end(ChipProcess*);

#endif
