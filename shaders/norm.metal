// Norms of vectors and rotation of heads.
#include "common.metal"

// Σ x[i]² of a vector of n, the same in every thread of the team: TEAM simdgroups of the threadgroup. part is one float a simdgroup. Every
// thread of the threadgroup calls it.
#ifndef TEAM
#define TEAM 1
#endif
inline float square_sum(device const float* x, uint n, uint member, uint lane, uint sg, threadgroup float* part) {
  float s = 0.0f;
  for (uint i = member; i < n; i += TEAM * 32u) s = fma(x[i], x[i], s);
  s = simd_sum(s);
#if TEAM > 1
  if (lane == 0u) part[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  s = part[0];
  for (uint i = 1; i < TEAM; i++) s += part[i];
#endif
  return s;
}

struct NormParams {
  uint vectors;
  uint dim;
  uint x_stride;  // floats from vector to vector
  uint y_stride;
  float eps;
};
// y = w ⊙ x/sqrt(mean(x²)+eps). WEIGHTED: 0 without w. TEAM simdgroups share a vector: 1 with several vectors to a threadgroup, or all of it.
kernel void rms_norm(device float* x [[buffer(0)]],
                     device const float* w [[buffer(1)]],
                     device float* y [[buffer(2)]],
                     constant NormParams& p [[buffer(3)]],
                     uint group [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint sg [[simdgroup_index_in_threadgroup]],
                     uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[TEAM];
  const uint v = min((group * sgs + sg) / TEAM, p.vectors - 1u);
  const bool live = (group * sgs + sg) / TEAM < p.vectors;
  const uint member = sg % TEAM * 32u + lane;
  device float* xv = x + ulong(v) * p.x_stride;
  device float* yv = y + ulong(v) * p.y_stride;
  const float s = square_sum(xv, live ? p.dim : 0u, member, lane, sg, part);
  const float r = 1.0f / sqrt(s / float(p.dim) + p.eps);
  if (live) {
    for (uint i = member; i < p.dim; i += TEAM * 32u) {
#if WEIGHTED
      yv[i] = w[i] * (xv[i] * r);
#else
      yv[i] = xv[i] * r;
#endif
    }
  }
}

struct GatedNormParams {
  uint vectors;
  uint dim;
  float eps;
};
// y = w ⊙ x/sqrt(mean(x²)+eps) ⊙ silu(z), dense; one simdgroup a vector.
kernel void gated_norm(device float* x [[buffer(0)]],
                       device const float* w [[buffer(1)]],
                       device const float* z [[buffer(2)]],
                       device float* y [[buffer(3)]],
                       constant GatedNormParams& p [[buffer(4)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  const uint v = group * sgs + sg;
  if (v >= p.vectors) return;  // a whole simdgroup, and no barrier follows
  const ulong at = ulong(v) * p.dim;
  float s = 0.0f;
  for (uint i = lane; i < p.dim; i += 32u) s = fma(x[at + i], x[at + i], s);
  const float r = 1.0f / sqrt(simd_sum(s) / float(p.dim) + p.eps);
  for (uint i = lane; i < p.dim; i += 32u) y[at + i] = w[i] * (x[at + i] * r) * silu(z[at + i]);
}

struct RopeParams {
  uint n;  // rows·heads·pairs
  uint heads;
  uint pairs;  // of channels: Rotary/2
  uint row;    // floats from row to row
  uint head;
};
// Turns pairs of channels by the angles of the table [rows, pairs, 2]. INTERLEAVED: pairs are neighbours, else halves.
kernel void rope(device float* x [[buffer(0)]],
                 device const float* turns [[buffer(1)]],
                 constant RopeParams& p [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const uint pair = i % p.pairs, v = i / p.pairs, r = v / p.heads;
    const ulong at = ulong(r) * p.row + v % p.heads * p.head;
#if INTERLEAVED
    const ulong ia = at + 2u * pair, ib = ia + 1u;
#else
    const ulong ia = at + pair, ib = ia + p.pairs;
#endif
    const float c = turns[(ulong(r) * p.pairs + pair) * 2u], s = turns[(ulong(r) * p.pairs + pair) * 2u + 1u];
    const float a = x[ia], b = x[ib];
    x[ia] = a * c - b * s;
    x[ib] = a * s + b * c;
  }
}
