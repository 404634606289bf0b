// Products with many rows. A threadgroup has 8 warps; each has TILES tiles of 16 rows of the matrix, and all have the same COLS times 8 rows of X. A
// warp goes through all groups of the inputs: limbs come to threadgroup memory STAGES - 1 groups ahead, codes to registers one group ahead.
// A slice's sum is added to those before when it is complete, so that bits are those of few.cu.
#include "limbs.cu"

#define ROWS (COLS * 8)  // of X
#define STAGES 3
// Bytes from row to row in threadgroup memory: of two rows that are read together one has the banks that the other leaves.
#define STRIDE (GROUP == 128 ? RECORD + 64 : RECORD)
#define THREADS 256u

struct Stage {
  u8 limbs[ROWS * STRIDE];
  float2 sums[ROWS];
};

FN void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
FN void copy8(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
FN void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
FN void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Brings a group of all rows; index has the rows' numbers among the limbs.
FN void bring(Stage& s, const u8* limbs, const float2* sums, const u32* index, u32 group, u32 groups) {
  for (u32 i = threadIdx.x; i < ROWS * (RECORD / 16); i += THREADS) {
    const u32 row = i / (RECORD / 16), at = i % (RECORD / 16) * 16u;
    copy16(s.limbs + row * STRIDE + at, limbs + ((u64)index[row] * groups + group) * RECORD + at);
  }
  for (u32 i = threadIdx.x; i < ROWS; i += THREADS) copy8(s.sums + i, sums + (u64)index[i] * groups + group);
}

struct Memory {
  Stage stage[STAGES];
  u32 index[ROWS];
};

struct Heights {
  float v[2][2];  // scales, biases of a lane's two rows
};

// The results of a warp: acc[tile][column][slot·2 + i], of rows g and g+8 (of panels 2g and 2g+1) and columns 2t+i.
FN void product(float (&total)[TILES][COLS][4], Memory& memory, const Tile (&tiles)[TILES], const u8* limbs, const float2* sums, u32 cols) {
  const u32 lane = threadIdx.x & 31u, g = lane >> 2, t = lane & 3u;
  const Slices s = slices_of(cols);
#pragma unroll
  for (u32 i = 0; i < STAGES - 1; i++) {
    if (i < s.groups) bring(memory.stage[i], limbs, sums, memory.index, i, s.groups);
    copies_end();
  }
  Codes codes[TILES];
  Heights heights[TILES];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
    load_codes(codes[m], tiles[m], 0, true);
    load_pair(heights[m].v[0], tiles[m].scales, 0, true);
    load_pair(heights[m].v[1], tiles[m].biases, 0, true);
  }
  float acc[TILES][COLS][4];
#pragma unroll
  for (u32 m = 0; m < TILES; m++) {
#pragma unroll
    for (u32 c = 0; c < COLS; c++) acc[m][c][0] = acc[m][c][1] = acc[m][c][2] = acc[m][c][3] = 0.0f;
  }
  u32 left = s.each, stage = 0;
  bool begun = false;
  for (u32 group = 0; group < s.groups; group++) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    {
      const u32 ahead = group + STAGES - 1, into = stage == 0 ? STAGES - 1 : stage - 1;
      if (ahead < s.groups) bring(memory.stage[into], limbs, sums, memory.index, ahead, s.groups);
      copies_end();
    }
    u32 a[TILES][CHUNKS][2][PIECES];
    float h[TILES][2][2];
#pragma unroll
    for (u32 m = 0; m < TILES; m++) {
#pragma unroll
      for (u32 k = 0; k < CHUNKS; k++) {
#pragma unroll
        for (u32 i = 0; i < PIECES; i++) a[m][k][0][i] = piece(codes[m].w[k][0], i, t), a[m][k][1][i] = piece(codes[m].w[k][1], i, t);
      }
      h[m][0][0] = heights[m].v[0][0], h[m][0][1] = heights[m].v[0][1], h[m][1][0] = heights[m].v[1][0], h[m][1][1] = heights[m].v[1][1];
      const bool more = group + 1 < s.groups;
      load_codes(codes[m], tiles[m], group + 1, more);
      load_pair(heights[m].v[0], tiles[m].scales, group + 1, more);
      load_pair(heights[m].v[1], tiles[m].biases, group + 1, more);
    }
    const Stage& in = memory.stage[stage];
#pragma unroll
    for (u32 c = 0; c < COLS; c++) {
      Limbs b;
      fetch(b, in.limbs + (c * 8u + g) * STRIDE, t);
      const float2 s0 = in.sums[c * 8u + 2u * t], s1 = in.sums[c * 8u + 2u * t + 1u];
#pragma unroll
      for (u32 m = 0; m < TILES; m++) {
        Sums d;
        clear(d);
#pragma unroll
        for (u32 k = 0; k < CHUNKS; k++) {
#pragma unroll
          for (u32 i = 0; i < PIECES; i += 2) {
            mma_signed(d.v[0], a[m][k][0][i], a[m][k][1][i], a[m][k][0][i + 1], a[m][k][1][i + 1], b.v[0][k][i], b.v[0][k][i + 1]);
            mma_unsigned(d.v[1], a[m][k][0][i], a[m][k][1][i], a[m][k][0][i + 1], a[m][k][1][i + 1], b.v[1][k][i], b.v[1][k][i + 1]);
            mma_unsigned(d.v[2], a[m][k][0][i], a[m][k][1][i], a[m][k][0][i + 1], a[m][k][1][i + 1], b.v[2][k][i], b.v[2][k][i + 1]);
          }
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          const float2 v = i & 1u ? s1 : s0;
          acc[m][c][i] = fmaf(v.x, term(d, i, h[m][0][i >> 1], h[m][1][i >> 1], v.y), acc[m][c][i]);
        }
      }
    }
    if (--left == 0 || group + 1 == s.groups) {  // a slice is complete
#pragma unroll
      for (u32 m = 0; m < TILES; m++) {
#pragma unroll
        for (u32 c = 0; c < COLS; c++) {
#pragma unroll
          for (u32 i = 0; i < 4; i++) {
            total[m][c][i] = begun ? total[m][c][i] + acc[m][c][i] : acc[m][c][i];
            acc[m][c][i] = 0.0f;
          }
        }
      }
      begun = true;
      left = s.each;
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
}

// The row of the matrix that slot i of a lane is, within a tile.
FN u32 row_of(u32 g, u32 slot) {
#if LAYOUT == 1
  return 2u * g + slot;
#else
  return g + 8u * slot;
#endif
}
