// The products of a gate and an up, of one shape, and y = silu(gate)·up. All three are written, y last: it may be one of the others. TILES is 2: a tile of
// gates and that of ups; PARTS is 2. Grid: tiles of a matrix, rows by XROWS: 1, 2, 4 or 8.
#include "few.cu"
#include "parts.cu"

extern "C" __global__ void __launch_bounds__(256, 2) limbs_swiglu(const float* x, const u8* limbs, const float2* sums, ALL_PARTS, float* y, MatMulParams p) {
  __shared__ float results[8 * PART];
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, groups = p.cols / GROUP;
  const u32 first = blockIdx.x * 16u, row = blockIdx.y * XROWS, rows_of_matrix = p.part[0].rows;
  Tile tiles[TILES];
  tiles[0] = tile_of({codes0, scales0, biases0}, first, rows_of_matrix, p.cols, lane);
  tiles[1] = tile_of({codes1, scales1, biases1}, first, rows_of_matrix, p.cols, lane);
  const u32 mine = min(row + (lane >> 2) % XROWS, p.rows - 1u);
  const Rows rows = {x + (u64)mine * p.x_stride, limbs + (u64)mine * groups * RECORD, sums + (u64)mine * groups};
  product<XROWS>(results, tiles, rows, p.cols, lane, warp);
  for (u32 i = threadIdx.x; i < XROWS * 16u; i += blockDim.x) {
    const u32 o = first + i % 16u, v = i / 16u, r = row + v;
    if (o < rows_of_matrix && r < p.rows) {
      const float gate = results[v * 32u + i % 16u], up = results[v * 32u + 16u + i % 16u];
      y0[(u64)r * p.part[0].y_stride + o] = gate;
      y1[(u64)r * p.part[1].y_stride + o] = up;
      y[(u64)r * rows_of_matrix + o] = silu(gate) * up;
    }
  }
}
