// Products of tiles of matrices with many rows. A threadgroup copies the limbs of XROWS rows of X to
// its own memory, a quantisation group after the other and STAGES - 1 groups ahead, where they serve
// all of its warps. A warp has TILES tiles of 16 rows of a matrix and all slices of their inputs, one
// after the other: sums are those of product.cu, bit by bit.
//
// #define lines: XROWS, a multiple of 8.

// Warps of a threadgroup, and how many are to share a processor.
#define WARPS 4
#define RESIDENT 12

// Rows that a threadgroup's tiles have, and how many floats a warp leaves.
#define BLOCK_ROWS (WARPS * TILES * 16)
#define PART (XROWS * TILES * 16)

// A stage has the limbs of a group of the rows, and 2^e or s, and n, of each. MEMORY is the floats
// that a threadgroup needs.
#define STAGE (XROWS * (RECORD + 8))
#define STAGES (3 * STAGE <= 48 << 10 ? 3 : 2)
#define MEMORY (STAGES * STAGE / 4 > WARPS * PART ? STAGES * STAGE / 4 : WARPS * PART)
#define BLOCKS (RESIDENT / WARPS > 0 ? RESIDENT / WARPS : 1)

// What a thread copies of a stage, of C times 8 rows: pieces of 16 bytes of limbs, and the numbers
// beside them of a row.
#define ROW_PIECES (RECORD / 16)
template <int C>
struct Copies {
  static const u32 pieces = 8 * C * ROW_PIECES, each = (pieces + 32 * WARPS - 1) / (32 * WARPS);
  const u8* limbs[each];
  const float2* sums;
};

// Row r of X is row at(r) in memory.
template <int C, class At>
FN void find(Copies<C>& c, const Rows& x, const At& at) {
#pragma unroll
  for (u32 i = 0; i < c.each; i++) {
    const u32 piece = min(threadIdx.x + 32u * WARPS * i, c.pieces - 1u);
    c.limbs[i] = x.limbs + at(piece / ROW_PIECES) * GROUPS * RECORD + piece % ROW_PIECES * 16u;
  }
  c.sums = x.sums + at(min(threadIdx.x, 8u * C - 1u)) * GROUPS;
}

// Begins to copy a group to a stage.
template <int C>
FN void copy_group(u8* stage, const Copies<C>& c, u32 group) {
#pragma unroll
  for (u32 i = 0; i < c.each; i++) {
    const u32 piece = threadIdx.x + 32u * WARPS * i;
    if ((i + 1) * 32 * WARPS <= c.pieces || piece < c.pieces) copy16(stage + 16u * piece, c.limbs[i] + (u64)group * RECORD);
  }
  if (threadIdx.x < 8 * C) copy8(stage + XROWS * RECORD + 8u * threadIdx.x, c.sums + group);
}

// What a warp needs of a group of its tiles.
struct Group {
  Codes codes[TILES];
  float scales[TILES][2], biases[TILES][2];
};
FN void load_group(Group& v, const Tile (&tiles)[TILES], u32 group, bool there) {
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
    load_codes(v.codes[m], tiles[m], group, there);
    load_pair(v.scales[m], tiles[m].scales, group, there);
    load_pair(v.biases[m], tiles[m].biases, group, there);
  }
}

// Adds a group's products with the rows of a stage.
template <int C>
FN void add_group(float (&slice)[C][TILES][2][2], const Group& v, const u8* stage, u32 lane) {
  const u32 g = lane >> 2, t = lane & 3u;
#pragma unroll
  for (u32 c = 0; c < C; c++) {
    Limbs b;
    fetch(b, stage + (8u * c + g) * RECORD, t, true);
    const float4 of = *(const float4*)(stage + XROWS * RECORD + 8u * (8u * c + 2u * t));  // of my two columns
#pragma unroll
    for (u32 m = 0; m < TILES; m++) {
      Sums d;
      multiply<1>(d, v.codes[m], b, ALL, t);
#pragma unroll
      for (u32 slot = 0; slot < 2; slot++) {
        float(&to)[2][2] = slice[c][m];
        to[0][slot] = fmaf(of.x, term(d, 2u * slot, v.scales[m][slot], v.biases[m][slot], of.y), to[0][slot]);
        to[1][slot] = fmaf(of.z, term(d, 2u * slot + 1u, v.scales[m][slot], v.biases[m][slot], of.w), to[1][slot]);
      }
    }
  }
}

// The products of C times 8 rows of X. It leaves a warp's sums in memory[warp·PART + (row of X·TILES +
// tile)·16 + row of the tile], for every thread to read.
//
// Loops are as long as registers and the nearest instruction cache allow: unrolled ones, and loads
// two groups ahead, were slower (docs/experiments.md).
template <int C, class At>
FN void product(float* memory, Tile (&tiles)[TILES], const Rows& x, const At& at) {
  const u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3u;
  u8* stages = (u8*)memory;
  Copies<C> copies;
  find(copies, x, at);
#pragma unroll
  for (u32 i = 0; i < STAGES - 1; i++) {
    if (i < GROUPS) copy_group(stages + i * STAGE, copies, i);
    copied_so_far();
  }
  float sum[C][TILES][2][2];
  Group now, next;
  load_group(now, tiles, 0, true);
  u32 stage = 0, free_stage = (STAGES - 1) * STAGE;  // bytes
#pragma unroll 1
  for (u32 first = 0; first < GROUPS; first += EACH) {
    float slice[C][TILES][2][2];
#pragma unroll
    for (u32 i = 0; i < C * TILES * 4; i++) (&slice[0][0][0][0])[i] = 0.0f;
#pragma unroll 1
    for (u32 group = first; group < min(first + EACH, (u32)GROUPS); group++) {
      load_group(next, tiles, 1, group + 1u < GROUPS);
      wait_for_copies<STAGES - 2>();
      __syncthreads();
      if (group + STAGES - 1 < GROUPS) copy_group(stages + free_stage, copies, group + STAGES - 1);
      copied_so_far();
      add_group<C>(slice, now, stages + stage, lane);
      free_stage = stage;
      stage = stage == (STAGES - 1) * STAGE ? 0 : stage + STAGE;
      now = next;
#pragma unroll
      for (u32 m = 0; m < TILES; m++) advance(tiles[m], 1);
    }
#pragma unroll
    for (u32 i = 0; i < C * TILES * 4; i++) {
      float &total = (&sum[0][0][0][0])[i], mine = (&slice[0][0][0][0])[i];
      total = first == 0 ? mine : total + mine;
    }
  }
  wait_for_copies<0>();
  __syncthreads();  // the stages' memory is free
#pragma unroll
  for (u32 c = 0; c < C; c++) {
#pragma unroll
    for (u32 m = 0; m < TILES; m++) {
#pragma unroll
      for (u32 i = 0; i < 2; i++) {
        float* to = memory + warp * PART + ((8u * c + 2u * t + i) * TILES + m) * 16u;
        to[row_of(g, 0)] = sum[c][m][i][0];
        to[row_of(g, 1)] = sum[c][m][i][1];
      }
    }
  }
  __syncthreads();
}

// What product left for row v of X and row o, below BLOCK_ROWS, of the tiles.
FN float result(const float* memory, u32 v, u32 o) {
  const u32 of_warp = TILES * 16;
  return memory[o / of_warp * PART + v * of_warp + o % of_warp];
}
