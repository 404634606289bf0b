// Operations with a recurrent state: the causal convolution and the gated delta rule.
#include "common.metal"

struct ConvRow {
  device float* state;  // of the row's sequence, [KERNEL-1, channels], oldest first
  uint row;
  uint before;  // rows of the sequence before it in this operation
  uint first;   // the sequence's first row
  uint rows;    // of the sequence in this operation
};
struct ConvParams {
  uint channels;
};
#ifndef KERNEL
#define KERNEL 4
#endif

// Input j of the window of a row, j < KERNEL; the last is the row itself.
inline float conv_input(device const float* x, device const ConvRow& r, uint j, uint channel, uint channels) {
  const uint at = r.before + j;  // counted from the oldest in the state
  return at < KERNEL - 1u ? r.state[ulong(at) * channels + channel] : x[ulong(r.first + at - (KERNEL - 1u)) * channels + channel];
}

// y[t, c] = silu(Σ_j w[c, j]·x_{t-(KERNEL-1)+j}[c]). Grid: channels, rows. ADVANCE: every sequence has one row, and its state is moved on here.
kernel void conv(device const float* x [[buffer(0)]],
                 device const float* w [[buffer(1)]],
                 device const ConvRow* rows [[buffer(2)]],
                 device float* y [[buffer(3)]],
                 constant ConvParams& p [[buffer(4)]],
                 uint2 at [[thread_position_in_grid]]) {
  if (at.x < p.channels) {
    device const ConvRow& r = rows[at.y];
    float in[KERNEL];
    float s = 0.0f;
    for (uint j = 0; j < KERNEL; j++) {
      in[j] = conv_input(x, r, j, at.x, p.channels);
      s = fma(w[at.x * KERNEL + j], in[j], s);
    }
    y[ulong(r.row) * p.channels + at.x] = silu(s);
#if ADVANCE
    for (uint j = 1; j < KERNEL; j++) r.state[ulong(j - 1u) * p.channels + at.x] = in[j];
#endif
  }
}

// Moves states on by their sequences' rows. rows has one entry a sequence: its last row. Grid: channels, sequences.
kernel void conv_state(device const float* x [[buffer(0)]],
                       device const ConvRow* rows [[buffer(1)]],
                       constant ConvParams& p [[buffer(2)]],
                       uint2 at [[thread_position_in_grid]]) {
  if (at.x < p.channels) {
    device const ConvRow& r = rows[at.y];
    float in[KERNEL];
    for (uint j = 1; j < KERNEL; j++) in[j] = conv_input(x, r, j, at.x, p.channels);
    for (uint j = 1; j < KERNEL; j++) r.state[ulong(j - 1u) * p.channels + at.x] = in[j];
  }
}

struct DeltaParams {
  uint key_heads;
  uint value_heads;
  uint value_dim;
  uint width;  // floats of a row of qkv
  uint rows;   // in the table
};
// KEY_DIM is the channels of a query and a key.
#ifndef KEY_DIM
#define KEY_DIM 128
#endif

// log(1+exp(x)), without an exponential that overflows.
inline float softplus(float x) {
  const float e = exp(-fabs(x));
  return max(x, 0.0f) + (e < 1e-3f ? e * (1.0f - 0.5f * e) : log(1.0f + e));
}

// Normalises the queries and keys of each row of the table into qk[entry, 2, key_heads, KEY_DIM] and makes decay and beta of its value heads,
// gb[entry, value_heads]. One simdgroup a vector; the simdgroups after those of a row's vectors take 32 value heads each. Grid: simdgroups of
// a row, rows.
kernel void delta_prepare(device const float* qkv [[buffer(0)]],
                          device const float* alpha [[buffer(1)]],
                          device const float* beta [[buffer(2)]],
                          device const float* a_log [[buffer(3)]],
                          device const float* dt_bias [[buffer(4)]],
                          device const uint* rows [[buffer(5)]],
                          device float* qk [[buffer(6)]],
                          device float2* gb [[buffer(7)]],
                          constant DeltaParams& p [[buffer(8)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint sg [[simdgroup_index_in_threadgroup]],
                          uint sgs [[simdgroups_per_threadgroup]]) {
  const uint v = group.x * sgs + sg, row = rows[group.y];
  if (v < 2u * p.key_heads) {
    device const float* x = qkv + ulong(row) * p.width + v * KEY_DIM;
    device float* to = qk + (ulong(group.y) * 2u * p.key_heads + v) * KEY_DIM;
    float s = 0.0f;
    for (uint i = lane; i < KEY_DIM; i += 32u) s = fma(x[i], x[i], s);
    s = 1.0f / sqrt(simd_sum(s) + 1e-6f);
    if (v < p.key_heads) s = s / sqrt(float(KEY_DIM));
    for (uint i = lane; i < KEY_DIM; i += 32u) to[i] = x[i] * s;
  } else {
    const uint h = (v - 2u * p.key_heads) * 32u + lane;
    if (h < p.value_heads) {
      const ulong at = ulong(row) * p.value_heads + h;
      const float g = exp(-exp(a_log[h]) * softplus(alpha[at] + dt_bias[h]));
      gb[ulong(group.y) * p.value_heads + h] = float2(g, sigmoid(beta[at]));
    }
  }
}

struct DeltaSegment {
  device float* state;  // [value_heads, value_dim, KEY_DIM]
  uint row;             // first
  uint rows;
  uint entry;  // of the first row in the table
  uint pad;
};
#define KEYS ((KEY_DIM + 31u) / 32u)  // of a lane
#define VALUES 4u                     // rows of a state that a simdgroup takes

// Takes each sequence's state through its rows: S ← g·S; δ = β·(v - S·k); S ← S + δ·kᵀ; y = S·q. Grid: blocks of value rows, value heads,
// sequences.
[[max_total_threads_per_threadgroup(128)]]
kernel void delta_rule(device const float* qkv [[buffer(0)]],
                       device const float* qk [[buffer(1)]],
                       device const float2* gb [[buffer(2)]],
                       device const DeltaSegment* segments [[buffer(3)]],
                       device float* y [[buffer(4)]],
                       constant DeltaParams& p [[buffer(5)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  const uint h = group.y, key_head = h / (p.value_heads / p.key_heads), i0 = (group.x * sgs + sg) * VALUES;
  device const DeltaSegment& seg = segments[group.z];
  device float* state = seg.state + ulong(h) * p.value_dim * KEY_DIM;
  float s[VALUES][KEYS];
  for (uint i = 0; i < VALUES; i++) {
    for (uint j = 0; j < KEYS; j++) {
      const uint key = j * 32u + lane;
      s[i][j] = i0 + i < p.value_dim && key < KEY_DIM ? state[(i0 + i) * KEY_DIM + key] : 0.0f;
    }
  }
  for (uint t = 0; t < seg.rows; t++) {
    const ulong entry = seg.entry + t, row = seg.row + t;
    device const float* q = qk + (entry * 2u * p.key_heads + key_head) * KEY_DIM;
    device const float* k = q + p.key_heads * KEY_DIM;
    device const float* v = qkv + row * p.width + 2u * p.key_heads * KEY_DIM + h * p.value_dim;
    const float2 g = gb[entry * p.value_heads + h];
    float kj[KEYS], qj[KEYS];
    for (uint j = 0; j < KEYS; j++) {
      const uint key = j * 32u + lane;
      kj[j] = key < KEY_DIM ? k[key] : 0.0f;
      qj[j] = key < KEY_DIM ? q[key] : 0.0f;
    }
    for (uint i = 0; i < VALUES; i++) {
      float predicted = 0.0f;
      for (uint j = 0; j < KEYS; j++) {
        s[i][j] *= g.x;
        predicted = fma(s[i][j], kj[j], predicted);
      }
      predicted = simd_sum(predicted);
      const float delta = i0 + i < p.value_dim ? g.y * (v[i0 + i] - predicted) : 0.0f;
      float out = 0.0f;
      for (uint j = 0; j < KEYS; j++) {
        s[i][j] = fma(delta, kj[j], s[i][j]);
        out = fma(s[i][j], qj[j], out);
      }
      out = simd_sum(out);
      if (lane == 0u && i0 + i < p.value_dim) y[(row * p.value_heads + h) * p.value_dim + i0 + i] = out;
    }
  }
  for (uint i = 0; i < VALUES; i++) {
    for (uint j = 0; j < KEYS; j++) {
      const uint key = j * 32u + lane;
      if (i0 + i < p.value_dim && key < KEY_DIM) state[(i0 + i) * KEY_DIM + key] = s[i][j];
    }
  }
}
