#include "few.cu"

// GATED 1: y[pair, o] = silu(gate[o]·x)·(up[o]·x), TILES is 2: a tile of gates and that of ups. GATED 0: y[pair, o] = W[o]·x, WHICH 0 the gates, 1 the ups,
// 2 the downs. Jobs have at most 8 pairs. Grid: tiles, jobs.
template <int N>
FN void job_of(float* part, const ExpertWeights& e, const ExpertJob& job, const u32* pairs, const Rows& all, float* y, const ExpertParams& p) {
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, groups = p.w_cols / GROUP;
  Tile tiles[TILES];
#if GATED
  const u32 first = blockIdx.x * 16u;
  tiles[0] = tile_of(e.gate, first, p.w_rows, p.w_cols, lane);
  tiles[1] = tile_of(e.up, first, p.w_rows, p.w_cols, lane);
#else
  const u32 first = blockIdx.x * TILES * 16u;
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(WHICH == 0 ? e.gate : WHICH == 1 ? e.up : e.down, first + 16u * m, p.w_rows, p.w_cols, lane);
#endif
  const u64 mine = pairs[job.first + min((lane >> 2) % N, job.count - 1u)] / p.divide;
  const Rows rows = {all.x + mine * p.x_stride, all.limbs + mine * groups * RECORD, all.sums + mine * groups};
  product<N>(part, tiles, rows, p.w_cols, lane, warp);
#if GATED
  for (u32 i = threadIdx.x; i < N * 16u; i += blockDim.x) {
    const u32 o = first + i % 16u, v = i / 16u;
    if (o < p.w_rows && v < job.count) y[(u64)pairs[job.first + v] * p.y_stride + o] = silu(part[v * 32u + i % 16u]) * part[v * 32u + 16u + i % 16u];
  }
#else
  for (u32 i = threadIdx.x; i < N * TILES * 16u; i += blockDim.x) {
    const u32 o = first + i % (TILES * 16u), v = i / (TILES * 16u);
    if (o < p.w_rows && v < job.count) y[(u64)pairs[job.first + v] * p.y_stride + o] = part[i];
  }
#endif
}

extern "C" __global__ void __launch_bounds__(256, 2) limbs_experts(const ExpertWeights* experts, const ExpertJob* jobs, const u32* pairs, const float* x,
                                                                const u8* limbs, const float2* sums, float* y, ExpertParams p) {
  __shared__ float part[8 * PART];
  const ExpertJob job = jobs[blockIdx.y];
  const ExpertWeights& e = experts[job.expert];
  const Rows all = {x, limbs, sums};
  if (job.count == 0) return;
  if (job.count == 1) job_of<1>(part, e, job, pairs, all, y, p);
  else if (job.count == 2) job_of<2>(part, e, job, pairs, all, y, p);
  else if (job.count <= 4) job_of<4>(part, e, job, pairs, all, y, p);
  else job_of<8>(part, e, job, pairs, all, y, p);
}
