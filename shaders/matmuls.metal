// Products of up to 4 matrices of one format with the same rows of vectors, in one launch, see
// product.metal for the #define lines.
#include "product.metal"

struct JoinedMatrix {
  device const uchar* codes;
  device const ushort* scales;
  device const ushort* biases;
  device const float* bias;
  device float* y;
  uint rows;      // of the matrix
  // the first of its tiles among those of all matrices; where there is no matrix, past the last
  uint tile;
  uint y_stride;  // floats from row to row
  uint pad;
};
struct MatMulsParams {
  JoinedMatrix m[4];
  uint cols;
  uint rows;
  uint x_stride;  // floats from row to row
  uint group_bits;
};

inline Weights weights_of(constant JoinedMatrix& m, constant MatMulsParams& p) {
  Weights w;
  w.codes = m.codes;
  w.scales = m.scales;
  w.biases = m.biases;
  w.rows = m.rows;
  w.cols = p.cols;
  w.group_bits = p.group_bits;
  return w;
}

inline void vectors_of(uint row, constant MatMulsParams& p, thread ulong* at) {
  for (uint v = 0; v < XROWS; v++) at[v] = ulong(min(row + v, p.rows - 1u)) * p.x_stride;
}

// y_m[r, o] = Σ_i w_m[o, i]·x[r, i] + bias_m[o] for each matrix m. Grid: tiles of all matrices'
// rows, XROWS rows of x. BIAS: 0 without biases.
[[max_total_threads_per_threadgroup(256)]]
kernel void matmuls(device const float* x [[buffer(0)]],
                    constant MatMulsParams& p [[buffer(1)]],
                    uint2 group [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint sg [[simdgroup_index_in_threadgroup]],
                    uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[PARTS];
  uint which = 0u;
  for (uint i = 1u; i < 4u; i++) which += group.x >= p.m[i].tile ? 1u : 0u;
  constant JoinedMatrix& m = p.m[which];
  const uint first = (group.x - m.tile) * TILE, row = group.y * XROWS;
  ulong at[XROWS];
  vectors_of(row, p, at);
  product(weights_of(m, p), first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    const uint o = first + i % TILE, r = row + i / TILE;
    if (o < m.rows && r < p.rows) {
#if BIAS
      m.y[ulong(r) * m.y_stride + o] = part[i] + m.bias[o];
#else
      m.y[ulong(r) * m.y_stride + o] = part[i];
#endif
    }
  }
}

// y_2 = silu(y_0)·y_1, where y_0 and y_1 are the products of matrices 0 and 1, of one shape. All
// three are written, y_2 last: it may be one of the others. Grid: tiles of a matrix's rows, XROWS
// rows of x.
[[max_total_threads_per_threadgroup(256)]]
kernel void matmul_swiglu(device const float* x [[buffer(0)]],
                          constant MatMulsParams& p [[buffer(1)]],
                          uint2 group [[threadgroup_position_in_grid]],
                          uint lane [[thread_index_in_simdgroup]],
                          uint sg [[simdgroup_index_in_threadgroup]],
                          uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[PARTS];
  threadgroup float gates[XROWS * TILE];
  const uint first = group.x * TILE, row = group.y * XROWS;
  ulong at[XROWS];
  vectors_of(row, p, at);
  product(weights_of(p.m[0], p), first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) gates[i] = part[i];
  product(weights_of(p.m[1], p), first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    const uint o = first + i % TILE, r = row + i / TILE;
    if (o < p.m[0].rows && r < p.rows) {
      p.m[0].y[ulong(r) * p.m[0].y_stride + o] = gates[i];
      p.m[1].y[ulong(r) * p.m[1].y_stride + o] = part[i];
      p.m[2].y[ulong(r) * p.m[2].y_stride + o] = silu(gates[i]) * part[i];
    }
  }
}
