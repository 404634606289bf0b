// Y = X·Wᵀ + bias. Grid: 8·TILES tiles of all parts, rows by ROWS.
#include "many.cu"
#include "parts.cu"

extern "C" __global__ void __launch_bounds__(THREADS, 1) limbs_matmul_many(const u8* limbs, const float2* sums, ALL_PARTS, MatMulParams p) {
  __shared__ __align__(16) Memory memory;
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3u;
  THE_PART();
  const u32 first = ((blockIdx.x - part.p.first) * 8u + warp) * TILES * 16u, row = blockIdx.y * ROWS;
  for (u32 i = threadIdx.x; i < ROWS; i += THREADS) memory.index[i] = min(row + i, p.rows - 1u);
  Tile tiles[TILES];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(part.w, first + 16u * m, part.p.rows, p.cols, lane);
  __syncthreads();
  float sum[TILES][COLS][4];
  product(sum, memory, tiles, limbs, sums, p.cols);
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
#pragma unroll
    for (u32 c = 0; c < COLS; c++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        const u32 o = first + 16u * m + row_of(g, i >> 1), r = row + c * 8u + 2u * t + (i & 1u);
        if (o < part.p.rows && r < p.rows) store(part, r, o, sum[m][c][i]);
      }
    }
  }
}
