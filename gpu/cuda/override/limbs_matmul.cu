// Y = X·Wᵀ + bias, XROWS rows of X a threadgroup: 1, 2, 4 or a multiple of 8. Grid: TILES tiles of
// all parts, rows by XROWS.
#define KINDS 1
#define RESIDENT (XROWS > 16 ? 8 : 16)
#include "product.cu"
#include "parts.cu"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) limbs_matmul(const float* x, const u8* limbs, const float2* sums, ALL_PARTS, MatMulParams p) {
  __shared__ float results[WARPS * PART];
  begin();
  const u32 lane = threadIdx.x & 31u, groups = GROUPS;
  THE_PART();
  const u32 first = (blockIdx.x - part.p.first) * TILES * 16u, row = blockIdx.y * XROWS;
  Tile tiles[TILES];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(part.w, first + 16u * m, part.p.rows, INPUTS, lane);
  const int n = XROWS < 8 ? XROWS : 8;
  Rows rows[XROWS / n];
#pragma unroll
  for (u32 c = 0; c < XROWS / n; c++) {
    const u32 mine = min(row + c * 8u + (lane >> 2) % n, p.rows - 1u);
    rows[c] = Rows{x + (u64)mine * p.x_stride, limbs + (u64)mine * groups * RECORD, sums + (u64)mine * groups};
  }
  product<n, XROWS / n>(results, tiles, rows, threadIdx.x >> 5);
  for (u32 i = threadIdx.x; i < XROWS * TILES * 16u; i += 32u * WARPS) {
    const u32 o = first + i % (TILES * 16u), r = row + i / (TILES * 16u);
    if (o < part.p.rows && r < p.rows) store(part, r, o, sum_slices(results, 0, SLICES, i));
  }
}
