// Products of routed experts with the rows that chose them, see product.metal for the #define
// lines. Experts lie anywhere: a table has the places of their matrices. A job is up to XROWS pairs
// (row·top_k + pick) of one expert; the whole threadgroup of one without pairs does nothing.
//
// BIASED: experts have biases. CLAMPED: gates and ups are bounded, see gpu.Clamp.
#include "product.metal"

#ifndef BIASED
#define BIASED 0
#endif

struct ExpertMatrix {
  device const uchar* codes;
  device const ushort* scales;
  device const ushort* biases;
};
struct ExpertWeights {
  ExpertMatrix gate;
  ExpertMatrix up;
  ExpertMatrix down;
  device const float* gate_bias;
  device const float* up_bias;
  device const float* down_bias;
};
struct ExpertJob {
  uint expert;
  uint first;  // in pairs
  uint count;
  uint pad;
};
struct ExpertParams {
  uint w_rows;
  uint w_cols;
  uint divide;    // a pair's vector is the pair's number divided by this
  uint x_stride;  // floats from vector to vector
  uint y_stride;  // floats from pair to pair
  uint group_bits;
  float limit;
  float alpha;
};

inline Weights weights_of(device const ExpertMatrix& m, constant ExpertParams& p) {
  Weights w;
  w.codes = m.codes;
  w.scales = m.scales;
  w.biases = m.biases;
  w.rows = p.w_rows;
  w.cols = p.w_cols;
  w.group_bits = p.group_bits;
  return w;
}

// Where the job's vectors begin; those past its count are its last again.
inline void vectors_of(device const ExpertJob& job, device const uint* pairs, uint divide, uint stride, thread ulong* at) {
  for (uint v = 0; v < XROWS; v++) at[v] = ulong(pairs[job.first + min(v, job.count - 1u)] / divide) * stride;
}

// y[pair, o] = Σ_i W[o, i]·x[vector of pair, i]. WHICH: 0 the gates, 1 the ups, 2 the downs. Grid:
// tiles of the matrices' rows, jobs.
[[max_total_threads_per_threadgroup(256)]]
kernel void experts_product(device const ExpertWeights* experts [[buffer(0)]],
                            device const ExpertJob* jobs [[buffer(1)]],
                            device const uint* pairs [[buffer(2)]],
                            device const float* x [[buffer(3)]],
                            device float* y [[buffer(4)]],
                            constant ExpertParams& p [[buffer(5)]],
                            uint2 group [[threadgroup_position_in_grid]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint sg [[simdgroup_index_in_threadgroup]],
                            uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[PARTS];
  device const ExpertJob& job = jobs[group.y];
  if (job.count > 0u) {
  device const ExpertWeights& e = experts[job.expert];
#if WHICH == 0
  const Weights w = weights_of(e.gate, p);
#elif WHICH == 1
  const Weights w = weights_of(e.up, p);
#else
  const Weights w = weights_of(e.down, p);
#endif
#if BIASED
  device const float* bias = WHICH == 0 ? e.gate_bias : WHICH == 1 ? e.up_bias : e.down_bias;
#endif
  ulong at[XROWS];
  vectors_of(job, pairs, p.divide, p.x_stride, at);
  const uint first = group.x * TILE;
  product(w, first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    const uint o = first + i % TILE, v = i / TILE;
#if BIASED
    if (o < p.w_rows && v < job.count) y[ulong(pairs[job.first + v]) * p.y_stride + o] = part[i] + bias[o];
#else
    if (o < p.w_rows && v < job.count) y[ulong(pairs[job.first + v]) * p.y_stride + o] = part[i];
#endif
  }
  }
}

// y[pair, o] = silu(gate[o]·x)·(up[o]·x), bounded and with biases where there are any, for gates and
// ups of one format. The same grid.
[[max_total_threads_per_threadgroup(256)]]
kernel void experts_gate_up(device const ExpertWeights* experts [[buffer(0)]],
                            device const ExpertJob* jobs [[buffer(1)]],
                            device const uint* pairs [[buffer(2)]],
                            device const float* x [[buffer(3)]],
                            device float* y [[buffer(4)]],
                            constant ExpertParams& p [[buffer(5)]],
                            uint2 group [[threadgroup_position_in_grid]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint sg [[simdgroup_index_in_threadgroup]],
                            uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[PARTS];
  threadgroup float gates[XROWS * TILE];
  device const ExpertJob& job = jobs[group.y];
  if (job.count > 0u) {
  device const ExpertWeights& e = experts[job.expert];
  ulong at[XROWS];
  vectors_of(job, pairs, p.divide, p.x_stride, at);
  const uint first = group.x * TILE;
  product(weights_of(e.gate, p), first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
#if BIASED
    gates[i] = gate_factor(part[i] + e.gate_bias[min(first + i % TILE, p.w_rows - 1u)], p.limit, p.alpha);
#else
    gates[i] = gate_factor(part[i], p.limit, p.alpha);
#endif
  }
  product(weights_of(e.up, p), first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    const uint o = first + i % TILE, v = i / TILE;
#if BIASED
    if (o < p.w_rows && v < job.count) {
      y[ulong(pairs[job.first + v]) * p.y_stride + o] = gates[i] * up_factor(part[i] + e.up_bias[o], p.limit, p.alpha);
    }
#else
    if (o < p.w_rows && v < job.count) y[ulong(pairs[job.first + v]) * p.y_stride + o] = gates[i] * up_factor(part[i], p.limit, p.alpha);
#endif
  }
  }
}

struct ExpertGateParams {
  uint n;  // pairs·inner
  uint inner;
  float limit;
  float alpha;
};
// gate[pair, i] = silu(gate[pair, i])·up[pair, i], bounded where CLAMPED says so. A pair has its inner
// gates and then its inner ups.
kernel void experts_swiglu(device float* gate_up [[buffer(0)]],
                           constant ExpertGateParams& p [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const ulong at = ulong(i / p.inner) * 2u * p.inner + i % p.inner;
    gate_up[at] = gate_factor(gate_up[at], p.limit, p.alpha) * up_factor(gate_up[at + p.inner], p.limit, p.alpha);
  }
}
