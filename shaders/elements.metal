// Elementwise operations and copies: one thread an element, in a grid of one dimension. An operand
// that may be another's memory is not const.
#include "append.metal"

struct AddParams {
  uint n;
};
// y = a + b.
kernel void add(device float* a [[buffer(0)]],
                device float* b [[buffer(1)]],
                device float* y [[buffer(2)]],
                constant AddParams& p [[buffer(3)]],
                uint i [[thread_position_in_grid]]) {
  if (i < p.n) y[i] = a[i] + b[i];
}

struct UnitParams {
  uint n;
  float limit;
  float alpha;
};
// y = silu(gate)·up, bounded where CLAMPED says so.
kernel void swiglu(device float* gate [[buffer(0)]],
                   device float* up [[buffer(1)]],
                   device float* y [[buffer(2)]],
                   constant UnitParams& p [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
  if (i < p.n) y[i] = gate_factor(gate[i], p.limit, p.alpha) * up_factor(up[i], p.limit, p.alpha);
}

struct GateParams {
  uint n;  // rows·heads·dim
  uint heads;
  uint dim;
  uint g_row;  // floats from row to row of g
  uint g_head;
  uint g_channel;  // 0: one for all channels of a head
};
// x[r, h, d] *= sigmoid(g[r, h, d]); x is dense.
kernel void sigmoid_gate(device float* x [[buffer(0)]],
                         device const float* g [[buffer(1)]],
                         constant GateParams& p [[buffer(2)]],
                         uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const uint d = i % p.dim, v = i / p.dim;
    x[i] *= sigmoid(g[ulong(v / p.heads) * p.g_row + v % p.heads * p.g_head + d * p.g_channel]);
  }
}

struct CopyParams {
  uint n;  // rows·heads·dim
  uint heads;
  uint dim;
  uint x_row;  // floats from row to row
  uint x_head;
  uint y_row;
  uint y_head;
};
// y[r, h, d] = x[r, h, d].
kernel void copy_heads(device const float* x [[buffer(0)]],
                       device float* y [[buffer(1)]],
                       constant CopyParams& p [[buffer(2)]],
                       uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const uint d = i % p.dim, v = i / p.dim;
    y[ulong(v / p.heads) * p.y_row + v % p.heads * p.y_head + d] = x[ulong(v / p.heads) * p.x_row + v % p.heads * p.x_head + d];
  }
}

struct GatherParams {
  uint n;  // rows·dim
  uint dim;
};
// y[i, :] = x[rows[i], :].
kernel void gather(device const float* x [[buffer(0)]],
                   device const int* rows [[buffer(1)]],
                   device float* y [[buffer(2)]],
                   constant GatherParams& p [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
  if (i < p.n) y[i] = x[ulong(rows[i / p.dim]) * p.dim + i % p.dim];
}

struct CombineParams {
  uint n;  // rows·dim
  uint dim;
  uint top_k;
};
// y = residual + (Σ_k weights[r, k]·routed[r, k] + t·shared), k ascending.
// SHARED: 0 without shared, 1 with t = 1, 2 with t = sigmoid(gate[r]).
kernel void combine(device const float* routed [[buffer(0)]],
                    device const float* shared [[buffer(1)]],
                    device const float* gate [[buffer(2)]],
                    device float* residual [[buffer(3)]],
                    device const float* weights [[buffer(4)]],
                    device float* y [[buffer(5)]],
                    constant CombineParams& p [[buffer(6)]],
                    uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const uint r = i / p.dim, d = i % p.dim;
    float acc = 0.0f;
    for (uint k = 0; k < p.top_k; k++) {
      const uint pair = r * p.top_k + k;
      acc = fma(weights[pair], routed[ulong(pair) * p.dim + d], acc);
    }
#if SHARED == 1
    acc += shared[i];
#elif SHARED == 2
    acc = fma(sigmoid(gate[r]), shared[i], acc);
#endif
    y[i] = residual[i] + acc;
  }
}

struct AppendParams {
  uint n;  // rows·dim
  uint dim;
  uint k_stride;  // floats from row to row
  uint v_stride;
  uint group;  // channels that share a scale, of 8 bits
};
// Writes rows of keys and values to their places in the cache. VALUES: 0 keys alone.
kernel void append_kv(device const float* k [[buffer(0)]],
                      device const float* v [[buffer(1)]],
                      device const AppendRow* rows [[buffer(2)]],
                      constant AppendParams& p [[buffer(3)]],
                      uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    device const AppendRow& r = rows[i / p.dim];
    const uint d = i % p.dim;
    const uint at = r.slot * p.dim + d;
    ((device float*)r.k)[at] = k[ulong(r.row) * p.k_stride + d];
#if VALUES
    ((device float*)r.v)[at] = v[ulong(r.row) * p.v_stride + d];
#endif
  }
}

// Rounds a group of channels to 8 bits and a scale, as gpu.KV says, and writes them to slot r.slot
// of a part of a page. One simdgroup.
inline void append_group(device const float* x, device uchar* part, device const AppendRow& r, constant AppendParams& p, uint g, uint lane) {
  uint most = 0u;
  for (uint i = lane; i < p.group; i += 32u) most = max(most, magnitude(x[i]));
  const RoundedGroup to = rounded_group(simd_max(most));
  device uchar* codes = part + r.slot * p.dim + g * p.group;
  for (uint i = lane; i < p.group; i += 32u) codes[i] = rounded(x[i], to);
  if (lane == 0u) scales_of(part, r.page_rows, p.dim)[g * r.page_rows + r.slot] = to.scale;
}

// The same with 8 bits. One simdgroup a group of channels; n counts groups of keys and, with
// VALUES, of values.
kernel void append_kv8(device const float* k [[buffer(0)]],
                       device const float* v [[buffer(1)]],
                       device const AppendRow* rows [[buffer(2)]],
                       constant AppendParams& p [[buffer(3)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  const uint groups = p.dim / p.group, i = group * sgs + sg, g = i % groups, part = i / groups;
  if (i < p.n) {  // for a whole simdgroup
#if VALUES
    device const AppendRow& r = rows[part / 2u];
    if ((part & 1u) == 1u) {
      append_group(v + ulong(r.row) * p.v_stride + g * p.group, r.v, r, p, g, lane);
    } else {
      append_group(k + ulong(r.row) * p.k_stride + g * p.group, r.k, r, p, g, lane);
    }
#else
    device const AppendRow& r = rows[part];
    append_group(k + ulong(r.row) * p.k_stride + g * p.group, r.k, r, p, g, lane);
#endif
  }
}
