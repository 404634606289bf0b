#include "many.cu"

// As limbs_experts, for jobs of at most ROWS pairs. GATED 1: TILES is 2. Grid: tiles by 8·TILES, of GATED by 8, and jobs.
extern "C" __global__ void __launch_bounds__(THREADS, 1) limbs_experts_many(const ExpertWeights* experts, const ExpertJob* jobs, const u32* pairs, const u8* limbs,
                                                                     const float2* sums, float* y, ExpertParams p) {
  __shared__ __align__(16) Memory memory;
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3u;
  const ExpertJob job = jobs[blockIdx.y];
  const ExpertWeights& e = experts[job.expert];
  if (job.count == 0) return;
  for (u32 i = threadIdx.x; i < ROWS; i += THREADS) memory.index[i] = pairs[job.first + min(i, job.count - 1u)] / p.divide;
  Tile tiles[TILES];
#if GATED
  const u32 first = (blockIdx.x * 8u + warp) * 16u;
  tiles[0] = tile_of(e.gate, first, p.w_rows, p.w_cols, lane);
  tiles[1] = tile_of(e.up, first, p.w_rows, p.w_cols, lane);
#else
  const u32 first = (blockIdx.x * 8u + warp) * TILES * 16u;
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(WHICH == 0 ? e.gate : WHICH == 1 ? e.up : e.down, first + 16u * m, p.w_rows, p.w_cols, lane);
#endif
  __syncthreads();
  float sum[TILES][COLS][4];
  product(sum, memory, tiles, limbs, sums, p.w_cols);
#pragma unroll
  for (u32 c = 0; c < COLS; c++) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      const u32 v = c * 8u + 2u * t + (i & 1u);
      if (v >= job.count) continue;
      float* to = y + (u64)pairs[job.first + v] * p.y_stride;
#if GATED
      const u32 o = first + row_of(g, i >> 1);
      if (o < p.w_rows) to[o] = silu(sum[0][c][i]) * sum[1][c][i];
#else
#pragma unroll
      for (u32 m = 0; m < TILES; m++) {
        const u32 o = first + 16u * m + row_of(g, i >> 1);
        if (o < p.w_rows) to[o] = sum[m][c][i];
      }
#endif
    }
  }
}
