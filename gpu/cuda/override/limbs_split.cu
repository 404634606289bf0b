// Makes limbs of rows of float32, once for all that multiply by them.
#include "limbs.cu"

struct SplitParams {
  u32 rows, cols, x_stride, pad;
};
// limbs[row][group] is a RECORD, sums[row][group] 2^e or s, and n. 4 threads have a group.
extern "C" __global__ void __launch_bounds__(256) limbs_split(const float* x, u8* limbs, float2* sums, SplitParams p) {
  begin();
  const u32 i = (blockIdx.x * 256u + threadIdx.x) >> 2, t = threadIdx.x & 3u, groups = p.cols / GROUP, n = p.rows * groups;
  const u32 at = min(i, n - 1u), row = at / groups, group = at % groups;
  Limbs b;
  split(b, x + (u64)row * p.x_stride + group * GROUP, t, true);
  if (i >= n) return;
#pragma unroll
  for (u32 l = 0; l < LIMBS; l++) {
#pragma unroll
    for (u32 k = 0; k < CHUNKS; k++) {
#pragma unroll
      for (u32 m = 0; m < PIECES; m++) ((u32*)(limbs + (u64)i * RECORD + l * GROUP + k * CHUNK))[PIECES * t + m] = b.v[l][k][m];
    }
  }
  if (t == 0) sums[i] = make_float2(b.scale, b.sum);
}
