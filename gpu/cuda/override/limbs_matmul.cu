// Y = X·Wᵀ + bias, XROWS rows of X a threadgroup: 1, 2, 4 or 8. Grid: TILES tiles of all parts, rows by XROWS.
#include "few.cu"
#include "parts.cu"

extern "C" __global__ void __launch_bounds__(256, 2) limbs_matmul(const float* x, const u8* limbs, const float2* sums, ALL_PARTS, MatMulParams p) {
  __shared__ float results[8 * PART];
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, groups = p.cols / GROUP;
  THE_PART();
  const u32 first = (blockIdx.x - part.p.first) * TILES * 16u, row = blockIdx.y * XROWS;
  Tile tiles[TILES];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(part.w, first + 16u * m, part.p.rows, p.cols, lane);
  const u32 mine = min(row + (lane >> 2) % XROWS, p.rows - 1u);
  const Rows rows = {x + (u64)mine * p.x_stride, limbs + (u64)mine * groups * RECORD, sums + (u64)mine * groups};
  product<XROWS>(results, tiles, rows, p.cols, lane, warp);
  for (u32 i = threadIdx.x; i < XROWS * TILES * 16u; i += blockDim.x) {
    const u32 o = first + i % (TILES * 16u), r = row + i / (TILES * 16u);
    if (o < part.p.rows && r < p.rows) store(part, r, o, results[i]);
  }
}
