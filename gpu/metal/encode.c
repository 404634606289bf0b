//go:build darwin && cgo

#include "encode.h"

#include <errno.h>
#include <objc/message.h>
#include <objc/runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

// Types and functions of Foundation and Metal, whose headers are Objective-C.
typedef long NSInteger;
typedef unsigned long NSUInteger;
typedef struct {
  NSUInteger width, height, depth;
} MTLSize;
enum {
  MTLGPUFamilyMetal3 = 5001,
  MTLDispatchTypeConcurrent = 1,
  MTLBarrierScopeBuffers = 1,
  MTLCommandBufferStatusError = 5,
};
extern id MTLCreateSystemDefaultDevice(void);
extern id MTLCopyAllDevices(void);

// Of the runtime, as clang's documents on automatic reference counting and on the layout of blocks
// have them.
extern void *objc_autoreleasePoolPush(void);
extern void objc_autoreleasePoolPop(void *pool);
extern void *_NSConcreteStackBlock[];

#include "messages.h"

// The type of a function and a selector for each message: send calls the method with its very
// types. The call goes by a variable, for gcc refuses to call a function that it knows with other
// types.
static void (*message)(void);
#define MESSAGE(protocol, name, selector, result, types) \
  typedef result(*name##_method) types;                  \
  static SEL name##_selector;
METAL_MESSAGES(MESSAGE)
#undef MESSAGE
#define send(name, receiver, ...) (((name##_method)message)((receiver), name##_selector, ##__VA_ARGS__))

static void register_selectors(void) {
  message = objc_msgSend;
#define MESSAGE(protocol, name, selector, result, types) name##_selector = sel_registerName(selector);
  METAL_MESSAGES(MESSAGE)
#undef MESSAGE
}

// metal_device returns the system's GPU, retained, or NULL. It is to be called before the others.
// MTLCreateSystemDefaultDevice has none for processes without a window server, such as those begun
// over ssh.
void *metal_device(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_selectors);
  void *pool = objc_autoreleasePoolPush();
  id device = MTLCreateSystemDefaultDevice();
  if (device == NULL) {
    id all = MTLCopyAllDevices();
    if (all != NULL) {
      device = send(first_object, all);
      if (device != NULL) send(retain, device);
      send(release, all);
    }
  }
  objc_autoreleasePoolPop(pool);
  return device;
}

// metal_describe fills facts.
void metal_describe(void *device, metal_facts *facts) {
  facts->metal3 = send(supports_family, device, MTLGPUFamilyMetal3) ? 1 : 0;
  facts->residency_sets = objc_getClass("MTLResidencySetDescriptor") != NULL;
  facts->max_buffer = send(max_buffer_length, device);
  facts->working_set = send(working_set_size, device);
}

// metal_wrap makes a buffer of memory without a copy; memory and length are multiples of a page. It
// returns the buffer, retained, or NULL, and the address that kernels have it at.
void *metal_wrap(void *device, uintptr_t memory, uint64_t length, uint64_t options, uint64_t *address) {
  id buffer = send(wrap_bytes, device, (void *)memory, (NSUInteger)length, (NSUInteger)options, NULL);
  *address = buffer == NULL ? 0 : send(gpu_address, buffer);
  return buffer;
}

// A block that writes its ticket to a file descriptor, as the compiler would lay it out: nothing in
// it needs copying or disposing of.
struct told_block {
  void *isa;
  int flags, reserved;
  void (*invoke)(struct told_block *, id);
  const struct told_layout *layout;
  uint64_t ticket;
  int told;
};
struct told_layout {
  unsigned long reserved, size;
  const char *signature;
};
enum { BLOCK_HAS_SIGNATURE = 1 << 30 };

static void tell(struct told_block *block, id command_buffer) {
  (void)command_buffer;
  while (write(block->told, &block->ticket, sizeof block->ticket) < 0 && errno == EINTR) {
  }
}

static const struct told_layout told_layout = {0, sizeof(struct told_block), "v16@?0@8"};

// bind sets the arguments of a launch.
static void bind(id encoder, const metal_launch *l, const metal_arg *args, const uint8_t *constants) {
  for (uint32_t i = 0; i < l->count; i++) {
    const metal_arg *a = &args[l->first + i];
    if (a->buffer != 0)
      send(set_buffer, encoder, (id)a->buffer, (NSUInteger)a->offset, (NSUInteger)i);
    else
      send(set_bytes, encoder, constants + a->offset, (NSUInteger)a->length, (NSUInteger)i);
  }
}

// metal_submit encodes n launches, one after the other, into one command buffer, commits it and
// returns it, retained; NULL if there is none to be had. The encoder is a concurrent one with a
// barrier between launches, and a fence orders it after those of earlier command buffers: Metal
// tracks no hazards of these buffers, for kernels reach most of them by addresses that it does not
// see.
void *metal_submit(const metal_target *target, const metal_launch *launches, uint64_t n, const metal_arg *args, const uint8_t *constants, uint64_t ticket) {
  void *pool = objc_autoreleasePoolPush();
  id buffer = send(command_buffer, (id)target->queue);
  id encoder = buffer == NULL ? NULL : send(compute_encoder, buffer, MTLDispatchTypeConcurrent);
  if (encoder == NULL) {
    objc_autoreleasePoolPop(pool);
    return NULL;
  }
  send(retain, buffer);
  if (target->wait) send(wait_for_fence, encoder, (id)target->fence);
  uintptr_t pipeline = 0;
  for (uint64_t i = 0; i < n; i++) {
    const metal_launch *l = &launches[i];
    if (i > 0) send(barrier, encoder, MTLBarrierScopeBuffers);
    if (l->pipeline != pipeline) send(set_pipeline, encoder, (id)l->pipeline);
    pipeline = l->pipeline;
    bind(encoder, l, args, constants);
    MTLSize groups = {l->groups[0], l->groups[1], l->groups[2]}, threads = {l->threads, 1, 1};
    send(dispatch, encoder, groups, threads);
  }
  send(update_fence, encoder, (id)target->fence);
  send(end_encoding, encoder);
  struct told_block block = {&_NSConcreteStackBlock, BLOCK_HAS_SIGNATURE, 0, tell, &told_layout, ticket, target->told};
  send(add_completed_handler, buffer, &block);
  send(commit, buffer);
  objc_autoreleasePoolPop(pool);
  return buffer;
}

// metal_finish says how a command buffer ended, whose handler has told, and releases it.
void metal_finish(void *command_buffer, metal_result *result) {
  void *pool = objc_autoreleasePoolPush();
  id buffer = command_buffer;
  result->failed = send(status, buffer) == MTLCommandBufferStatusError;
  result->code = 0;
  result->text[0] = 0;
  result->seconds = send(gpu_end, buffer) - send(gpu_start, buffer);
  id error = result->failed ? send(failure, buffer) : NULL;
  if (error != NULL) {
    id text = send(error_text, error);
    const char *chars = text == NULL ? NULL : send(utf8, text);
    result->code = send(error_code, error);
    snprintf(result->text, sizeof result->text, "%s", chars == NULL ? "" : chars);
  }
  send(release, buffer);
  objc_autoreleasePoolPop(pool);
}

// metal_release gives an object back.
void metal_release(void *object) { send(release, object); }
