// What kernels of gpu/cuda/override are built with on the emulator, behind the prelude and in its
// namespace: CUDA's names, and in place of ptx.cu what that does.
#ifndef __clang__ // which does not have this warning, and warns of that
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __global__
#define __launch_bounds__(...)
struct msl_dims { unsigned x, y, z; };
#define threadIdx (msl_dims{msl_cur->lid[0], msl_cur->lid[1], msl_cur->lid[2]})
#define blockIdx (msl_dims{msl_cur->tgid[0], msl_cur->tgid[1], msl_cur->tgid[2]})
#define __syncthreads() msl_emu_barrier(__LINE__, 0)
template <class T> static inline T __shfl_sync(unsigned, T v, unsigned i, MSL_LN) { return msl_x(v, ln)[i]; }
template <class T> static inline T __shfl_xor_sync(unsigned, T v, unsigned m, MSL_LN) { return msl_x(v, ln)[msl_cur->lane ^ m]; }
MSL_FN float __uint_as_float(unsigned u) { return as_type<float>(u); }
MSL_FN unsigned __float_as_uint(float f) { return as_type<unsigned>(f); }
MSL_FN float fmaf(float a, float b, float c) { return fma(a, b, c); }
MSL_FN float fabsf(float x) { return fabs(x); }
MSL_FN float expf(float x) { return exp(x); }
MSL_FN uint2 make_uint2(unsigned a, unsigned b) { return uint2(a, b); }
MSL_FN uint4 make_uint4(unsigned a, unsigned b, unsigned c, unsigned d) { return uint4(a, b, c, d); }
MSL_FN float2 make_float2(float a, float b) { return float2(a, b); }
MSL_FN float4 make_float4(float a, float b, float c, float d) { return float4(a, b, c, d); }
// To the nearest, and what does not fit to what is next to it.
MSL_FN int __float2int_rn(float x) {
  return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : int(rint(x));
}
MSL_FN float __int2float_rn(int x) { return float(x); }
MSL_FN unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  const unsigned long both = (unsigned long)b << 32 | a;
  unsigned r = 0;
  for (unsigned i = 0; i < 4; i++) r |= unsigned(both >> (s >> 4 * i & 7u) * 8 & 255u) << 8 * i;
  return r;
}

// A threadgroup has one array, of at most OWN_MEMORY bytes.
#define OWN_MEMORY (48 << 10)
static __thread void* msl_own;
#define OWN_ARRAY(T, name, n)                             \
  static_assert(sizeof(T) * (n) <= OWN_MEMORY, "memory"); \
  T(&name)[n] = *(T(*)[n])msl_own

MSL_FN void begin() {}
MSL_FN void begin_settled() {}
MSL_FN void prefetch(const void*) {}
MSL_FN unsigned load_l2(const unsigned* p) { return *p; }
MSL_FN void wait_prerequisites() {}
MSL_FN void launch_dependents() {}
MSL_FN unsigned load1(const unsigned* p, bool there) { return there ? *p : 0; }
MSL_FN uint2 load2(const unsigned* p, bool there) { return there ? *(const uint2*)p : make_uint2(0, 0); }
MSL_FN void copy16(void* to, const void* from) { __builtin_memcpy(to, from, 16); }
MSL_FN void copy8(void* to, const void* from) { __builtin_memcpy(to, from, 8); }
MSL_FN void copied_so_far() {}
template <int N> static inline void wait_for_copies() {}
// The lanes' parts of the matrices, as PTX's mma.m16n8k32 has them: of rows g and g+8, inputs 4t to
// 4t+3 and those 16 further on; of column g; sums of columns 2t and 2t+1. g is lane/4, t lane%4.
static inline void msl_mma(unsigned (&d)[4], const unsigned (&c)[4], uint4 a, uint2 b, bool with_sign) {
  const msl_lanes<uint4> from = msl_x(a, __LINE__);
  uint4 rows[32];
  for (unsigned i = 0; i < 32; i++) rows[i] = from[i];
  const msl_lanes<uint2> columns = msl_x(b, __LINE__);
  const unsigned g = msl_cur->lane >> 2, t = msl_cur->lane & 3u;
  for (unsigned i = 0; i < 4; i++) {
    int sum = 0;
    for (unsigned k = 0; k < 4; k++) {
      const uint4 row = rows[4 * g + k];
      const uint2 column = columns[4 * (2 * t + (i & 1u)) + k];
      const unsigned codes[2] = {i < 2 ? row.x : row.y, i < 2 ? row.z : row.w}, limbs[2] = {column.x, column.y};
      for (unsigned j = 0; j < 8; j++) {
        const unsigned code = codes[j / 4] >> 8 * (j % 4) & 255u, limb = limbs[j / 4] >> 8 * (j % 4) & 255u;
        sum += int(code) * (with_sign ? int(limb ^ 128u) - 128 : int(limb));
      }
    }
    d[i] = c[i] + unsigned(sum);
  }
}
static inline void mma_signed(unsigned (&d)[4], const unsigned (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  msl_mma(d, c, uint4(a0, a1, a2, a3), uint2(b0, b1), true);
}
static inline void mma_unsigned(unsigned (&d)[4], const unsigned (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  msl_mma(d, c, uint4(a0, a1, a2, a3), uint2(b0, b1), false);
}

// The entry of a kernel, and what the launch is told of its parameters: how many there are, and of
// each the bytes of what is given by value or the alignment of memory.
template <class T> struct msl_param {
  static const unsigned size = sizeof(T);
  static T& get(void* p) { return *(T*)p; }
};
template <class T> struct msl_param<T*> {
  static const unsigned size = alignof(T);
  static T* get(void* p) { return (T*)p; }
};
template <class... A, std::size_t... I> static void msl_call(void (*f)(A...), void* const* a, std::index_sequence<I...>) {
  f(msl_param<A>::get(a[I])...);
}
template <class... A> static void msl_enter(void (*f)(A...), void* const* a) { msl_call(f, a, std::index_sequence_for<A...>()); }
template <class... A> static const unsigned* msl_params(void (*)(A...)) {
  static const unsigned all[] = {sizeof...(A), msl_param<A>::size...};
  return all;
}
