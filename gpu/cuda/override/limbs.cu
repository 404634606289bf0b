// Products of affine matrices with rows of float32, exactly added up by the integer tensor cores.
//
// Within a quantisation group of the weights (GROUP inputs) a row x is whole numbers of 24 bits
// times a power of two: n = rint(x·2^(22-e)), where 2^e <= max|x| < 2^(e+1). An input errs by half
// a unit, 2^(e-23), which is at most 2^-23 of the group's largest: that is how a float32 sum would
// round where all inputs are alike, and more where one is far larger than the others. The three
// bytes of n are limbs, the upper one signed, which are multiplied by codes of 8 bits or less and
// summed without any rounding. So which unit does it, in which order and in the company of which
// rows, changes nothing. What is rounded is done by the same instructions in the same order in all
// kernels here:
//
//   d      = a·2^-6 + (256·b + c)·2^-22         a, b, c the limbs' sums, the bracket rounded first
//   term   = fma(scale, d, bias·n)              n = 2^-22·Σn
//   slice  = fma(2^e, term, slice)              over the groups of a slice, ascending
//   result = (slice_0 + slice_1) + …            over the slices, whose number follows from the matrix, see product.cu
//
// The largest input of a group below 2^-105 counts as that, and what is then below 2^-128 as 0; a
// group with an input that is not finite makes the row's results NaN.
//
// ROUNDED 1 has one limb: n = rint(x/s), where s = max|x|/127 as the host has it (gpu.MatMul). Then
// s stands in place of 2^e above, d is the sum of its products, and n the sum of the limbs. A group
// whose largest input is below 127·2^-126 counts as zeros.
//
// #define lines: BITS 2, 4 or 8, GROUP 32, 64 or 128, LAYOUT 0 rows or 1 panels of 16 rows
// (model/quant), WIDE 1 where operands' places allow vectors to be loaded, ROUNDED. It needs the
// integer tensor cores of sm_80.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define FN __device__ __forceinline__

#include "ptx.cu"

#define ALL 0xffffffffu

// A chunk is what a step of one or two tensor core instructions takes; a lane has a quarter of it,
// inputs next to each other, PIECES times 4.
#define CHUNK (GROUP < 64 ? 32 : 64)
#define CHUNKS (GROUP / CHUNK)
#define PIECES (CHUNK / 16)
// Words of a chunk's codes that a lane loads of each of its two rows: its own, or with codes of 2
// bits and a chunk of 32 half of one.
#define LANE_WORDS (CHUNK * BITS / 128 > 0 ? CHUNK * BITS / 128 : 1)
#define CHUNK_WORDS (CHUNK * BITS / 32)
#define GROUP_WORDS (GROUP * BITS / 32)

#if ROUNDED
#define LIMBS 1
#else
#define LIMBS 3
#endif

// A row's limbs in memory: for each group the upper, the middle and the lower bytes of its inputs,
// or the one that there is. Beside them for each group 2^e, or s, and n.
#define RECORD (LIMBS * GROUP)

struct Weights {
  const u8* codes;
  const u16* scales;
  const u16* biases;
};

// Where a lane finds its two rows of a tile of 16: 2g and 2g+1 of a panel, g and g+8 of rows, g =
// lane/4.
struct Tile {
  const u32* codes[2];
  const u16* scales[2];
  const u16* biases[2];
};

// The row of the matrix that slot i of a lane is, within a tile.
FN u32 row_of(u32 g, u32 slot) {
#if LAYOUT == 1
  return 2u * g + slot;
#else
  return g + 8u * slot;
#endif
}

struct Codes {
  u32 w[CHUNKS][2][LANE_WORDS];
};

struct Limbs {
  u32 v[LIMBS][CHUNKS][PIECES];  // upper, middle, lower
  float scale, sum;              // 2^e or s, n
};

FN float f32(u32 bits) { return __uint_as_float(bits); }
FN float bf16(u32 bits) { return __uint_as_float(bits << 16); }

FN Tile tile_of(const Weights& w, u32 first, u32 rows, u32 cols, u32 lane) {
  const u32 g = lane >> 2, t = lane & 3u, words = cols / (32 / BITS), groups = cols / GROUP;
  const u32 word = CHUNK * BITS / 128 > 0 ? t * LANE_WORDS : t >> 1;
  Tile a;
#pragma unroll
  for (u32 i = 0; i < 2; i++) {
#if LAYOUT == 1
    // A panel past the end is the last one again.
    const u32 panel = min(first, rows - 1u) >> 4, row = 2u * g + i;
    a.codes[i] = (const u32*)w.codes + ((u64)panel * words + word) * 16u + row;
    a.scales[i] = w.scales + (u64)panel * groups * 16u + row;
    a.biases[i] = w.biases + (u64)panel * groups * 16u + row;
#else
    const u32 row = min(first + g + 8u * i, rows - 1u);
    a.codes[i] = (const u32*)w.codes + (u64)row * words + word;
    a.scales[i] = w.scales + (u64)row * groups;
    a.biases[i] = w.biases + (u64)row * groups;
#endif
  }
  return a;
}

// Moves a tile to a later group. Groups are counted from there: a small number that the compiler
// knows needs no address of its own.
FN void advance(Tile& a, u32 groups) {
  const u64 width = LAYOUT == 1 ? 16u : 1u;
#pragma unroll
  for (u32 i = 0; i < 2; i++) {
    a.codes[i] += groups * GROUP_WORDS * width;
    a.scales[i] += groups * width;
    a.biases[i] += groups * width;
  }
}

// The codes of a lane's two rows in one group; 0 unless the group is there.
FN void load_codes(Codes& c, const Tile& a, u64 group, bool there) {
#pragma unroll
  for (u32 k = 0; k < CHUNKS; k++) {
#if LAYOUT == 1
    const u64 at = (group * GROUP_WORDS + k * CHUNK_WORDS) * 16u;
#pragma unroll
    for (u32 j = 0; j < LANE_WORDS; j++) {
#if WIDE
      const uint2 v = load2(a.codes[0] + at + 16u * j, there);
      c.w[k][0][j] = v.x, c.w[k][1][j] = v.y;
#else
      c.w[k][0][j] = load1(a.codes[0] + at + 16u * j, there), c.w[k][1][j] = load1(a.codes[1] + at + 16u * j, there);
#endif
    }
#else
    const u64 at = group * GROUP_WORDS + k * CHUNK_WORDS;
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
#pragma unroll
      for (u32 j = 0; j < LANE_WORDS; j++) c.w[k][i][j] = load1(a.codes[i] + at + j, there);
    }
#endif
  }
}

// The scales or biases of a lane's two rows in one group.
FN void load_pair(float (&v)[2], const u16* const (&p)[2], u64 group, bool there) {
#if LAYOUT == 1
  const u64 at = group * 16u;
#else
  const u64 at = group;
#endif
#if LAYOUT == 1 && WIDE
  const u32 both = load1((const u32*)(p[0] + at), there);
  v[0] = bf16(both & 0xffffu), v[1] = f32(both & 0xffff0000u);
#else
  v[0] = there ? bf16(p[0][at]) : 0.0f, v[1] = there ? bf16(p[1][at]) : 0.0f;
#endif
}

// 4 codes next to each other, one a byte: piece m of a row's part of a chunk.
FN u32 piece(const u32 (&w)[LANE_WORDS], u32 m, u32 t) {
#if BITS == 8
  return w[m];
#elif BITS == 4 && LAYOUT == 1
  return (w[m >> 1] >> (4u * (m & 1u))) & 0x0f0f0f0fu;
#elif BITS == 4
  const u32 even = w[m >> 1] & 0x0f0f0f0fu, odd = (w[m >> 1] >> 4) & 0x0f0f0f0fu;
  return __byte_perm(even, odd, m & 1u ? 0x7362u : 0x5140u);
#else
  const u32 i = CHUNK == 64 ? m : m + 2u * (t & 1u);  // piece of the word
#if LAYOUT == 1
  return (w[0] >> (2u * i)) & 0x03030303u;
#else
  const u32 byte = (w[0] >> (8u * i)) & 0xffu;
  const u32 pairs = (byte | byte << 12) & 0x000f000fu;
  return (pairs | pairs << 6) & 0x03030303u;
#endif
#endif
}

// x/s rounded to the nearest, where by is 1/s: a product, its error, and the error's share.
FN float quotient(float x, float s, float by) {
  const float q = x * by;
  return fmaf(fmaf(-q, s, x), by, q);
}

// Makes limbs of a row's group, of which the 4 lanes with one lane/4 have a quarter each, see
// CHUNK. Without it, they are of zeros.
FN void split(Limbs& b, const float* x, u32 t, bool there) {
  float v[CHUNKS][4 * PIECES];
#pragma unroll
  for (u32 k = 0; k < CHUNKS; k++) {
    const float* p = x + k * CHUNK + 4u * PIECES * t;
#pragma unroll
    for (u32 i = 0; i < PIECES; i++) {
#if WIDE
      const float4 u = there ? *(const float4*)(p + 4u * i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      v[k][4u * i] = u.x, v[k][4u * i + 1u] = u.y, v[k][4u * i + 2u] = u.z, v[k][4u * i + 3u] = u.w;
#else
#pragma unroll
      for (u32 j = 4u * i; j < 4u * i + 4u; j++) v[k][j] = there ? p[j] : 0.0f;
#endif
    }
  }
  u32 most = 0;  // of magnitudes' bits, whose order is that of magnitudes, NaN above all
#pragma unroll
  for (u32 k = 0; k < CHUNKS; k++) {
#pragma unroll
    for (u32 i = 0; i < 4 * PIECES; i++) most = max(most, __float_as_uint(v[k][i]) & 0x7fffffffu);
  }
  most = max(most, __shfl_xor_sync(ALL, most, 1));
  most = max(most, __shfl_xor_sync(ALL, most, 2));
#if ROUNDED
  const bool none = most < 0x03fe0000u;  // 127·2^-126
  const float s = none ? 1.0f : f32(most) / 127.0f, by = 1.0f / s;
#else
  const u32 exponent = most >> 23, e = min(max(exponent, 22u), 254u);  // by 127 more than it is
  const float up = f32((276u - e) << 23);
#endif
  int sum = 0;
#pragma unroll
  for (u32 k = 0; k < CHUNKS; k++) {
#pragma unroll
    for (u32 i = 0; i < PIECES; i++) {
      u32 n[4];
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
#if ROUNDED
        const int q = __float2int_rn(quotient(v[k][4u * i + j], s, by));
#else
        const int q = min(__float2int_rn(v[k][4u * i + j] * up), 0x7fffff);
#endif
        sum += q;
        n[j] = (u32)q;
      }
#if ROUNDED
      b.v[0][k][i] = __byte_perm(__byte_perm(n[0], n[1], 0x0040), __byte_perm(n[2], n[3], 0x0040), 0x5410);
#else
      const u32 low01 = __byte_perm(n[0], n[1], 0x5140), low23 = __byte_perm(n[2], n[3], 0x5140);
      b.v[0][k][i] = __byte_perm(__byte_perm(n[0], n[1], 0x0062), __byte_perm(n[2], n[3], 0x0062), 0x5410);
      b.v[1][k][i] = __byte_perm(low01, low23, 0x7632);
      b.v[2][k][i] = __byte_perm(low01, low23, 0x5410);
#endif
    }
  }
  sum += __shfl_xor_sync(ALL, sum, 1);
  sum += __shfl_xor_sync(ALL, sum, 2);
#if ROUNDED
  b.scale = most >= 0x7f800000u ? f32(0x7fc00000u) : none ? 0.0f : s;
  b.sum = (float)sum;
#else
  b.scale = exponent == 255u ? f32(0x7fc00000u) : f32(e << 23);
  b.sum = (float)sum * 2.384185791015625e-07f;
#endif
}

// Reads a lane's part of the limbs of a row's group; record is in any memory. Unless it is there,
// they are zeros.
FN void fetch(Limbs& b, const u8* record, u32 t, bool there) {
#pragma unroll
  for (u32 l = 0; l < LIMBS; l++) {
#pragma unroll
    for (u32 k = 0; k < CHUNKS; k++) {
      const u8* p = record + l * GROUP + k * CHUNK + 4u * PIECES * t;
#if CHUNK == 64
      const uint4 v = there ? *(const uint4*)p : make_uint4(0, 0, 0, 0);
      b.v[l][k][0] = v.x, b.v[l][k][1] = v.y, b.v[l][k][2] = v.z, b.v[l][k][3] = v.w;
#else
      const uint2 v = there ? *(const uint2*)p : make_uint2(0, 0);
      b.v[l][k][0] = v.x, b.v[l][k][1] = v.y;
#endif
    }
  }
}

// The sums of 16 rows' codes times the limbs of 8 columns: a lane has those of rows g and g+8 with
// columns 2t and 2t+1. Those of upper limbs, or of the one that there is, begin as the bits of a
// float, so that adding up integers counts up its significand: no conversion is needed. Middle and
// lower ones together are below 2^31.
struct Sums {
  u32 v[LIMBS][4];
};
#if ROUNDED
#define BEGIN 0x4b400000u  // 1.5·2^23: units of 1, both signs
#else
#define BEGIN 0x48400000u  // 1.5·2^17: units of 2^-6, both signs
#endif

// Adds the products of a group, with the limbs of the columns for which mask is all ones. START 1
// begins the sums, 0 adds to them.
template <int START>
FN void multiply(Sums& d, const Codes& c, const Limbs& b, u32 mask, u32 t) {
#pragma unroll
  for (u32 k = 0; k < CHUNKS; k++) {
#pragma unroll
    for (u32 m = 0; m < PIECES; m += 2) {
      const u32 a0 = piece(c.w[k][0], m, t), a1 = piece(c.w[k][1], m, t), a2 = piece(c.w[k][0], m + 1, t), a3 = piece(c.w[k][1], m + 1, t);
      Sums from = d;
      if (START && k == 0 && m == 0) {
#pragma unroll
        for (u32 i = 0; i < 4 * LIMBS; i++) from.v[i / 4][i % 4] = i < 4 ? BEGIN : 0;
      }
      mma_signed(d.v[0], from.v[0], a0, a1, a2, a3, b.v[0][k][m] & mask, b.v[0][k][m + 1] & mask);
#if !ROUNDED
      mma_unsigned(d.v[1], from.v[1], a0, a1, a2, a3, b.v[1][k][m] & mask, b.v[1][k][m + 1] & mask);
      mma_unsigned(d.v[2], from.v[2], a0, a1, a2, a3, b.v[2][k][m] & mask, b.v[2][k][m + 1] & mask);
#endif
    }
  }
}

FN float term(const Sums& d, u32 i, float scale, float bias, float sum) {
#if ROUNDED
  const float v = f32(d.v[0][i]) - 12582912.0f;
#else
  const float v = fmaf(__int2float_rn((int)(d.v[1][i] * 256u + d.v[2][i])), 2.384185791015625e-07f, f32(d.v[0][i]) - 196608.0f);
#endif
  return fmaf(scale, v, bias * sum);
}

// x·sigmoid(x), as the portable kernels have it.
FN float silu(float x) {
  const float h = expf(-0.5f * fabsf(x)), e = h * h;
  return (x >= 0.0f ? x : x * h * h) / (1.0f + e);
}

// Experts lie anywhere; see shaders/experts.metal.
struct ExpertWeights {
  Weights gate, up, down;
  const float *gate_bias, *up_bias, *down_bias;
};
struct ExpertJob {
  u32 expert, first, count, pad;
};
struct ExpertParams {
  u32 w_rows, w_cols, divide, x_stride, y_stride, experts;  // experts of the table
  float limit, alpha;
};
