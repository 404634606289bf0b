// An Objective-C runtime and a Metal for the tests: objc_msgSend finds a method by class and selector and jumps to it with the arguments as they are, as the real
// one does. Command buffers write down what they are sent, and wait until fake_take has them run by somebody and fake_complete says how that ended. What Metal would not allow ends
// the process with a message.
#include <objc/message.h>
#include <objc/runtime.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long NSUInteger;
typedef struct {
  NSUInteger width, height, depth;
} MTLSize;

struct objc_class {
  const char *name;
};

enum { MAX_ARGS = 31, PAGE = 4096 };

typedef struct {
  id buffer;
  uint64_t offset;
  uint8_t *bytes;  // its own copy
  uint64_t length;
} fake_arg;

typedef struct {
  id pipeline;
  uint64_t groups[3], threads;
  uint64_t barrier;  // between it and the launch before
  fake_arg args[MAX_ARGS];
} fake_dispatch;

// An object of any class.
struct fake {
  struct objc_object object;
  int refs, number;
  // A buffer's memory; a string's.
  uint8_t *memory;
  uint64_t length;
  // An encoder's command buffer, what is bound, and whether a barrier came.
  struct fake *owner;
  id pipeline;
  fake_arg args[MAX_ARGS];
  int barrier, ended;
  // A command buffer's.
  fake_dispatch *dispatches;
  uint64_t n, waits, updates;
  char *trace;
  size_t traced;
  void *handler;
  uint64_t status;
  struct fake *error;
  int64_t code;
  double start, end;
  struct fake *next;  // committed and not taken
  // A class: the last object of an array.
  id element;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int live, numbers;
static struct fake *committed, **last = &committed;
static int refuse;  // nothing is given: command buffers, 1; buffers, 2; the default device, 4; any device, 8

static void die(const char *format, ...) {
  va_list v;
  va_start(v, format);
  vfprintf(stderr, format, v);
  fputc('\n', stderr);
  abort();
}

static struct objc_class classes[] = {{"dead"}, {"MTLDevice"}, {"MTLBuffer"}, {"MTLCommandQueue"}, {"MTLCommandBuffer"}, {"MTLComputeCommandEncoder"},
                                      {"MTLComputePipelineState"}, {"MTLFence"}, {"NSError"}, {"NSString"}, {"NSArray"}, {"MTLResidencySetDescriptor"}};

Class objc_getClass(const char *name) {
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (strcmp(classes[i].name, name) == 0) return &classes[i];
  return NULL;
}

static struct fake *make(const char *class) {
  struct fake *f = calloc(1, sizeof *f);
  f->object.isa = objc_getClass(class);
  f->refs = 1;
  pthread_mutex_lock(&lock);
  live++;
  f->number = ++numbers;
  pthread_mutex_unlock(&lock);
  return f;
}

#define FAKE(object) ((struct fake *)(object))

// Autorelease pools: one stack of objects a thread, with marks.
static __thread id pool[1024];
static __thread int pooled;

static id m_retain(id self, SEL sel) {
  (void)sel;
  __atomic_add_fetch(&FAKE(self)->refs, 1, __ATOMIC_SEQ_CST);
  return self;
}
static void m_release(id self, SEL sel) {
  (void)sel;
  int refs = __atomic_sub_fetch(&FAKE(self)->refs, 1, __ATOMIC_SEQ_CST);
  if (refs < 0) die("%s is released too often", self->isa->name);
  if (refs == 0) {
    if (FAKE(self)->error) m_release((id)FAKE(self)->error, NULL);
    if (FAKE(self)->status == 1) die("a command buffer is gone before it is done");
    self->isa = &classes[0];
    __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
  }
}
static id autorelease(struct fake *f) {
  if (pooled == 0) die("an object is autoreleased without a pool");
  return pool[pooled++] = (id)f;
}
void *objc_autoreleasePoolPush(void) {
  pool[pooled++] = NULL;
  return &pool[pooled];
}
void objc_autoreleasePoolPop(void *mark) {
  while (pool[--pooled] != NULL) m_release(pool[pooled], NULL);
  if (mark != &pool[pooled + 1]) die("pools do not nest");
}

// trace writes a line into a command buffer's trace.
static void trace(struct fake *buffer, const char *format, ...) {
  char line[256];
  va_list v;
  va_start(v, format);
  int n = vsnprintf(line, sizeof line, format, v);
  buffer->trace = realloc(buffer->trace, buffer->traced + n + 2);
  memcpy(buffer->trace + buffer->traced, line, n);
  buffer->traced += n;
  buffer->trace[buffer->traced++] = '\n';
  buffer->trace[buffer->traced] = 0;
}

// The methods.
static bool d_family(id self, SEL sel, long family) { return (void)self, (void)sel, family == 5001; }
static NSUInteger d_max(id self, SEL sel) { return (void)self, (void)sel, 1ul << 32; }
static uint64_t d_working(id self, SEL sel) { return (void)self, (void)sel, 3ul << 30; }
static id d_wrap(id self, SEL sel, void *memory, NSUInteger length, NSUInteger options, void *deallocator) {
  (void)self, (void)sel;
  if ((uintptr_t)memory % PAGE || length % PAGE || length == 0 || options != 256 || deallocator)
    die("a buffer of %lu bytes at %p, options %lu", length, memory, options);
  if (refuse & 2) return NULL;
  struct fake *f = make("MTLBuffer");
  f->memory = memory;
  f->length = length;
  return (id)f;
}
static uint64_t b_address(id self, SEL sel) { return (void)sel, (uint64_t)(uintptr_t)FAKE(self)->memory; }
static id q_buffer(id self, SEL sel) {
  (void)self, (void)sel;
  return refuse & 1 ? NULL : autorelease(make("MTLCommandBuffer"));
}
static id c_encoder(id self, SEL sel, NSUInteger type) {
  (void)sel;
  if (type != 1) die("the encoder is of type %lu, want a concurrent one", type);
  struct fake *f = make("MTLComputeCommandEncoder");
  f->owner = FAKE(self);
  trace(f->owner, "encoder");
  return autorelease(f);
}
struct block {
  void *isa;
  int flags, reserved;
  void (*invoke)(void *, id);
  struct {
    unsigned long reserved, size;
    const char *signature;
  } *layout;
};
void *_NSConcreteStackBlock[32];
static void c_handler(id self, SEL sel, void *block) {
  (void)sel;
  struct block *b = block;
  if (b->isa != &_NSConcreteStackBlock || b->flags != 1 << 30 || strcmp(b->layout->signature, "v16@?0@8")) die("that is no block");
  FAKE(self)->handler = memcpy(malloc(b->layout->size), b, b->layout->size);
  trace(FAKE(self), "handler");
}
static void c_commit(id self, SEL sel) {
  (void)sel;
  struct fake *f = FAKE(self);
  trace(f, "commit");
  m_retain(self, NULL);
  f->status = 1;
  pthread_mutex_lock(&lock);
  *last = f;
  last = &f->next;
  pthread_mutex_unlock(&lock);
}
static NSUInteger c_status(id self, SEL sel) { return (void)sel, FAKE(self)->status; }
static id c_error(id self, SEL sel) { return (void)sel, (id)FAKE(self)->error; }
static double c_start(id self, SEL sel) { return (void)sel, FAKE(self)->start; }
static double c_end(id self, SEL sel) { return (void)sel, FAKE(self)->end; }
static struct fake *open_encoder(id self) {
  if (FAKE(self)->ended) die("an encoder is used after its end");
  return FAKE(self);
}
static void e_wait(id self, SEL sel, id fence) {
  struct fake *e = open_encoder(self);
  (void)sel;
  if (e->owner->n) die("a fence is waited for after a launch");
  e->owner->waits++;
  trace(e->owner, "wait %d", FAKE(fence)->number);
}
static void e_update(id self, SEL sel, id fence) {
  struct fake *e = open_encoder(self);
  (void)sel;
  e->owner->updates++;
  trace(e->owner, "update %d", FAKE(fence)->number);
}
static void e_pipeline(id self, SEL sel, id pipeline) {
  struct fake *e = open_encoder(self);
  (void)sel;
  e->pipeline = pipeline;
  trace(e->owner, "pipeline %d", FAKE(pipeline)->number);
}
static fake_arg *e_arg(id self, NSUInteger index) {
  struct fake *e = open_encoder(self);
  if (index >= MAX_ARGS) die("argument %lu", index);
  fake_arg *a = &e->args[index];
  memset(a, 0, sizeof *a);
  return a;
}
static void e_buffer(id self, SEL sel, id buffer, NSUInteger offset, NSUInteger index) {
  (void)sel;
  fake_arg *a = e_arg(self, index);
  if (strcmp(buffer->isa->name, "MTLBuffer") || offset >= FAKE(buffer)->length) die("argument %lu: %s, offset %lu", index, buffer->isa->name, offset);
  a->buffer = buffer;
  a->offset = offset;
  trace(FAKE(self)->owner, "buffer %d at %lu as %lu", FAKE(buffer)->number, offset, index);
}
static void e_bytes(id self, SEL sel, const void *bytes, NSUInteger length, NSUInteger index) {
  (void)sel;
  fake_arg *a = e_arg(self, index);
  if (length == 0 || length > 4096) die("argument %lu: %lu bytes", index, length);
  a->bytes = memcpy(malloc(length), bytes, length);
  a->length = length;
  uint32_t sum = 0;
  for (NSUInteger i = 0; i < length; i++) sum = sum * 31 + a->bytes[i];
  trace(FAKE(self)->owner, "bytes %lu sum %u as %lu", length, sum, index);
}
static void e_barrier(id self, SEL sel, NSUInteger scope) {
  struct fake *e = open_encoder(self);
  (void)sel;
  if (scope != 1) die("a barrier of scope %lu", scope);
  e->barrier = 1;
  trace(e->owner, "barrier");
}
static void e_dispatch(id self, SEL sel, MTLSize groups, MTLSize threads) {
  struct fake *e = open_encoder(self), *c = e->owner;
  (void)sel;
  if (e->pipeline == NULL || threads.height != 1 || threads.depth != 1) die("a launch without a pipeline, or of no row of threads");
  c->dispatches = realloc(c->dispatches, (c->n + 1) * sizeof *c->dispatches);
  fake_dispatch *d = &c->dispatches[c->n++];
  *d = (fake_dispatch){e->pipeline, {groups.width, groups.height, groups.depth}, threads.width, e->barrier, {{0}}};
  memcpy(d->args, e->args, sizeof d->args);
  e->barrier = 0;
  trace(c, "dispatch %lu %lu %lu of %lu", groups.width, groups.height, groups.depth, threads.width);
}
static void e_end(id self, SEL sel) {
  struct fake *e = open_encoder(self);
  (void)sel;
  e->ended = 1;
  trace(e->owner, "end");
}
static long x_code(id self, SEL sel) { return (void)sel, FAKE(self)->code; }
static id x_text(id self, SEL sel) { return (void)sel, FAKE(self)->element; }
static const char *s_utf8(id self, SEL sel) { return (void)sel, (const char *)FAKE(self)->memory; }
static id a_first(id self, SEL sel) { return (void)sel, FAKE(self)->element; }

static const struct {
  const char *class, *selector;
  void *method;
} methods[] = {
    {"MTLDevice", "supportsFamily:", d_family},
    {"MTLDevice", "maxBufferLength", d_max},
    {"MTLDevice", "recommendedMaxWorkingSetSize", d_working},
    {"MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:", d_wrap},
    {"MTLBuffer", "gpuAddress", b_address},
    {"MTLCommandQueue", "commandBufferWithUnretainedReferences", q_buffer},
    {"MTLCommandBuffer", "computeCommandEncoderWithDispatchType:", c_encoder},
    {"MTLCommandBuffer", "addCompletedHandler:", c_handler},
    {"MTLCommandBuffer", "commit", c_commit},
    {"MTLCommandBuffer", "status", c_status},
    {"MTLCommandBuffer", "error", c_error},
    {"MTLCommandBuffer", "GPUStartTime", c_start},
    {"MTLCommandBuffer", "GPUEndTime", c_end},
    {"MTLComputeCommandEncoder", "waitForFence:", e_wait},
    {"MTLComputeCommandEncoder", "updateFence:", e_update},
    {"MTLComputeCommandEncoder", "setComputePipelineState:", e_pipeline},
    {"MTLComputeCommandEncoder", "setBuffer:offset:atIndex:", e_buffer},
    {"MTLComputeCommandEncoder", "setBytes:length:atIndex:", e_bytes},
    {"MTLComputeCommandEncoder", "memoryBarrierWithScope:", e_barrier},
    {"MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", e_dispatch},
    {"MTLComputeCommandEncoder", "endEncoding", e_end},
    {"NSError", "code", x_code},
    {"NSError", "localizedDescription", x_text},
    {"NSString", "UTF8String", s_utf8},
    {"NSArray", "firstObject", a_first},
    {NULL, "retain", m_retain},
    {NULL, "release", m_release},
};

SEL sel_registerName(const char *name) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (strcmp(methods[i].selector, name) == 0) return (SEL)methods[i].selector;
  die("nobody has a method %s", name);
  return NULL;
}

// fake_lookup finds the method that objc_msgSend jumps to.
__attribute__((used)) void *fake_lookup(id self, SEL sel) {
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if ((methods[i].class == NULL || strcmp(methods[i].class, self->isa->name) == 0) && strcmp(methods[i].selector, (const char *)sel) == 0 &&
        self->isa != &classes[0])
      return methods[i].method;
  die("%s is sent %s", self->isa->name, (const char *)sel);
  return NULL;
}

#if defined(__x86_64__)
__asm__(
    ".text\n.globl objc_msgSend\n.type objc_msgSend, @function\nobjc_msgSend:\n"
    "  testq %rdi, %rdi\n  je 1f\n"
    "  pushq %rbp\n  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n  pushq %r9\n"
    "  call fake_lookup@PLT\n"
    "  popq %r9\n  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n  popq %rbp\n"
    "  jmp *%rax\n"
    "1: xorl %eax, %eax\n  pxor %xmm0, %xmm0\n  ret\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl objc_msgSend\n.type objc_msgSend, %function\nobjc_msgSend:\n"
    "  cbz x0, 1f\n"
    "  stp x29, x30, [sp, #-96]!\n  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n  stp x6, x7, [sp, #64]\n  str x8, [sp, #80]\n"
    "  bl fake_lookup\n  mov x16, x0\n"
    "  ldp x0, x1, [sp, #16]\n  ldp x2, x3, [sp, #32]\n  ldp x4, x5, [sp, #48]\n  ldp x6, x7, [sp, #64]\n  ldr x8, [sp, #80]\n  ldp x29, x30, [sp], #96\n"
    "  br x16\n"
    "1: mov x0, #0\n  movi d0, #0\n  ret\n");
#endif

id MTLCreateSystemDefaultDevice(void) { return refuse & 12 ? NULL : (id)make("MTLDevice"); }
id MTLCopyAllDevices(void) {
  struct fake *all = make("NSArray");
  if (!(refuse & 8)) all->element = autorelease(make("MTLDevice"));
  return (id)all;
}

// What the tests call.
void *fake_object(const char *class) { return make(class); }
int fake_number(void *object) { return FAKE(object)->number; }
int fake_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
void fake_refuse(int what) { refuse = what; }
void *fake_take(void) {
  pthread_mutex_lock(&lock);
  struct fake *f = committed;
  if (f && (committed = f->next) == NULL) last = &committed;
  pthread_mutex_unlock(&lock);
  return f;
}
fake_dispatch *fake_dispatches(void *buffer, uint64_t *n, uint64_t *waits, uint64_t *updates) {
  *n = FAKE(buffer)->n;
  *waits = FAKE(buffer)->waits;
  *updates = FAKE(buffer)->updates;
  return FAKE(buffer)->dispatches;
}
const char *fake_trace(void *buffer) { return FAKE(buffer)->trace; }
void fake_complete(void *buffer, int64_t code, const char *text, uint64_t ns) {
  struct fake *f = buffer;
  f->start = 1.0;
  f->end = 1.0 + ns * 1e-9;
  if (code) {
    f->error = make("NSError");
    f->error->code = code;
    struct fake *s = make("NSString");
    s->memory = (uint8_t *)strdup(text);
    f->error->element = (id)s;
    f->error->error = s;  // released with it
  }
  f->status = code ? 5 : 4;
  struct block *handler = f->handler;
  if (handler) handler->invoke(handler, (id)f);
  free(handler);
  m_release((id)f, NULL);
}
