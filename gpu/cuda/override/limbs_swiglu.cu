// The products of a gate and an up, of one shape, and y = silu(gate)·up. All three are written, y
// last: it may be one of the others. PARTS is 2; the first half of the warps has the gates, the
// other the ups. Grid: tiles of a matrix, rows by XROWS: 1, 2, 4 or a multiple of 8.
#define TILES 1
#define KINDS 2
#define EARLY 1
#define RESIDENT 16
#include "slices.cu"
#include "product.cu"
#include "parts.cu"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) limbs_swiglu(const float* x, const u8* limbs, const float2* sums, ALL_PARTS, float* y,
                                                                              MatMulParams p) {
  __shared__ float results[MEMORY];
  launch_dependents();
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, first = blockIdx.x * 16u, row = blockIdx.y * XROWS, rows_of_matrix = p.part[0].rows;
  const Weights w = warp < SLICES ? Weights{codes0, scales0, biases0} : Weights{codes1, scales1, biases1};
  Tile tiles[1] = {tile_of(w, first, rows_of_matrix, INPUTS, lane)};
  const int n = XROWS < 8 ? XROWS : 8;
  Rows rows[XROWS / n];
#pragma unroll
  for (u32 c = 0; c < XROWS / n; c++) {
    const u32 mine = min(row + c * 8u + (lane >> 2) % n, p.rows - 1u);
    rows[c] = Rows{x + (u64)mine * p.x_stride, limbs + (u64)mine * GROUPS * RECORD, sums + (u64)mine * GROUPS};
  }
  product<n, XROWS / n>(results, tiles, rows);
  for (u32 i = threadIdx.x; i < XROWS * 16u; i += 32u * WARPS) {
    const u32 o = first + i % 16u, r = row + i / 16u;
    if (o < rows_of_matrix && r < p.rows) {
      const float gate = result(results, i / 16u, i % 16u), up = result(results, i / 16u, 16u + i % 16u);
      y0[(u64)r * p.part[0].y_stride + o] = gate;
      y1[(u64)r * p.part[1].y_stride + o] = up;
      y[(u64)r * rows_of_matrix + o] = silu(gate) * up;
    }
  }
}
