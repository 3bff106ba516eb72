/* An external delegate of TensorFlow Lite that gives the Edge TPU's custom operators to the
   simulated chip, and the C interface of the vendor's library to make one.

   Operators that follow each other become one kernel, whose tensors in between only the chip's
   process sees. A kernel's first preparation describes its operators to that process; each run
   sends the inputs and takes the outputs and the next values of variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"

#define EXPORT __attribute__((visibility("default")))

static const char* const OPERATORS[] = {"edgetpu-custom-op", "PosenetDecoderOp"};

typedef struct {
  TfLiteDelegate base;
  ChipProcess chip;
} Delegate;

typedef struct {
  Delegate* delegate;
  Buffer description;
  TfLiteIntArray *inputs, *outputs, *states; /* states: variables among the inputs */
  int opened;
  uint32_t part;
  size_t input_bytes; /* when it was opened */
  Buffer request, answer;
} Kernel;

static int failed(TfLiteContext* context, Delegate* delegate) {
  context->ReportError(context, "darwinn: %s\n", delegate->chip.error);
  return kTfLiteError;
}

static int refused(TfLiteContext* context, const char* reason) {
  context->ReportError(context, "darwinn: %s\n", reason);
  return kTfLiteError;
}

/* --- a kernel: operators that follow each other ----------------------------------------------- */

static TfLiteIntArray* int_array(int size) {
  TfLiteIntArray* result = malloc(sizeof *result + sizeof(int) * (size_t)size);
  if (result) result->size = size;
  return result;
}

static TfLiteIntArray* chosen(const TfLiteContext* context, const TfLiteIntArray* from,
                              int (*wanted)(const TfLiteTensor*)) {
  TfLiteIntArray* result = int_array(from->size);
  if (!result) return NULL;
  result->size = 0;
  for (int k = 0; k < from->size; k++)
    if (from->data[k] >= 0 && wanted(&context->tensors[from->data[k]]))
      result->data[result->size++] = from->data[k];
  return result;
}

static int is_sent(const TfLiteTensor* tensor) { return tensor->allocation_type != kTfLiteMmapRo; }

static int is_variable(const TfLiteTensor* tensor) { return tensor->is_variable; }

static int is_any(const TfLiteTensor* tensor) { return tensor != NULL; }

static void add_tensors(List* to, const TfLiteContext* context, const TfLiteIntArray* indices) {
  static const TfLiteIntArray scalar = {0};
  for (int k = 0; k < indices->size; k++) {
    if (indices->data[k] < 0) continue;
    const TfLiteTensor* tensor = &context->tensors[indices->data[k]];
    int constant = !is_sent(tensor) && tensor->data;
    struct sent_tensor sent = {
        .index = (uint32_t)indices->data[k],
        .type = (uint32_t)tensor->type,
        .scale = tensor->params.scale,
        .zero_point = tensor->params.zero_point,
        .flags = (tensor->is_variable ? TENSOR_FLAG_VARIABLE : 0) |
                 (constant ? TENSOR_FLAG_CONSTANT : 0),
        .shape = tensor->dims ? tensor->dims : &scalar,
        .name = tensor->name,
        .constant = {tensor->data, constant ? tensor->bytes : 0},
    };
    add_sent_tensor(&to->records, &sent);
    to->count++;
  }
}

/* The operators of a kernel, with everything that the chip's process has to know of them. */
static void describe(Kernel* kernel, TfLiteContext* context, const TfLiteIntArray* nodes) {
  struct opening opening = {.inputs = kernel->inputs, .outputs = kernel->outputs};
  for (int k = 0; k < nodes->size; k++) {
    TfLiteNode* node = NULL;
    TfLiteRegistration* operator = NULL;
    if (context->GetNodeAndRegistration(context, nodes->data[k], &node, &operator)) {
      kernel->description.failed = 1;
      break;
    }
    struct sent_operator sent = {
        .name = operator->custom_name,
        .options = {node->custom_initial_data, (uint64_t)node->custom_initial_data_size},
        .inputs = node->inputs,
        .outputs = node->outputs,
    };
    add_sent_operator(&opening.operators.records, &sent);
    opening.operators.count++;
    add_tensors(&opening.tensors, context, node->inputs);
    add_tensors(&opening.tensors, context, node->outputs);
  }
  add_opening(&kernel->description, &opening);
  buffer_free(&opening.operators.records);
  buffer_free(&opening.tensors.records);
}

static void kernel_free(TfLiteContext* context, void* data) {
  (void)context;
  Kernel* kernel = data;
  if (!kernel) return;
  if (kernel->opened) {
    kernel->request.size = 0;
    buffer_add(&kernel->request, &kernel->part, sizeof kernel->part);
    chip_process_ask(&kernel->delegate->chip, KIND_CLOSE, &kernel->request, &kernel->answer);
  }
  buffer_free(&kernel->description);
  buffer_free(&kernel->request);
  buffer_free(&kernel->answer);
  free(kernel->inputs);
  free(kernel->outputs);
  free(kernel->states);
  free(kernel);
}

static void* kernel_init(TfLiteContext* context, const char* buffer, size_t length) {
  (void)length;
  const TfLiteDelegateParams* params = (const TfLiteDelegateParams*)buffer;
  Kernel* kernel = calloc(1, sizeof *kernel);
  if (!kernel) return NULL;
  kernel->delegate = params->delegate->data;
  kernel->inputs = chosen(context, params->input_tensors, is_sent);
  kernel->outputs = chosen(context, params->output_tensors, is_any);
  kernel->states = kernel->inputs ? chosen(context, kernel->inputs, is_variable) : NULL;
  if (!kernel->inputs || !kernel->outputs || !kernel->states) {
    kernel_free(context, kernel);
    return NULL;
  }
  describe(kernel, context, params->nodes_to_replace);
  return kernel;
}

/* Read a number of the answer; 0 behind its end, which `at` tells afterwards. */
static uint32_t next_number(const Buffer* answer, size_t* at) {
  uint32_t value = 0;
  if (*at + 4 <= answer->size) memcpy(&value, answer->data + *at, 4);
  *at += 4;
  return value;
}

/* Give the outputs the shapes that the operators decide. */
static TfLiteStatus resize_outputs(TfLiteContext* context, Kernel* kernel) {
  const Buffer* answer = &kernel->answer;
  size_t at = 0;
  kernel->part = next_number(answer, &at);
  for (int k = 0; k < kernel->outputs->size; k++) {
    uint32_t rank = next_number(answer, &at);
    TfLiteIntArray* shape = rank <= 16 ? int_array((int)rank) : NULL;
    if (!shape) return refused(context, "the chip's process sent no shape");
    for (uint32_t d = 0; d < rank; d++) shape->data[d] = (int)next_number(answer, &at);
    TfLiteTensor* tensor = &context->tensors[kernel->outputs->data[k]];
    if (context->ResizeTensor(context, tensor, shape)) return kTfLiteError; /* it takes the shape */
  }
  return at == answer->size ? kTfLiteOk : refused(context, "the chip's process sent other shapes");
}

static size_t bytes_of(const TfLiteContext* context, const TfLiteIntArray* indices) {
  size_t total = 0;
  for (int k = 0; k < indices->size; k++) total += context->tensors[indices->data[k]].bytes;
  return total;
}

static TfLiteStatus kernel_prepare(TfLiteContext* context, TfLiteNode* node) {
  Kernel* kernel = node->user_data;
  if (!kernel) return refused(context, "out of memory");
  size_t input_bytes = bytes_of(context, kernel->inputs);
  if (kernel->opened)
    return input_bytes == kernel->input_bytes
               ? kTfLiteOk
               : refused(context, "the executable is made for one shape of each input, which "
                                  "cannot be resized");
  ChipProcess* chip = &kernel->delegate->chip;
  if (chip_process_ask(chip, KIND_OPEN, &kernel->description, &kernel->answer))
    return failed(context, kernel->delegate);
  kernel->opened = 1;
  kernel->input_bytes = input_bytes;
  buffer_free(&kernel->description);
  return resize_outputs(context, kernel);
}

static const char* take(TfLiteContext* context, const TfLiteIntArray* indices, const char* from) {
  for (int k = 0; k < indices->size; k++) {
    TfLiteTensor* tensor = &context->tensors[indices->data[k]];
    if (tensor->bytes) memcpy(tensor->data, from, tensor->bytes);
    from += tensor->bytes;
  }
  return from;
}

static TfLiteStatus kernel_invoke(TfLiteContext* context, TfLiteNode* node) {
  Kernel* kernel = node->user_data;
  Buffer *request = &kernel->request, *answer = &kernel->answer;
  request->size = 0;
  request->failed = 0;
  buffer_add(request, &kernel->part, sizeof kernel->part);
  for (int k = 0; k < kernel->inputs->size; k++) {
    const TfLiteTensor* tensor = &context->tensors[kernel->inputs->data[k]];
    buffer_add(request, tensor->data, tensor->bytes);
  }
  if (chip_process_ask(&kernel->delegate->chip, KIND_RUN, request, answer))
    return failed(context, kernel->delegate);
  if (answer->size != bytes_of(context, kernel->outputs) + bytes_of(context, kernel->states))
    return refused(context, "the chip's process sent outputs of another size");
  take(context, kernel->states, take(context, kernel->outputs, answer->data));
  return kTfLiteOk;
}

/* --- the delegate ----------------------------------------------------------------------------- */

static int is_ours(const TfLiteRegistration* operator) {
  if (!operator->custom_name) return 0;
  for (size_t k = 0; k < sizeof OPERATORS / sizeof *OPERATORS; k++)
    if (!strcmp(operator->custom_name, OPERATORS[k])) return 1;
  return 0;
}

static TfLiteStatus delegate_prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  TfLiteIntArray* plan = NULL;
  if (context->GetExecutionPlan(context, &plan)) return kTfLiteError;
  TfLiteIntArray* nodes = int_array(plan->size);
  if (!nodes) return refused(context, "out of memory");
  nodes->size = 0;
  for (int k = 0; k < plan->size; k++) {
    TfLiteNode* node = NULL;
    TfLiteRegistration* operator = NULL;
    if (context->GetNodeAndRegistration(context, plan->data[k], &node, &operator)) break;
    if (is_ours(operator)) nodes->data[nodes->size++] = plan->data[k];
  }
  static const TfLiteRegistration kernel = {
      .init = kernel_init,
      .free = kernel_free,
      .prepare = kernel_prepare,
      .invoke = kernel_invoke,
      .custom_name = "darwinn",
      .version = 1,
  };
  TfLiteStatus status =
      nodes->size ? context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, nodes, delegate)
                  : kTfLiteOk;
  free(nodes);
  return status;
}

EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values, size_t count,
                                                     void (*report_error)(const char*)) {
  Delegate* delegate = calloc(1, sizeof *delegate);
  if (!delegate) return NULL;
  if (chip_process_start(&delegate->chip, keys, values, count)) {
    char reason[ERROR_BYTES + sizeof "darwinn: "];
    snprintf(reason, sizeof reason, "darwinn: %s", delegate->chip.error);
    if (report_error)
      report_error(reason);
    else
      fprintf(stderr, "%s\n", reason);
    free(delegate);
    return NULL;
  }
  delegate->base.data = delegate;
  delegate->base.Prepare = delegate_prepare;
  /* Without it an interpreter prepares the custom operators before it asks the delegate. */
  delegate->base.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  return &delegate->base;
}

EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* base) {
  if (!base) return;
  Delegate* delegate = base->data;
  chip_process_end(&delegate->chip);
  free(delegate);
}

/* --- the C interface of the vendor's library --------------------------------------------------- */

struct edgetpu_device {
  int type; /* 0 PCIe, 1 USB */
  const char* path;
};

struct edgetpu_option {
  const char *name, *value;
};

/* The chips of the application; what the variable says wrong, the chip's process says. */
size_t chip_count(void) {
  const char* given = getenv(CHIPS_VARIABLE);
  int count = given ? atoi(given) : 1;
  return count >= 1 && count <= MAX_CHIPS ? (size_t)count : 1;
}

void device_path(char path[DEVICE_PATH_BYTES], size_t number) {
  snprintf(path, DEVICE_PATH_BYTES, DEVICE_PREFIX "%u", (unsigned)number % MAX_CHIPS);
}

EXPORT struct edgetpu_device* edgetpu_list_devices(size_t* count) {
  static char paths[MAX_CHIPS][DEVICE_PATH_BYTES];
  *count = chip_count();
  struct edgetpu_device* devices = calloc(*count, sizeof *devices);
  if (!devices) *count = 0;
  for (size_t k = 0; k < *count; k++) {
    device_path(paths[k], k);
    devices[k] = (struct edgetpu_device){1, paths[k]};
  }
  return devices;
}

EXPORT void edgetpu_free_devices(struct edgetpu_device* devices) { free(devices); }

EXPORT TfLiteDelegate* edgetpu_create_delegate(int type, const char* name,
                                               const struct edgetpu_option* options,
                                               size_t count) {
  (void)type;
  size_t all = count + (name ? 1 : 0);
  char** words = calloc(2 * all + 1, sizeof *words);
  if (!words) return NULL;
  for (size_t k = 0; k < count; k++) {
    words[k] = (char*)options[k].name;
    words[all + k] = (char*)options[k].value;
  }
  if (name) {
    words[count] = "device";
    words[all + count] = (char*)name;
  }
  TfLiteDelegate* delegate = tflite_plugin_create_delegate(words, words + all, all, NULL);
  free(words);
  return delegate;
}

EXPORT void edgetpu_free_delegate(TfLiteDelegate* delegate) {
  tflite_plugin_destroy_delegate(delegate);
}

EXPORT void edgetpu_verbosity(int verbosity) { (void)verbosity; }

EXPORT const char* edgetpu_version(void) { return "darwinn-testbench, simulated"; }
