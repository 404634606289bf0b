// Products of each head's vector with that head's own block of a matrix, see product.metal for the
// #define lines; LAYOUT is 0 or 2.
#include "product.metal"

struct HeadParams {
  uint w_rows;
  uint w_cols;
  uint rows;
  uint in;
  uint out;
  uint head_rows;
  uint first_row;
  uint x_row;  // floats from row to row
  uint x_head;
  uint y_row;
  uint y_head;
  uint group_bits;
};

inline Weights weights_of(device const uchar* codes, device const ushort* scales, device const ushort* biases, uint rows,
                          constant HeadParams& p) {
  Weights w;
  w.codes = codes;
  w.scales = scales;
  w.biases = biases;
  w.rows = rows;
  w.cols = p.w_cols;
  w.group_bits = p.group_bits;
  return w;
}

// y[r, h, o] = Σ_i w[h·head_rows + first_row + o, i]·x[r, h, i]. Grid: tiles of out, heads, XROWS
// rows of x.
[[max_total_threads_per_threadgroup(256)]]
kernel void head_matmul(device const uchar* codes [[buffer(0)]],
                        device const ushort* scales [[buffer(1)]],
                        device const ushort* biases [[buffer(2)]],
                        device const float* x [[buffer(3)]],
                        device float* y [[buffer(4)]],
                        constant HeadParams& p [[buffer(5)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint sg [[simdgroup_index_in_threadgroup]],
                        uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[PARTS];
  const uint h = group.y, block = h * p.head_rows + p.first_row, first = group.x * TILE, row = group.z * XROWS;
  const Weights w = weights_of(codes, scales, biases, block + p.out, p);
  ulong at[XROWS];
  for (uint v = 0; v < XROWS; v++) at[v] = ulong(min(row + v, p.rows - 1u)) * p.x_row + h * p.x_head;
  product(w, block + first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    const uint o = first + i % TILE, r = row + i / TILE;
    if (o < p.out && r < p.rows) y[ulong(r) * p.y_row + h * p.y_head + o] = part[i];
  }
}

// The values of a unit of one row of the matrix, dequantised.
inline void unit_values(Weights w, uint row, uint unit, thread float* values) {
#if BITS <= 8
  const uint words = w.cols / UNIT, groups = w.cols >> w.group_bits;
  const uint word = ((device const uint*)w.codes)[word_at(row, unit, words)];
  const ulong g = group_at(row, (unit * UNIT) >> w.group_bits, groups);
  const float s = scale_f32(w.scales, g);
#ifdef UNBIASED
#pragma unroll
  for (uint c = 0; c < UNIT; c++) values[c] = code_f32(word, code_bit(c)) * s;
#ifdef FACTOR
  const float factor = row_factor(w, row);
#pragma unroll
  for (uint c = 0; c < UNIT; c++) values[c] *= factor;
#endif
#else
  const float b = scale_f32(w.biases, g);
#pragma unroll
  for (uint c = 0; c < UNIT; c++) values[c] = fma(code_f32(word, code_bit(c)), s, b);
#endif
#else
  const float4 e = load_elements(w, row, unit * UNIT);
  for (uint c = 0; c < UNIT; c++) values[c] = e[c];
#endif
}

// y[r, h, o] = Σ_i w[h·head_rows + first_row + i, o]·x[r, h, i], o < w_cols. Grid: 32 units of out,
// heads, rows. The inputs are spread over 8 simdgroups, whose sums are added in order.
[[max_total_threads_per_threadgroup(256)]]
kernel void head_matmul_transposed(device const uchar* codes [[buffer(0)]],
                                   device const ushort* scales [[buffer(1)]],
                                   device const ushort* biases [[buffer(2)]],
                                   device const float* x [[buffer(3)]],
                                   device float* y [[buffer(4)]],
                                   constant HeadParams& p [[buffer(5)]],
                                   uint3 group [[threadgroup_position_in_grid]],
                                   uint lane [[thread_index_in_simdgroup]],
                                   uint sg [[simdgroup_index_in_threadgroup]],
                                   uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[8][32 * UNIT];
  const uint h = group.y, r = group.z, block = h * p.head_rows + p.first_row, units = (p.w_cols + UNIT - 1u) / UNIT;
  const uint unit = min(group.x * 32u + lane, units - 1u);
  const Weights w = weights_of(codes, scales, biases, p.w_rows, p);
  const ulong at = ulong(r) * p.x_row + h * p.x_head;
  float acc[UNIT];
  for (uint c = 0; c < UNIT; c++) acc[c] = 0.0f;
  for (uint i = sg; i < p.in; i += sgs) {
    float values[UNIT];
    unit_values(w, block + i, unit, values);
    for (uint c = 0; c < UNIT; c++) acc[c] = fma(values[c], x[at + i], acc[c]);
  }
  for (uint c = 0; c < UNIT; c++) part[sg][lane * UNIT + c] = acc[c];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = sg * 32u + lane; i < 32u * UNIT; i += sgs * 32u) {
    const uint o = group.x * 32u * UNIT + i;
    if (o < p.w_cols) {
      float s = part[0][i];
      for (uint k = 1; k < sgs; k++) s += part[k][i];
      y[ulong(r) * p.y_row + h * p.y_head + o] = s;
    }
  }
}
