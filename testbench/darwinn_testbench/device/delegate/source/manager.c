/* The C++ interface of the vendor's library, for programs that were linked with it: they are loaded,
   list the chips and ask for the version. Those that open a chip by it are refused by name: their
   interpreter is part of them, and its custom operators would have to run in this library.

   An object of an abstract class is a pointer to a table of functions (Itanium C++ ABI). What a
   function returns that is no plain value it writes to where its first argument points, on x86-64;
   on other machines that pointer is passed in another way, so that all of it is refused there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"
#include "tflite_abi.h"

#define EXPORT __attribute__((visibility("default")))

static void say(const char* what) {
  fprintf(stderr,
          "darwinn: this program calls edgetpu::%s of the vendor's C++ library, which the delegate "
          "does not serve; run the program with the vendor's library under `darwinn device --usb` "
          "(darwinn docs device)\n",
          what);
}

/* --- what new and delete are in the vendor's library ------------------------------------------- */

static void* allocated(size_t size) {
  void* memory = malloc(size ? size : 1);
  if (!memory) abort();
  return memory;
}

static void* allocated_at(size_t size, size_t alignment) {
  void* memory = NULL;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, size)) abort();
  return memory;
}

#define ALLOCATES(name)                            \
  void* name(size_t size);                         \
  EXPORT void* name(size_t size) { return allocated(size); }
#define ALLOCATES_AT(name)                         \
  void* name(size_t size, size_t alignment);       \
  EXPORT void* name(size_t size, size_t alignment) { return allocated_at(size, alignment); }
#define FREES(name)                                \
  void name(void* memory);                         \
  EXPORT void name(void* memory) { free(memory); }

ALLOCATES(_Znwm)
ALLOCATES(_Znam)
ALLOCATES(_ZnwmRKSt9nothrow_t)
ALLOCATES(_ZnamRKSt9nothrow_t)
ALLOCATES_AT(_ZnwmSt11align_val_t)
ALLOCATES_AT(_ZnamSt11align_val_t)
ALLOCATES_AT(_ZnwmSt11align_val_tRKSt9nothrow_t)
ALLOCATES_AT(_ZnamSt11align_val_tRKSt9nothrow_t)
FREES(_ZdlPv)
FREES(_ZdaPv)
FREES(_ZdlPvm)
FREES(_ZdaPvm)
FREES(_ZdlPvRKSt9nothrow_t)
FREES(_ZdaPvRKSt9nothrow_t)
FREES(_ZdlPvSt11align_val_t)
FREES(_ZdaPvSt11align_val_t)
FREES(_ZdlPvmSt11align_val_t)
FREES(_ZdaPvmSt11align_val_t)
FREES(_ZdlPvSt11align_val_tRKSt9nothrow_t)
FREES(_ZdaPvSt11align_val_tRKSt9nothrow_t)

/* --- edgetpu::RegisterCustomOp() ---------------------------------------------------------------- */

static TfLiteStatus refuse_operator(TfLiteContext* context, TfLiteNode* node) {
  (void)node;
  context->ReportError(context,
                       "darwinn: the delegate has no kernel for edgetpu::RegisterCustomOp(): load the "
                       "delegate (load_delegate), or run this program with the vendor's library under "
                       "`darwinn device --usb` (darwinn docs device)\n");
  return kTfLiteError;
}

TfLiteRegistration* _ZN7edgetpu16RegisterCustomOpEv(void);
EXPORT TfLiteRegistration* _ZN7edgetpu16RegisterCustomOpEv(void) {
  static TfLiteRegistration refusing = {
      .prepare = refuse_operator, .invoke = refuse_operator, .custom_name = "edgetpu-custom-op",
      .version = 1};
  return &refusing;
}

/* --- edgetpu::EdgeTpuManager ---------------------------------------------------------------------- */

#ifdef __x86_64__

/* std::string and std::vector of libstdc++. */
typedef struct {
  char* text;
  size_t size;
  union {
    char own[16];
    size_t room;
  };
} String;

typedef struct {
  void *begin, *end, *room;
} Vector;

typedef struct {
  int type; /* 0 PCIe, 1 USB */
  String path;
} Record;

static void set_string(String* string, const char* text) {
  string->size = strlen(text);
  if (string->size < sizeof string->own) {
    string->text = string->own;
  } else {
    string->text = allocated(string->size + 1);
    string->room = string->size;
  }
  memcpy(string->text, text, string->size + 1);
}

static void* no_context(void* result, const char* what, size_t size) {
  say(what);
  return memset(result, 0, size); /* a pointer to nothing: programs see that it has failed */
}

/* std::unique_ptr and std::shared_ptr of a context. */
static void* new_context(void* result) {
  return no_context(result, "EdgeTpuManager::NewEdgeTpuContext()", sizeof(void*));
}

static void* open_device(void* result) {
  return no_context(result, "EdgeTpuManager::OpenDevice()", 2 * sizeof(void*));
}

static Vector* enumerate(Vector* result, const void* self) {
  (void)self;
  size_t count = chip_count();
  Record* records = allocated(count * sizeof *records);
  for (size_t k = 0; k < count; k++) {
    char path[DEVICE_PATH_BYTES];
    device_path(path, k);
    records[k].type = 1;
    set_string(&records[k].path, path);
  }
  *result = (Vector){records, records + count, records + count};
  return result;
}

static Vector* opened(Vector* result, const void* self) {
  (void)self;
  return memset(result, 0, sizeof *result);
}

static TfLiteStatus set_verbosity(void* self, int verbosity) {
  (void)self;
  return verbosity >= 0 && verbosity <= 10 ? kTfLiteOk : kTfLiteError;
}

static String* version(String* result, const void* self) {
  (void)self;
  set_string(result, edgetpu_version());
  return result;
}

static void destroy(void* self) { (void)self; }

/* In the order of the class: first the offset to the top of the object, and its type. */
static const void* const functions[] = {
    NULL,        NULL,        new_context, new_context, new_context, new_context,
    enumerate,   open_device, open_device, open_device, open_device, opened,
    set_verbosity, version,   destroy,     destroy};

static struct {
  const void* const* functions;
} manager = {functions + 2};

void* _ZN7edgetpu14EdgeTpuManager12GetSingletonEv(void);
EXPORT void* _ZN7edgetpu14EdgeTpuManager12GetSingletonEv(void) { return &manager; }

#else

void* _ZN7edgetpu14EdgeTpuManager12GetSingletonEv(void);
EXPORT void* _ZN7edgetpu14EdgeTpuManager12GetSingletonEv(void) {
  say("EdgeTpuManager");
  _exit(3);
}

#endif
