// Operations with a recurrent state: the causal convolution and the gated delta rule.
#include "common.metal"

struct ConvRow {
  device float* state;  // of the rows' sequence, [KERNEL-1, channels], oldest first
  uint row;     // first of ROWS rows or fewer, which follow one another
  uint n;       // of them
  uint before;  // rows of the sequence before them in this operation
  uint pad;
};
struct ConvParams {
  uint channels;
};
#ifndef KERNEL
#define KERNEL 4
#endif
#define ROWS 8u

// The input of a row's sequence that is back rows before the first row of r; in the state where
// that is older than the operation.
inline float conv_input(device const float* x, device const ConvRow& r, uint back, uint channel, uint channels) {
  return back <= r.before ? x[ulong(r.row - back) * channels + channel] : r.state[ulong(KERNEL - 1u - (back - r.before)) * channels + channel];
}

// y[t, c] = silu(Σ_j w[c, j]·x_{t-(KERNEL-1)+j}[c]). Grid: channels, entries of the table. ADVANCE:
// every sequence has one entry, and its state is moved on here.
kernel void conv(device const float* x [[buffer(0)]],
                 device const float* w [[buffer(1)]],
                 device const ConvRow* rows [[buffer(2)]],
                 device float* y [[buffer(3)]],
                 constant ConvParams& p [[buffer(4)]],
                 uint2 at [[thread_position_in_grid]]) {
  if (at.x < p.channels) {
    device const ConvRow& r = rows[at.y];
    const uint n = r.n;
    float in[KERNEL + ROWS];  // row t's window begins at t
#pragma unroll
    for (uint j = 0; j + 1u < KERNEL; j++) in[j] = conv_input(x, r, KERNEL - 1u - j, at.x, p.channels);
#pragma unroll
    for (uint t = 0; t < ROWS; t++) in[KERNEL - 1u + t] = t < n ? x[ulong(r.row + t) * p.channels + at.x] : 0.0f;
    float taps[KERNEL];
#pragma unroll
    for (uint j = 0; j < KERNEL; j++) taps[j] = w[at.x * KERNEL + j];
#pragma unroll
    for (uint t = 0; t < ROWS; t++) {
      if (t < n) {
        float s = 0.0f;
#pragma unroll
        for (uint j = 0; j < KERNEL; j++) s = fma(taps[j], in[t + j], s);
        y[ulong(r.row + t) * p.channels + at.x] = silu(s);
      }
    }
#if ADVANCE
#pragma unroll
    for (uint t = 1; t <= ROWS; t++) {
      if (t == n) {
#pragma unroll
        for (uint j = 0; j + 1u < KERNEL; j++) r.state[ulong(j) * p.channels + at.x] = in[t + j];
      }
    }
#endif
  }
}

// Moves states on by their sequences' rows. rows has one entry a sequence: its last row, n = 1.
// Grid: channels, sequences.
kernel void conv_state(device const float* x [[buffer(0)]],
                       device const ConvRow* rows [[buffer(1)]],
                       constant ConvParams& p [[buffer(2)]],
                       uint2 at [[thread_position_in_grid]]) {
  if (at.x < p.channels) {
    device const ConvRow& r = rows[at.y];
    float in[KERNEL];
    for (uint j = 1; j < KERNEL; j++) in[j] = conv_input(x, r, KERNEL - 1u - j, at.x, p.channels);
    for (uint j = 1; j < KERNEL; j++) r.state[ulong(j - 1u) * p.channels + at.x] = in[j];
  }
}

struct DeltaParams {
  uint key_heads;
  uint value_heads;
  uint value_dim;
  uint width;  // floats of a row of qkv
};
// KEY_DIM is the channels of a query and a key. WIDE: places allow vectors to be loaded.
#ifndef KEY_DIM
#define KEY_DIM 128
#endif
#define QUADS ((KEY_DIM + 3u) / 4u)
// that share a row of the state: lane l has quads l, l+8, …
#define LANES 8u
#define KEYS ((QUADS + LANES - 1u) / LANES)
// quads of a key in threadgroup memory, then zeros
#define PADDED (KEYS * LANES)
// simdgroups of a threadgroup, each with 4 rows of the state
#define SGS 4u
#if KEY_DIM <= 128
#define STEPS 8u                             // rows of input that are prepared at a time
#else
// keys of more than 500 channels do not fit threadgroup memory
#define STEPS 4u
#endif
#define MINE (STEPS / SGS)                   // of them by a simdgroup
#define PER_LANE ((PADDED * 4u + 31u) / 32u) // channels of a key that a lane normalises

// log(1+exp(x)), without an exponential that overflows.
inline float softplus(float x) {
  const float e = exp(-fabs(x));
  return max(x, 0.0f) + (e < 1e-3f ? e * (1.0f - 0.5f * e) : log(1.0f + e));
}

struct DeltaSegment {
  device float* state;  // [value_heads, value_dim, KEY_DIM]
  uint row;             // first
  uint rows;
};

// Channel c of a query or key, 0 past its end.
inline float key_channel(device const float* x, uint c) { return c < KEY_DIM ? x[c] : 0.0f; }

inline float sum_parts(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// Sums over the lanes that share a row.
inline float2 sum_lanes(float2 v) {
  v += simd_shuffle_xor(v, 1);
  v += simd_shuffle_xor(v, 2);
  return v + simd_shuffle_xor(v, 4);
}

// Takes a lane's quads of a row of the state through one row of input and returns the output.
inline float step(thread float4* s, threadgroup const float4* keys, threadgroup const float4* queries, float4 g, float v) {
  float4 k[KEYS], a4 = float4(0.0f), c4 = float4(0.0f);
#pragma unroll
  for (uint i = 0; i < KEYS; i++) {
    k[i] = keys[LANES * i];
    a4 = fma(s[i], k[i], a4);
    c4 = fma(s[i], queries[LANES * i], c4);
  }
  const float2 ac = sum_lanes(float2(sum_parts(a4), sum_parts(c4)));
  const float delta = g.y * fma(-g.x, ac.x, v);
#pragma unroll
  for (uint i = 0; i < KEYS; i++) s[i] = fma(float4(delta), k[i], s[i] * g.x);
  return fma(g.z, delta, g.x * ac.y);
}

// Takes each sequence's state through its rows. With k and q normalised, a = S·k, c = S·q, κ = k·q:
//
//   δ = β·(v - g·a)    y = g·c + κ·δ    S ← g·S + δ·kᵀ
//
// which is the gated delta rule with one round of sums a row. The state stays in registers; queries
// and keys of STEPS rows, normalised, their κ, decay and β lie in threadgroup memory, and while one
// lot is used the next is on its way. Grid: blocks of 16 value rows, value heads, sequences.
[[max_total_threads_per_threadgroup(128)]]
kernel void delta_rule(device const float* qkv [[buffer(0)]],
                       device const float* alpha [[buffer(1)]],
                       device const float* beta [[buffer(2)]],
                       device const float* a_log [[buffer(3)]],
                       device const float* dt_bias [[buffer(4)]],
                       device const DeltaSegment* segments [[buffer(5)]],
                       device float* y [[buffer(6)]],
                       constant DeltaParams& p [[buffer(7)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float4 keys[2u * STEPS * PADDED];
  threadgroup float4 queries[2u * STEPS * PADDED];
  threadgroup float4 gates[2u * STEPS];  // g, β, κ
  const uint h = group.y, key_head = h / (p.value_heads / p.key_heads);
  // this thread's lane and row of the state
  const uint l = lane % LANES, i = (group.x * SGS + sg) * 4u + lane / LANES;
  const bool live = i < p.value_dim;
  device const DeltaSegment& seg = segments[group.z];
  device float* state = seg.state + (ulong(h) * p.value_dim + min(i, p.value_dim - 1u)) * KEY_DIM;
  const uint rows = seg.rows, row0 = seg.row;
  float4 s[KEYS];
#pragma unroll
  for (uint k = 0; k < KEYS; k++) {
    const uint c = 4u * (l + LANES * k);
#if WIDE
    s[k] = c < KEY_DIM ? *(device const float4*)(state + c) : float4(0.0f);
#else
    s[k] = float4(key_channel(state, c), key_channel(state, c + 1u), key_channel(state, c + 2u), key_channel(state, c + 3u));
#endif
  }
  const float decay = -exp(a_log[h]), bias = dt_bias[h];
  float kx[MINE][PER_LANE], qx[MINE][PER_LANE], ax[MINE], bx[MINE], v_next = 0.0f, v = 0.0f;
#pragma unroll
  for (uint m = 0; m < MINE; m++) ax[m] = bx[m] = 0.0f;
  // Lot n is fetched in round n, written to threadgroup memory at its end, and used in round n+1.
  const uint lots = (rows + STEPS - 1u) / STEPS;
  for (uint round = 0; round <= lots; round++) {
    const uint next = round * STEPS, half_at = round % 2u * STEPS;
    if (round < lots) {
#pragma unroll
      for (uint m = 0; m < MINE; m++) {
        const ulong row = row0 + min(next + sg * MINE + m, rows - 1u);
        device const float* q = qkv + row * p.width + key_head * KEY_DIM;
        device const float* k = q + p.key_heads * KEY_DIM;
#pragma unroll
        for (uint c = 0; c < PER_LANE; c++) {
          qx[m][c] = key_channel(q, c * 32u + lane);
          kx[m][c] = key_channel(k, c * 32u + lane);
        }
        ax[m] = alpha[row * p.value_heads + h];
        bx[m] = beta[row * p.value_heads + h];
      }
      // Lane l has the value of the lot's row l.
      const ulong row = row0 + min(next + l, rows - 1u);
      v_next = live ? qkv[row * p.width + 2u * p.key_heads * KEY_DIM + h * p.value_dim + i] : 0.0f;
    }
    if (round > 0u) {
      const uint first = next - STEPS, n = min(rows - first, STEPS), at = STEPS - half_at;
      float mine = 0.0f;
      if (n == STEPS) {  // nothing between the rows keeps their keys from being read ahead
#pragma unroll
        for (uint t = 0; t < STEPS; t++) {
          const float out = step(s, keys + (at + t) * PADDED + l, queries + (at + t) * PADDED + l, gates[at + t], simd_shuffle(v, ushort((lane & 24u) + t)));
          if (l == t) mine = out;
        }
      } else {
        for (uint t = 0; t < n; t++) {
          const float out = step(s, keys + (at + t) * PADDED + l, queries + (at + t) * PADDED + l, gates[at + t], simd_shuffle(v, ushort((lane & 24u) + t)));
          if (l == t) mine = out;
        }
      }
      if (live && l < n) y[(ulong(row0 + first + l) * p.value_heads + h) * p.value_dim + i] = mine;
    }
    if (round < lots) {
      v = v_next;
#pragma unroll
      for (uint m = 0; m < MINE; m++) {
        float2 square = float2(0.0f);
        float product = 0.0f;
#pragma unroll
        for (uint c = 0; c < PER_LANE; c++) {
          square.x = fma(qx[m][c], qx[m][c], square.x);
          square.y = fma(kx[m][c], kx[m][c], square.y);
        }
        square = float2(simd_sum(square.x), simd_sum(square.y));
        const float q_scale = 1.0f / sqrt(square.x + 1e-6f) / sqrt(float(KEY_DIM)), k_scale = 1.0f / sqrt(square.y + 1e-6f);
        const uint t = half_at + sg * MINE + m;
#pragma unroll
        for (uint c = 0; c < PER_LANE; c++) {
          const float q = qx[m][c] * q_scale, k = kx[m][c] * k_scale;
          product = fma(q, k, product);
          if (c * 32u + lane < PADDED * 4u) {
            ((threadgroup float*)queries)[t * PADDED * 4u + c * 32u + lane] = q;
            ((threadgroup float*)keys)[t * PADDED * 4u + c * 32u + lane] = k;
          }
        }
        product = simd_sum(product);
        if (lane == 0u) gates[t] = float4(exp(decay * softplus(ax[m] + bias)), sigmoid(bx[m]), product, 0.0f);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (live) {
#pragma unroll
    for (uint k = 0; k < KEYS; k++) {
      const uint c = 4u * (l + LANES * k);
#if WIDE
      if (c < KEY_DIM) *(device float4*)(state + c) = s[k];
#else
      for (uint e = 0; e < 4u; e++) {
        if (c + e < KEY_DIM) state[c + e] = s[k][e];
      }
#endif
    }
  }
}
