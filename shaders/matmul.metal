// Products of a matrix with rows of vectors, see product.metal for the #define lines.
#include "product.metal"

struct MatMulParams {
  uint w_rows;
  uint w_cols;
  uint rows;
  uint x_stride;  // floats from row to row
  uint y_stride;
  uint group_bits;
};
// y[r, o] = Σ_i w[o, i]·x[r, i] + bias[o]. Grid: tiles of the matrix's rows, XROWS rows of x. BIAS:
// 0 without bias.
[[max_total_threads_per_threadgroup(256)]]
kernel void matmul(device const uchar* codes [[buffer(0)]],
                   device const ushort* scales [[buffer(1)]],
                   device const ushort* biases [[buffer(2)]],
                   device const float* x [[buffer(3)]],
                   device const float* bias [[buffer(4)]],
                   device float* y [[buffer(5)]],
                   constant MatMulParams& p [[buffer(6)]],
                   uint2 group [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]],
                   uint sg [[simdgroup_index_in_threadgroup]],
                   uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[PARTS];
  Weights w;
  w.codes = codes;
  w.scales = scales;
  w.biases = biases;
  w.rows = p.w_rows;
  w.cols = p.w_cols;
  w.group_bits = p.group_bits;
  const uint first = group.x * TILE, row = group.y * XROWS;
  ulong at[XROWS];
  for (uint v = 0; v < XROWS; v++) at[v] = ulong(min(row + v, p.rows - 1u)) * p.x_stride;
  product(w, first, x, at, lane, sg, sgs, part);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    const uint o = first + i % TILE, r = row + i / TILE;
    if (o < p.w_rows && r < p.rows) {
#if BIAS
      y[ulong(r) * p.y_stride + o] = part[i] + bias[o];
#else
      y[ulong(r) * p.y_stride + o] = part[i];
#endif
    }
  }
}
