// Y = X·Wᵀ + bias, XROWS rows of X a threadgroup: 1, 2, 4 or a multiple of 8. STAGED: see staged.cu.
// Grid: BLOCK_ROWS rows of all parts, rows by XROWS.
#define EARLY !STAGED
#include "slices.cu"
#if STAGED
#include "staged.cu"
#else
#define KINDS 1
#define RESIDENT (XROWS > 16 ? 8 : 16)
#include "product.cu"
#endif
#include "parts.cu"

#if STAGED
// Rows of X from first on; past the last, that again.
struct NextRows {
  u32 first, rows;
  FN u64 operator()(u32 r) const { return min(first + r, rows - 1u); }
};
#endif

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) limbs_matmul(const float* x, const u8* limbs, const float2* sums, ALL_PARTS, MatMulParams p) {
  __shared__ float results[MEMORY];
#if EARLY
  launch_dependents();
#else
  begin();
#endif
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, row = blockIdx.y * XROWS;
  THE_PART();
  const u32 first = (blockIdx.x - part.p.first) * BLOCK_ROWS;
  Tile tiles[TILES];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(part.w, first + 16u * (m + (STAGED ? TILES * warp : 0u)), part.p.rows, INPUTS, lane);
#if STAGED
  product<XROWS / 8>(results, tiles, Rows{x, limbs, sums}, NextRows{row, p.rows});
#else
  const int n = XROWS < 8 ? XROWS : 8;
  Rows rows[XROWS / n];
#pragma unroll
  for (u32 c = 0; c < XROWS / n; c++) {
    const u32 mine = min(row + c * 8u + (lane >> 2) % n, p.rows - 1u);
    rows[c] = Rows{x + (u64)mine * p.x_stride, limbs + (u64)mine * GROUPS * RECORD, sums + (u64)mine * GROUPS};
  }
  product<n, XROWS / n>(results, tiles, rows);
#endif
  for (u32 i = threadIdx.x; i < XROWS * BLOCK_ROWS; i += 32u * WARPS) {
    const u32 at = i % BLOCK_ROWS, o = first + at, r = row + i / BLOCK_ROWS;
    if (o < part.p.rows && r < p.rows) store(part, r, o, result(results, i / BLOCK_ROWS, at));
  }
}
