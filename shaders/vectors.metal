// Vectors that a team of TEAM simdgroups holds in registers: what norms alone and joined with
// others share. TEAM is 1, with several vectors to a threadgroup, or all simdgroups of it.
//
// A thread has QUADS pieces of 4 neighbouring numbers; what lies past the vector's end is 0.
// Squares are added piece by piece, then over the simdgroup, then over the team: an order that
// depends on TEAM and so on the vector's length alone. WIDE: pieces are loaded and stored whole.
#include "limbs.metal"

#ifndef TEAM
#define TEAM 1
#endif
#ifndef QUADS
#define QUADS 1
#endif
#ifndef WIDE
#define WIDE 0
#endif

// Where piece q of a member of the team begins.
inline uint quad_at(uint q, uint member) { return 4u * (q * (TEAM * 32u) + member); }

// 4 numbers of a vector of n > 0 from number i on; those past the end are 0. What is past the end
// is loaded from within: a branch would keep loads from being under way together.
inline float4 load_quad(device const float* x, uint i, uint n) {
#if WIDE
  const float4 v = *(device const float4*)(x + min(i, n - 4u));
  return float4(i < n ? v.x : 0.0f, i < n ? v.y : 0.0f, i < n ? v.z : 0.0f, i < n ? v.w : 0.0f);
#else
  return float4(i < n ? x[i] : 0.0f, i + 1u < n ? x[i + 1u] : 0.0f, i + 2u < n ? x[i + 2u] : 0.0f, i + 3u < n ? x[i + 3u] : 0.0f);
#endif
}
inline void store_quad(device float* y, uint i, uint n, float4 v) {
#if WIDE
  if (i < n) *(device float4*)(y + i) = v;
#else
  if (i < n) y[i] = v.x;
  if (i + 1u < n) y[i + 1u] = v.y;
  if (i + 2u < n) y[i + 2u] = v.z;
  if (i + 3u < n) y[i + 3u] = v.w;
#endif
}

// Σ v² of the team's vector, the same in all its threads. part is one float a simdgroup of the
// team. Every thread of the threadgroup calls it.
inline float square_sum(thread const float4* v, uint lane, uint sg, threadgroup float* part) {
  float s = 0.0f;
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
#pragma unroll
    for (uint c = 0; c < 4u; c++) s = fma(v[q][c], v[q][c], s);
  }
  s = simd_sum(s);
#if TEAM > 1
  if (lane == 0u) part[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  s = simd_sum(lane < TEAM ? part[lane] : 0.0f);
#endif
  return s;
}

// What a vector of n with this sum of squares is multiplied by.
inline float norm_factor(float squares, uint n, float eps) { return 1.0f / sqrt(squares / float(n) + eps); }

// The norm of v, with the team's weights or, where WEIGHTED is 0, without; and its limbs. It is
// vector row, whose y is at to. All lanes call it; those of vectors that are not live write nothing.
#ifndef WEIGHTED
#define WEIGHTED 1
#endif
inline void store_norm(device float* to, device uint* limbs, device float* sums, device uint* rounded, device float* rounded_sums, ulong row,
                       thread const float4* v, thread const float4* w, float factor, uint member, uint n, bool live) {
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
    const uint i = quad_at(q, member);
#if WEIGHTED
    const float4 y = w[q] * (v[q] * float4(factor));
#else
    const float4 y = v[q] * float4(factor);
#endif
    if (live) store_quad(to, i, n, y);
#if LIMBS
    store_limbs(limbs, sums, row * (n / LIMBS) + min(i, n - 1u) / LIMBS, y, member % 32u, live && i < n);
#endif
#if ROUNDED
    store_rounded(rounded, rounded_sums, row * (n / ROUNDED) + min(i, n - 1u) / ROUNDED, y, member % 32u, live && i < n);
#endif
  }
}

// Begins to bring the weights to the second-level cache.
inline void prefetch_weights(device const float* w, uint member, uint n) {
#if WEIGHTED
#pragma unroll
  for (uint q = 0; q < QUADS; q++) PREFETCH(w + min(quad_at(q, member), n - 1u));
#endif
}
inline void load_weights(device const float* w, uint member, uint n, thread float4* to) {
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
#if WEIGHTED
    to[q] = load_quad(w, quad_at(q, member), n);
#else
    to[q] = float4(1.0f);
#endif
  }
}
