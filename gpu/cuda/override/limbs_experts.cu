// GATED 1: y[pair, o] = silu(gate[o]·x)·(up[o]·x): half of a threadgroup's tiles are the gates', the
// others the same rows of the ups. GATED 0: y[pair, o] = W[o]·x, WHICH 0 the gates, 1 the ups, 2 the
// downs. Jobs have at most XROWS pairs, 8, or 48 if they are STAGED, see staged.cu. BIASED:
// experts have biases. CLAMPED: gates and ups are bounded, as in shaders/experts.metal. SETTLED:
// another launch of this kernel was for the same jobs and came before, so that jobs, pairs and
// experts may be read ahead of the wait. Grid: MATRIX_ROWS rows, jobs.
#define EARLY (SETTLED && !STAGED)
#include "slices.cu"
#if STAGED
#include "staged.cu"
#else
#define KINDS 1
#define RESIDENT 16
#include "product.cu"
#endif
#define MATRIX_ROWS (BLOCK_ROWS / (1 + GATED))  // of each matrix, a threadgroup's

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

// Loads what an earlier kernel has written, maybe ahead of the wait.
FN u32 load_early(const u32* p) {
#if EARLY
  return load_l2(p);
#else
  return *p;
#endif
}
FN ExpertJob job_at(const ExpertJob* job) {
  return ExpertJob{load_early(&job->expert), load_early(&job->first), load_early(&job->count), 0};
}

// The tiles of a warp.
FN void tiles_of(Tile (&tiles)[TILES], const ExpertWeights& e, const ExpertParams& p) {
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5;
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
    const u32 at = 16u * ((STAGED ? warp * TILES : 0u) + m);  // among the threadgroup's
#if GATED
    const Weights& w = at < MATRIX_ROWS ? e.gate : e.up;
#else
    const Weights& w = WHICH == 0 ? e.gate : WHICH == 1 ? e.up : e.down;
#endif
    tiles[m] = tile_of(w, blockIdx.x * MATRIX_ROWS + at % MATRIX_ROWS, p.w_rows, INPUTS, lane);
  }
}

// Writes what product left for the first so many pairs of a job.
FN void store_job(const float* memory, const ExpertWeights& e, const ExpertJob& job, const u32* pairs, u32 most, float* y, const ExpertParams& p) {
  for (u32 i = threadIdx.x; i < most * MATRIX_ROWS; i += 32u * WARPS) {
    const u32 at = i % MATRIX_ROWS, o = blockIdx.x * MATRIX_ROWS + at, v = i / MATRIX_ROWS;
    if (o >= p.w_rows || v >= job.count) continue;
    float r = result(memory, v, at);
#if GATED
    float up = result(memory, v, MATRIX_ROWS + at);
#if BIASED
    r += e.gate_bias[o], up += e.up_bias[o];
#endif
    r = gate_factor(r, p) * up_factor(up, p);
#elif BIASED
    r += (WHICH == 0 ? e.gate_bias : WHICH == 1 ? e.up_bias : e.down_bias)[o];
#endif
    y[(u64)pairs[job.first + v] * p.y_stride + o] = r;
  }
}

#if STAGED
// The rows of X of a job's pairs; past the last, that again.
struct JobRows {
  const u32* pairs;
  u32 count, divide;
  FN u64 operator()(u32 r) const { return pairs[min(r, count - 1u)] / divide; }
};

// A job of at most C times 8 pairs.
template <int C>
FN void job_of(float* part, const ExpertWeights& e, const ExpertJob& job, const u32* pairs, const Rows& all, float* y, const ExpertParams& p) {
  Tile tiles[TILES];
  tiles_of(tiles, e, p);
  product<C>(part, tiles, all, JobRows{pairs + job.first, job.count, p.divide});
  store_job(part, e, job, pairs, 8 * C, y, p);
}
#else
// A job of at most N·C pairs.
template <int N, int C>
FN void job_of(float* part, const ExpertWeights& e, const ExpertJob& job, const u32* pairs, const Rows& all, float* y, const ExpertParams& p) {
  const u32 lane = threadIdx.x & 31u;
  Tile tiles[TILES];
  tiles_of(tiles, e, p);
  Rows rows[C];
#pragma unroll
  for (u32 c = 0; c < C; c++) {
    const u32 pair = job.first + min(8u * c + (lane >> 2) % N, job.count - 1u);
    const u64 mine = load_early(pairs + pair) / p.divide;
    rows[c] = Rows{all.x + mine * p.x_stride, all.limbs + mine * GROUPS * RECORD, all.sums + mine * GROUPS};
  }
  product<N, C>(part, tiles, rows);
  store_job(part, e, job, pairs, N * C, y, p);
}
#endif

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) limbs_experts(const ExpertWeights* experts, const ExpertJob* jobs, const u32* pairs,
                                                                               const float* x, const u8* limbs, const float2* sums, float* y,
                                                                               ExpertParams p) {
  __shared__ float part[MEMORY];
#if EARLY
  launch_dependents();
#else
  // After the wait it is known which lines of the table are needed; the cache has none of them left.
  const u32 group = blockIdx.y * (p.w_rows / MATRIX_ROWS) + blockIdx.x;
  if (threadIdx.x == 0) prefetch(experts + group % p.experts);
  begin_settled();
#endif
  const ExpertJob job = job_at(jobs + blockIdx.y);
  const ExpertWeights& e = experts[job.expert];
  const Rows all = {x, limbs, sums};
  if (job.count == 0) {
#if EARLY
    wait_prerequisites();  // kernels that wait for this one rely on those before it, too
#endif
    return;
  }
#if STAGED
  if (job.count <= 8) job_of<1>(part, e, job, pairs, all, y, p);
  else if (job.count <= 16) job_of<2>(part, e, job, pairs, all, y, p);
  else if (job.count <= 24) job_of<3>(part, e, job, pairs, all, y, p);
  else if (job.count <= 32) job_of<4>(part, e, job, pairs, all, y, p);
  else if (job.count <= 40) job_of<5>(part, e, job, pairs, all, y, p);
  else job_of<6>(part, e, job, pairs, all, y, p);
#else
  if (job.count == 1) job_of<1, 1>(part, e, job, pairs, all, y, p);
  else if (job.count == 2) job_of<2, 1>(part, e, job, pairs, all, y, p);
  else if (job.count <= 4) job_of<4, 1>(part, e, job, pairs, all, y, p);
  else job_of<8, 1>(part, e, job, pairs, all, y, p);
#endif
}
