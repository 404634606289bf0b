// Products of tiles of matrices with rows. A warp has TILES tiles of 16 rows of a matrix in one
// slice of their inputs, a threadgroup of WARPS warps all slices, of KINDS times TILES tiles.
//
// A tensor core instruction multiplies 8 columns. With N < 8 rows of X they are N rows in each of
// 8/N groups, so that a pass takes 8/N groups and converts, scales and adds up once; in the pass
// for a group the other groups' columns are 0. More rows are C times 8: codes are loaded and taken
// apart once for all.
//
// EARLY 1: slice waits for earlier kernels, once the first codes are being loaded.
//
// #define lines: SPLIT 0 makes limbs of float32 rows in each warp, 1 reads those that limbs_split
// has made; XROWS, the most rows of a threadgroup.

#define WARPS (SLICES * KINDS)
#define BLOCK_ROWS (KINDS * TILES * 16)

// How many groups ahead of those that are multiplied a tile's codes are loaded, and how many warps
// are to share a processor: what registers hold keeps memory at work. docs/experiments.md has the
// figures.
#define AHEAD_WORDS (CHUNKS * 2 * LANE_WORDS * TILES / (XROWS == 1 ? 2 : 1))
#define AHEAD_MOST (AHEAD_WORDS <= 4 ? 8 : AHEAD_WORDS <= 8 ? 4 : AHEAD_WORDS <= 16 ? 2 : 1)
#define AHEAD (AHEAD_MOST < EACH ? AHEAD_MOST : EACH)
#define BLOCKS (RESIDENT / WARPS > 0 ? RESIDENT / WARPS : 1)

// The scales and biases of a lane's two rows in the groups of its sums.
struct Heights {
  float scales[TILES][2][2], biases[TILES][2][2];
};

// Those of the pass from group base on, of left that are left; tiles stand at the group that 0 is.
template <int N>
FN void load_heights(Heights& h, const Tile (&tiles)[TILES], u32 base, u32 left, u32 lane) {
  const u32 shown = 2u * (lane & 3u) / N;
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
    Tile at = tiles[m];
    advance(at, shown);
#pragma unroll
    for (u32 i = 0; i < (N == 1 ? 2 : 1); i++) {
      load_pair(h.scales[m][i], at.scales, base + i, base + shown + i < left);
      load_pair(h.biases[m][i], at.biases, base + i, base + shown + i < left);
    }
  }
}

// The limbs of a lane's column in that pass.
template <int N>
FN void load_limbs(Limbs& b, const Rows& rows, u32 base, u32 left, u32 lane) {
  const u32 t = lane & 3u, mine = (lane >> 2) / N;
  const bool there = base + mine < left;
#if SPLIT
  fetch(b, rows.limbs + (u64)mine * RECORD + (u64)base * RECORD, t, there);
  const float2 v = there ? rows.sums[mine + base] : make_float2(0.0f, 0.0f);
  b.scale = v.x, b.sum = v.y;
#else
  split(b, rows.x + (u64)mine * GROUP + (u64)base * GROUP, t, there);
#endif
}

// Adds a pass's groups to acc, in their order: where they lie in several lanes, from lane to lane.
template <int N>
FN void add_pass(float (&acc)[TILES][2][2], const Sums (&d)[TILES], const Limbs& b, const Heights& h, u32 base, u32 left, u32 lane) {
  const u32 t = lane & 3u, group = base + 2u * t / N;
  const bool here = group < left, next = group + 1u < left;
  // 2^e or s, and n, of my two columns.
  const float e0 = __shfl_sync(ALL, b.scale, 8u * t), e1 = __shfl_sync(ALL, b.scale, 8u * t + 4u);
  const float n0 = __shfl_sync(ALL, b.sum, 8u * t), n1 = __shfl_sync(ALL, b.sum, 8u * t + 4u);
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
#pragma unroll
    for (u32 slot = 0; slot < 2; slot++) {
      const float v0 = term(d[m], 2u * slot, h.scales[m][0][slot], h.biases[m][0][slot], n0);
      const float v1 = term(d[m], 2u * slot + 1u, h.scales[m][N == 1 ? 1 : 0][slot], h.biases[m][N == 1 ? 1 : 0][slot], n1);
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

// The sums over a slice, the left groups from where tiles and rows stand: acc[c][tile][i][slot], i
// is the row 2t+i of rows[c], of 1 row 0. There is more than one of rows only with N = 8.
template <int N, int C>
FN void slice(float (&acc)[C][TILES][2][2], Tile (&tiles)[TILES], Rows (&rows)[C], u32 left, u32 lane) {
  const u32 mine = (lane >> 2) / N, t = lane & 3u;  // the group of my column in a pass
  const u32 step = 8 / N;                           // groups of a pass
  Codes codes[TILES][AHEAD];
#pragma unroll
  for (u32 i = 0; i < AHEAD; i++) {
#pragma unroll
    for (u32 m = 0; m < TILES; m++) load_codes(codes[m][i], tiles[m], i, i < left);
  }
#if EARLY
  wait_prerequisites();  // before rows are read
#endif
  Heights heights, later;
  load_heights<N>(heights, tiles, 0, left, lane);
  Limbs now, then;
  load_limbs<N>(now, rows[0], 0, left, lane);
  for (;;) {
#pragma unroll
    for (u32 from = 0; from < 8; from += step) {
      if (from >= EACH || from >= left) break;
      const bool more = from + step < EACH && from + step < left;
      if (more) load_heights<N>(later, tiles, from + step, left, lane);
#pragma unroll
      for (u32 c = 0; c < C; c++) {
        if (c + 1 < C) load_limbs<N>(then, rows[(c + 1) % C], from, left, lane);
        else if (more) load_limbs<N>(then, rows[0], from + step, left, lane);
        Sums d[TILES];
#pragma unroll
        for (u32 i = from; i < from + step; i++) {
          if (i >= EACH) break;
          const u32 mask = N == 8 || mine == i - from ? ALL : 0u;
#pragma unroll
          for (u32 m = 0; m < TILES; m++) {
            if (i == from) multiply<1>(d[m], codes[m][i % AHEAD], now, mask, t);
            else multiply<0>(d[m], codes[m][i % AHEAD], now, mask, t);
            if (c + 1 == C && i + AHEAD < EACH) load_codes(codes[m][i % AHEAD], tiles[m], i + AHEAD, i + AHEAD < left);
          }
        }
        add_pass<N>(acc[c], d, now, heights, from, left, lane);
        now = then;
      }
      heights = later;
    }
    if (EACH <= 8 || left <= 8) break;
    left -= 8;  // the next pass's limbs, scales and biases are there already
#pragma unroll
    for (u32 m = 0; m < TILES; m++) advance(tiles[m], 8);
#pragma unroll
    for (u32 c = 0; c < C; c++) {
#if SPLIT
      rows[c].limbs += 8 * RECORD;
      rows[c].sums += 8;
#else
      rows[c].x += 8 * GROUP;
#endif
    }
  }
}

// Adds up a warp's slice and leaves it in part[warp][(row of X·TILES + tile)·16 + row of the tile],
// for every thread to read.
#define PART (XROWS * TILES * 16)
#define MEMORY (WARPS * PART)  // floats that a threadgroup needs
template <int N, int C>
FN void product(float* part, Tile (&tiles)[TILES], Rows (&rows)[C]) {
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3u, first = warp % SLICES * EACH;
  float acc[C][TILES][2][2];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) advance(tiles[m], first);
#pragma unroll
  for (u32 c = 0; c < C; c++) {
    rows[c].x += (u64)first * GROUP;
    rows[c].limbs += (u64)first * RECORD;
    rows[c].sums += first;
#pragma unroll
    for (u32 m = 0; m < TILES; m++) acc[c][m][0][0] = acc[c][m][0][1] = acc[c][m][1][0] = acc[c][m][1][1] = 0.0f;
  }
  slice<N, C>(acc, tiles, rows, GROUPS % EACH == 0 ? EACH : min((u32)EACH, GROUPS - first), lane);
#pragma unroll
  for (u32 c = 0; c < C; c++) {
#pragma unroll
    for (u32 m = 0; m < TILES; m++) {
#pragma unroll
      for (u32 i = 0; i < (N == 1 ? 1 : 2); i++) {
        const u32 row = N == 1 ? 0u : 2u * t + i;
        if (row < N && (N > 1 || t == 0)) {
          float* to = part + warp * PART + ((c * 8u + row) * TILES + m) * 16u;
          to[row_of(g, 0)] = acc[c][m][i][0];
          to[row_of(g, 1)] = acc[c][m][i][1];
        }
      }
    }
  }
  __syncthreads();
}

// The sum of the slices that product left for row v of X and row o, below BLOCK_ROWS, of the tiles.
FN float result(const float* part, u32 v, u32 o) {
  const u32 of_warp = TILES * 16;
  const float* at = part + o / of_warp * SLICES * PART + v * of_warp + o % of_warp;
  float sum = at[0];
  for (u32 k = 1; k < SLICES; k++) sum += at[k * PART];
  return sum;
}
