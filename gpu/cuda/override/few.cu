// Products with few rows, at the speed of memory. A threadgroup has TILES tiles of 16 rows of a matrix, and a warp for each slice of their inputs.
// A tensor core instruction multiplies 8 columns: with N rows of X they are N rows in each of 8/N groups, so that a pass takes 8/N groups and
// converts, scales and adds up once. In the pass for a group the other groups' columns are 0.
//
// SPLIT: 0 makes limbs of float32 rows in each warp, 1 reads those that limbs_split has made.
#include "limbs.cu"

// Rows of X: where lanes find row r.
struct Rows {
  const float* x;
  const u8* limbs;
  const float2* sums;
};

// How many groups ahead of those that are multiplied a tile's codes are loaded: as many as registers hold.
#define AHEAD_WORDS (CHUNKS * 2 * LANE_WORDS * TILES)
#define AHEAD (AHEAD_WORDS <= 4 ? 8 : AHEAD_WORDS <= 8 ? 4 : AHEAD_WORDS <= 16 ? 2 : 1)

// What a pass needs beside the codes: the limbs of a lane's column, and the scales and biases of its two rows in the groups of its sums.
struct Pass {
  Limbs b;
  float scales[TILES][2][2], biases[TILES][2][2];
};

template <int N>
FN void load_pass(Pass& s, const Tile (&tiles)[TILES], const Rows& rows, u32 base, u32 first, u32 last, u32 lane) {
  const u32 g = lane >> 2, t = lane & 3u, group = base + 2u * t / N;
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
#pragma unroll
    for (u32 i = 0; i < (N == 1 ? 2 : 1); i++) {
      load_pair(s.scales[m][i], tiles[m].scales, group + i, group + i < last);
      load_pair(s.biases[m][i], tiles[m].biases, group + i, group + i < last);
    }
  }
  const u32 column = base + g / N;
#if SPLIT
  const u32 at = column < last ? column : first;
  fetch(s.b, rows.limbs + (u64)at * RECORD, t);
  const float2 v = rows.sums[at];
  s.b.scale = v.x, s.b.sum = v.y;
#else
  split(s.b, rows.x + (u64)column * GROUP, t, column < last);
#endif
}

// Adds a pass's groups to acc, in their order: where they lie in several lanes, from lane to lane.
template <int N>
FN void add_pass(float (&acc)[TILES][2][2], const Sums (&d)[TILES], const Pass& s, u32 base, u32 last, u32 lane) {
  const u32 t = lane & 3u, group = base + 2u * t / N;
  const bool here = group < last, next = group + 1u < last;
  // 2^e and n of my two columns.
  const float e0 = __shfl_sync(ALL, s.b.scale, 8u * t), e1 = __shfl_sync(ALL, s.b.scale, 8u * t + 4u);
  const float n0 = __shfl_sync(ALL, s.b.sum, 8u * t), n1 = __shfl_sync(ALL, s.b.sum, 8u * t + 4u);
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
#pragma unroll
    for (u32 slot = 0; slot < 2; slot++) {
      const float v0 = term(d[m], 2u * slot, s.scales[m][0][slot], s.biases[m][0][slot], n0);
      const float v1 = term(d[m], 2u * slot + 1u, s.scales[m][N == 1 ? 1 : 0][slot], s.biases[m][N == 1 ? 1 : 0][slot], n1);
      float sum0 = acc[m][0][slot], sum1 = acc[m][1][slot];
#pragma unroll
      for (u32 step = 0; step < (N == 8 ? 1 : N == 4 ? 2 : 4); step++) {
        const u32 from = N == 4 ? (lane & ~2u) | (2u * step) : (lane & ~3u) | step;
        const float v = here ? fmaf(e0, v0, sum0) : sum0;
        if (N == 1) {
          sum0 = __shfl_sync(ALL, next ? fmaf(e1, v1, v) : v, from);
        } else {
          const float w = here ? fmaf(e1, v1, sum1) : sum1;
          sum0 = N == 8 ? v : __shfl_sync(ALL, v, from);
          sum1 = N == 8 ? w : __shfl_sync(ALL, w, from);
        }
      }
      acc[m][0][slot] = sum0, acc[m][1][slot] = sum1;
    }
  }
}

// The sums over a slice's groups from first to last: acc[tile][i][slot], i is the row 2t+i of X, of 1 row 0.
template <int N>
FN void slice(float (&acc)[TILES][2][2], const Tile (&tiles)[TILES], const Rows& rows, u32 first, u32 last, u32 lane) {
  const u32 mine = (lane >> 2) / N, t = lane & 3u;  // the group of my column in a pass
  Codes codes[TILES][AHEAD];
#pragma unroll
  for (u32 i = 0; i < AHEAD; i++) {
#pragma unroll
    for (u32 m = 0; m < TILES; m++) load_codes(codes[m][i], tiles[m], first + i, first + i < last);
  }
  Pass now;
  load_pass<N>(now, tiles, rows, first, first, last, lane);
  for (u32 base = first; base < last; base += 8) {
#pragma unroll
    for (u32 from = 0; from < 8; from += 8 / N) {
      if (base + from >= last) break;
      Pass then;
      if (base + from + 8 / N < last) load_pass<N>(then, tiles, rows, base + from + 8 / N, first, last, lane);
      Sums d[TILES];
#pragma unroll
      for (u32 m = 0; m < TILES; m++) clear(d[m]);
#pragma unroll
      for (u32 i = from; i < from + 8 / N; i++) {
        const u32 mask = N == 8 || mine == i - from ? ALL : 0u, ahead = base + i + AHEAD;
#pragma unroll
        for (u32 m = 0; m < TILES; m++) {
          multiply(d[m], codes[m][i % AHEAD], now.b, mask, t);
          load_codes(codes[m][i % AHEAD], tiles[m], ahead, ahead < last);
        }
      }
      add_pass<N>(acc, d, now, base + from, last, lane);
      now = then;
    }
  }
}

// The results of a threadgroup's tiles: sums[(row·TILES + tile)·16 + row of the tile], for every thread to read. part is [slice][8·TILES·16].
#define PART (8 * TILES * 16)
template <int N>
FN void product(float* part, const Tile (&tiles)[TILES], const Rows& rows, u32 cols, u32 lane, u32 warp) {
  const u32 g = lane >> 2, t = lane & 3u;
  const Slices s = slices_of(cols);
  float acc[TILES][2][2];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) acc[m][0][0] = acc[m][0][1] = acc[m][1][0] = acc[m][1][1] = 0.0f;
  slice<N>(acc, tiles, rows, warp * s.each, min((warp + 1u) * s.each, s.groups), lane);
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
#pragma unroll
    for (u32 i = 0; i < (N == 1 ? 1 : 2); i++) {
      const u32 row = N == 1 ? 0u : 2u * t + i;
      if (row < N && (N > 1 || t == 0)) {
#pragma unroll
        for (u32 slot = 0; slot < 2; slot++) {
#if LAYOUT == 1
          const u32 o = 2u * g + slot;
#else
          const u32 o = g + 8u * slot;
#endif
          part[warp * PART + (row * TILES + m) * 16u + o] = acc[m][i][slot];
        }
      }
    }
  }
  __syncthreads();
  for (u32 i = warp * 32u + lane; i < N * TILES * 16u; i += s.n * 32u) {
    float sum = part[i];
    for (u32 k = 1; k < s.n; k++) sum += part[k * PART + i];
    part[i] = sum;
  }
  __syncthreads();
}
