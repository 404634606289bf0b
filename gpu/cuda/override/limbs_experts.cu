// GATED 1: y[pair, o] = silu(gate[o]·x)·(up[o]·x), the first half of the warps has the gates, the
// other the ups. GATED 0: y[pair, o] = W[o]·x, WHICH 0 the gates, 1 the ups, 2 the downs. Jobs have
// at most XROWS pairs, 8 or 32. BIASED: experts have biases. CLAMPED: gates and ups are bounded, as
// in shaders/experts.metal. Grid: TILES tiles, jobs.
#define KINDS (1 + GATED)
#define RESIDENT (XROWS > 8 ? 8 * (3 - TILES) : 24)
#include "product.cu"

// The two factors of a gated unit, see gpu.Clamp: CLAMPED 1 bounds gates before their activation, 2
// after it. What is above the limit is compared, so that a NaN stays one.
FN float gate_factor(float g, const ExpertParams& p) {
#if CLAMPED == 2
  const float s = silu(g);
  return s > p.limit ? p.limit : s;
#elif CLAMPED
  return silu(p.alpha * (g > p.limit ? p.limit : g));
#else
  return silu(g);
#endif
}
FN float up_factor(float u, const ExpertParams& p) {
#if CLAMPED == 2
  return u > p.limit ? p.limit : u < -p.limit ? -p.limit : u;
#elif CLAMPED
  return ((u > p.limit ? p.limit : u < -p.limit ? -p.limit : u) + 1.0f) / p.alpha;
#else
  return u;
#endif
}

// A job of at most N·C pairs.
template <int N, int C>
FN void job_of(float* part, const ExpertWeights& e, const ExpertJob& job, const u32* pairs, const Rows& all, float* y, const ExpertParams& p) {
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, groups = GROUPS, first = blockIdx.x * TILES * 16u;
#if GATED
  const Weights& w = warp < SLICES ? e.gate : e.up;
#else
  const Weights& w = WHICH == 0 ? e.gate : WHICH == 1 ? e.up : e.down;
#endif
  Tile tiles[TILES];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) tiles[m] = tile_of(w, first + 16u * m, p.w_rows, INPUTS, lane);
  Rows rows[C];
#pragma unroll
  for (u32 c = 0; c < C; c++) {
    const u64 mine = pairs[job.first + min(8u * c + (lane >> 2) % N, job.count - 1u)] / p.divide;
    rows[c] = Rows{all.x + mine * p.x_stride, all.limbs + mine * groups * RECORD, all.sums + mine * groups};
  }
  product<N, C>(part, tiles, rows, warp % SLICES);
  for (u32 i = threadIdx.x; i < N * C * TILES * 16u; i += 32u * WARPS) {
    const u32 o = first + i % (TILES * 16u), v = i / (TILES * 16u);
    if (o >= p.w_rows || v >= job.count) continue;
    float r = sum_slices(part, 0, SLICES, i);
#if BIASED && GATED
    r = gate_factor(r + e.gate_bias[o], p) * up_factor(sum_slices(part, SLICES, SLICES, i) + e.up_bias[o], p);
#elif GATED
    r = gate_factor(r, p) * up_factor(sum_slices(part, SLICES, SLICES, i), p);
#elif BIASED
    r += (WHICH == 0 ? e.gate_bias : WHICH == 1 ? e.up_bias : e.down_bias)[o];
#endif
    y[(u64)pairs[job.first + v] * p.y_stride + o] = r;
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) limbs_experts(const ExpertWeights* experts, const ExpertJob* jobs, const u32* pairs,
                                                                               const float* x, const u8* limbs, const float2* sums, float* y,
                                                                               ExpertParams p) {
  __shared__ float part[WARPS * PART];
  begin();
  const ExpertJob job = jobs[blockIdx.y];
  const ExpertWeights& e = experts[job.expert];
  const Rows all = {x, limbs, sums};
  if (job.count == 0) return;
#if XROWS == 8
  if (job.count == 1) job_of<1, 1>(part, e, job, pairs, all, y, p);
  else if (job.count == 2) job_of<2, 1>(part, e, job, pairs, all, y, p);
  else if (job.count <= 4) job_of<4, 1>(part, e, job, pairs, all, y, p);
  else job_of<8, 1>(part, e, job, pairs, all, y, p);
#else
  if (job.count <= 8) job_of<8, 1>(part, e, job, pairs, all, y, p);
  else if (job.count <= 16) job_of<8, 2>(part, e, job, pairs, all, y, p);
  else job_of<8, 4>(part, e, job, pairs, all, y, p);
#endif
}
