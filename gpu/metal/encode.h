// What package metal asks of Metal in C. Plain C with objc_msgSend, so that Linux builds and runs
// it against a runtime of its own in the tests. encode.c says what the functions do.
#ifndef MOEFLUX_METAL_ENCODE_H
#define MOEFLUX_METAL_ENCODE_H

#include <stdint.h>

// One launch of a table: args are those from first on.
typedef struct {
  uintptr_t pipeline;   // id<MTLComputePipelineState>
  uint32_t groups[3];   // threadgroups
  uint32_t threads;     // of a threadgroup
  uint32_t first, count;
} metal_launch;

// One argument: a buffer from offset on, or, without a buffer, length bytes of the constants from
// offset on.
typedef struct {
  uintptr_t buffer;  // id<MTLBuffer>
  uint64_t offset;
  uint64_t length;
} metal_arg;

// Where launches go.
typedef struct {
  uintptr_t queue;  // id<MTLCommandQueue>
  uintptr_t fence;  // id<MTLFence>
  int32_t wait;     // not 0: an earlier command buffer of the queue has updated the fence
  int32_t told;     // file descriptor that the ticket is written to, 8 bytes, when the work is done
} metal_target;

// How a command buffer ended.
typedef struct {
  int64_t failed;  // 0, or 1
  int64_t code;    // of its NSError
  double seconds;  // from the device's begin to its end
  char text[512];  // what the NSError says, cut to fit; ends with 0
} metal_result;

// What a device is.
typedef struct {
  int64_t metal3;          // not 0: it is of the family that kernels need
  int64_t residency_sets;  // not 0: the system has them
  uint64_t max_buffer;     // bytes of the largest buffer
  uint64_t working_set;    // bytes that it may use without slowing down, 0 if it does not say
} metal_facts;

void *metal_device(void);
void metal_describe(void *device, metal_facts *facts);
void *metal_wrap(void *device, uintptr_t memory, uint64_t length, uint64_t options, uint64_t *address);
void *metal_submit(const metal_target *target, const metal_launch *launches, uint64_t n, const metal_arg *args, const uint8_t *constants, uint64_t ticket);
void metal_finish(void *command_buffer, metal_result *result);
void metal_release(void *object);

#endif
