/* What a delegate needs of the C interface of TensorFlow Lite, in its binary layout.

   The packages of LiteRT and tflite_runtime come without headers. The layouts below hold for
   tflite_runtime 2.14 and LiteRT 2.3, which are tried: what is used here is the beginning of
   structures that have grown at their ends. TfLiteRegistration is passed by value, so it is declared
   with room for what a later version may read. */
#ifndef DARWINN_TFLITE_ABI_H
#define DARWINN_TFLITE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { kTfLiteOk = 0, kTfLiteError = 1, kTfLiteDelegateError = 2 } TfLiteStatus;

enum { kTfLiteMmapRo = 1 };                         /* TfLiteTensor.allocation_type: a constant */
enum { kTfLiteDelegateFlagsAllowDynamicTensors = 1 }; /* TfLiteDelegate.flags */
enum { kTfLiteOptionalTensor = -1 };

typedef struct {
  int size;
  int data[];
} TfLiteIntArray;

struct TfLiteDelegate;

typedef struct {
  int type;
  void* data;
  TfLiteIntArray* dims;
  struct {
    float scale;
    int32_t zero_point;
  } params;
  int allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  struct TfLiteDelegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  struct {
    int type;
    void* params;
  } quantization;
  void* sparsity;
  const TfLiteIntArray* dims_signature;
} TfLiteTensor;

typedef struct {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  /* more follows */
} TfLiteNode;

struct TfLiteContext;

typedef struct {
  void* (*init)(struct TfLiteContext*, const char* buffer, size_t length);
  void (*free)(struct TfLiteContext*, void* data);
  TfLiteStatus (*prepare)(struct TfLiteContext*, TfLiteNode*);
  TfLiteStatus (*invoke)(struct TfLiteContext*, TfLiteNode*);
  const char* (*profiling_string)(const struct TfLiteContext*, const TfLiteNode*);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  void* registration_external;
  void* async_kernel;
  uint64_t inplace_operator;
  void* unused[4]; /* room for what later versions read */
} TfLiteRegistration;

typedef struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(struct TfLiteContext*, TfLiteIntArray** plan);
  TfLiteTensor* tensors;
  void* impl;
  TfLiteStatus (*ResizeTensor)(struct TfLiteContext*, TfLiteTensor*, TfLiteIntArray* size);
  void (*ReportError)(struct TfLiteContext*, const char* format, ...);
  TfLiteStatus (*AddTensors)(struct TfLiteContext*, int count, int* first);
  TfLiteStatus (*GetNodeAndRegistration)(struct TfLiteContext*, int index, TfLiteNode**,
                                         TfLiteRegistration**);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(struct TfLiteContext*, TfLiteRegistration,
                                                        const TfLiteIntArray* nodes,
                                                        struct TfLiteDelegate*);
  /* more follows */
} TfLiteContext;

typedef struct TfLiteDelegate {
  void* data;
  TfLiteStatus (*Prepare)(TfLiteContext*, struct TfLiteDelegate*);
  void* CopyFromBufferHandle;
  void* CopyToBufferHandle;
  void* FreeBufferHandle;
  int64_t flags;
  void* opaque_delegate_builder;
} TfLiteDelegate;

typedef struct {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteDelegateParams;

#endif
