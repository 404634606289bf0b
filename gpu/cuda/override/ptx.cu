// What is said to the GPU in its own instructions. Tests on a processor put functions of their own
// in its place (gpu/emu/testdata/override.h).

// A kernel of sm_90 and later may start while earlier kernels of its graph still run.
// wait_prerequisites returns when they have ended, with all that they waited for, and their results
// are visible. launch_dependents lets the next kernel start. Parameters are not restricted
// pointers: the compiler could move reads ahead of the wait.
FN void wait_prerequisites() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
FN void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Begins a kernel that does nothing before its wait.
FN void begin() {
  launch_dependents();
  wait_prerequisites();
}
// The same, but the next kernel starts later: when all that was waited for is there. It may read
// that ahead of its own wait.
FN void begin_settled() {
  wait_prerequisites();
  launch_dependents();
}

// Loads from the second-level cache: an earlier kernel of the same processor may have left
// what was there before in the first one.
FN u32 load_l2(const u32* p) {
  u32 v;
  asm("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

// Begins to bring what is at p to the second-level cache. It need not be there yet.
FN void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// Weights are read once: they are not to displace the inputs in the cache nearest to the cores.
FN u32 load1(const u32* p, bool there) {
  u32 v = 0;
  asm("{.reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.nc.L1::no_allocate.u32 %0, [%1];}" : "+r"(v) : "l"(p), "r"((u32)there));
  return v;
}
FN uint2 load2(const u32* p, bool there) {
  uint2 v = make_uint2(0, 0);
  asm("{.reg .pred q; setp.ne.u32 q, %3, 0; @q ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];}"
      : "+r"(v.x), "+r"(v.y) : "l"(p), "r"((u32)there));
  return v;
}

// Begin to copy from the device's memory to the threadgroup's, 16 or 8 bytes that are aligned to that.
FN void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
FN void copy8(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
// What a thread has begun to copy since the call before is a set, maybe an empty one.
FN void copied_so_far() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until only the last so many sets of a thread may be under way.
template <int N>
FN void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// d = c + the products of 32 inputs, sums of 16 rows by 8 columns: codes of 8 bits times limbs that
// are signed, or are not. docs of PTX, mma.m16n8k32, say which lane has which.
FN void mma_signed(u32 (&d)[4], const u32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
FN void mma_unsigned(u32 (&d)[4], const u32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
