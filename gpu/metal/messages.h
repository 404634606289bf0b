// The messages that encode.c sends: protocol or class, name here, selector, result, and the arguments behind receiver and selector. The tests hold every line
// against the bindings of darwinkit; lines that those do not have are listed in the tests with what Apple's headers declare.
#define METAL_MESSAGES(MESSAGE)                                                                                                    \
  MESSAGE(MTLDevice, supports_family, "supportsFamily:", BOOL, (id, SEL, NSInteger))                                               \
  MESSAGE(MTLDevice, max_buffer_length, "maxBufferLength", NSUInteger, (id, SEL))                                                  \
  MESSAGE(MTLDevice, working_set_size, "recommendedMaxWorkingSetSize", uint64_t, (id, SEL))                                        \
  MESSAGE(MTLDevice, wrap_bytes, "newBufferWithBytesNoCopy:length:options:deallocator:", id, (id, SEL, void *, NSUInteger, NSUInteger, void *)) \
  MESSAGE(MTLBuffer, gpu_address, "gpuAddress", uint64_t, (id, SEL))                                                               \
  MESSAGE(MTLCommandQueue, command_buffer, "commandBufferWithUnretainedReferences", id, (id, SEL))                                 \
  MESSAGE(MTLCommandBuffer, compute_encoder, "computeCommandEncoderWithDispatchType:", id, (id, SEL, NSUInteger))                  \
  MESSAGE(MTLCommandBuffer, add_completed_handler, "addCompletedHandler:", void, (id, SEL, void *))                                \
  MESSAGE(MTLCommandBuffer, commit, "commit", void, (id, SEL))                                                                     \
  MESSAGE(MTLCommandBuffer, status, "status", NSUInteger, (id, SEL))                                                               \
  MESSAGE(MTLCommandBuffer, failure, "error", id, (id, SEL))                                                                       \
  MESSAGE(MTLCommandBuffer, gpu_start, "GPUStartTime", double, (id, SEL))                                                          \
  MESSAGE(MTLCommandBuffer, gpu_end, "GPUEndTime", double, (id, SEL))                                                              \
  MESSAGE(MTLComputeCommandEncoder, wait_for_fence, "waitForFence:", void, (id, SEL, id))                                          \
  MESSAGE(MTLComputeCommandEncoder, update_fence, "updateFence:", void, (id, SEL, id))                                             \
  MESSAGE(MTLComputeCommandEncoder, set_pipeline, "setComputePipelineState:", void, (id, SEL, id))                                 \
  MESSAGE(MTLComputeCommandEncoder, set_buffer, "setBuffer:offset:atIndex:", void, (id, SEL, id, NSUInteger, NSUInteger))          \
  MESSAGE(MTLComputeCommandEncoder, set_bytes, "setBytes:length:atIndex:", void, (id, SEL, const void *, NSUInteger, NSUInteger))  \
  MESSAGE(MTLComputeCommandEncoder, barrier, "memoryBarrierWithScope:", void, (id, SEL, NSUInteger))                               \
  MESSAGE(MTLComputeCommandEncoder, dispatch, "dispatchThreadgroups:threadsPerThreadgroup:", void, (id, SEL, MTLSize, MTLSize))    \
  MESSAGE(MTLCommandEncoder, end_encoding, "endEncoding", void, (id, SEL))                                                         \
  MESSAGE(NSObject, retain, "retain", id, (id, SEL))                                                                               \
  MESSAGE(NSObject, release, "release", void, (id, SEL))                                                                           \
  MESSAGE(NSError, error_code, "code", NSInteger, (id, SEL))                                                                       \
  MESSAGE(NSError, error_text, "localizedDescription", id, (id, SEL))                                                              \
  MESSAGE(NSString, utf8, "UTF8String", const char *, (id, SEL))                                                                   \
  MESSAGE(NSArray, first_object, "firstObject", id, (id, SEL))
