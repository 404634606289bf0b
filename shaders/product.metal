// Products of rows of a weight matrix with vectors: what matmul.metal, experts.metal and
// heads.metal share.
//
// BITS is how the matrix is stored: 2, 4 or 8 for affine codes in groups of inputs with one scale
// and one bias (bf16) a group, 16 for bf16, 32 for float. With MAGNITUDES codes of 4 bits are a sign
// above 3 bits, which stand for so many halves as the constant has in that place, 4 bits each; a
// group has a scale, a power of two of 8 bits (E8M0), and no bias. With FLOAT8 codes of 8 bits are
// floats e4m3; a group has no bias. SCALE_F32: scales and biases are float32. SCALE_E4M3: scales are
// floats e4m3 of 8 bits. FACTOR: what is a list of biases elsewhere is a float32 of each row, which
// multiplies it. Of numbers in blocks BITS is 64, or 16 with BLOCK_F16, see block.metal. LAYOUT: 0
// rows, one after the other; 1 panels of 16 rows, see model/quant, of which a simdgroup takes a whole
// one; 2 panels, of which it takes any 4 rows. WIDE: the operands' places allow vectors to be loaded.
// XROWS is how many vectors are multiplied at once.
//
// The lanes of a simdgroup share a tile of TILE rows of the matrix: LANES lanes along the inputs,
// each UNIT inputs a step and 4 rows. The order in which a row's products are added depends on none
// of XROWS, WIDE and which other rows there are: by the codes of a unit, then by steps, then over
// lanes and then over simdgroups.
#include "common.metal"
#include "block.metal"

#if LAYOUT == 1
#define LANES 8u
#define TILE 16u
#else
#define LANES 32u
#define TILE 4u
#endif
#if BITS > 8
#define UNIT 4u
#else
#define UNIT (32u / BITS)
#endif

struct Weights {
  device const uchar* codes;  // or elements
  device const ushort* scales;
  device const ushort* biases;
  uint rows;
  uint cols;
  uint group_bits;  // a group has 2^group_bits inputs
};

// A lane's 4 rows of the tile that begins at row first, none beyond the matrix: rows past the end
// are the last one again.
inline uint4 rows_of(Weights w, uint first, uint lane) {
#if LAYOUT == 1
  const uint r = first + 4u * (lane & 3u);
#else
  const uint r = first;
#endif
  const uint last = w.rows - 1u;
  return uint4(min(r, last), min(r + 1u, last), min(r + 2u, last), min(r + 3u, last));
}

#ifdef FACTOR
inline float row_factor(Weights w, uint row) { return ((device const float*)w.biases)[row]; }
#endif

#if BITS <= 8
// Where the word of a row's inputs lies, and its group's scale.
inline ulong word_at(uint row, uint word, uint words) {
#if LAYOUT == 0
  return ulong(row) * words + word;
#else
  return (ulong(row >> 4) * words + word) * 16u + (row & 15u);
#endif
}
inline ulong group_at(uint row, uint group, uint groups) {
#if LAYOUT == 0
  return ulong(row) * groups + group;
#else
  return (ulong(row >> 4) * groups + group) * 16u + (row & 15u);
#endif
}

// The bit at which code i of a word begins.
inline uint code_bit(uint i) {
#if LAYOUT == 0
  return i * BITS;
#else
  return (i & 3u) * 8u + (i >> 2) * BITS;
#endif
}

// A float e4m3: a sign, 4 bits of exponent, 3 bits of fraction.
inline float e4m3_f32(uint code) {
  const uint bits = code & 127u;
  const float size = bits < 8u ? float(bits) * 0.001953125f : as_type<float>((bits << 20) + (120u << 23));
  return (code & 128u) != 0u ? -size : size;
}

#ifdef MAGNITUDES
// What the code at a bit stands for, in halves.
inline float code_f32(uint word, uint bit) {
  const uint code = word >> bit;
  const float magnitude = float((MAGNITUDES >> (4u * (code & 7u))) & 15u);
  return (code & 8u) != 0u ? -magnitude : magnitude;
}
// The scale of halves in a group.
inline float scale_f32(device const ushort* scales, ulong group) {
#ifdef SCALE_E4M3
  return 0.5f * e4m3_f32(((device const uchar*)scales)[group]);
#else
  return 0.5f * as_type<float>(max(uint(((device const uchar*)scales)[group]) << 23, 1u << 22));
#endif
}
#else
#ifdef FLOAT8
inline float code_f32(uint word, uint bit) { return e4m3_f32(word >> bit); }
#else
// The code at a bit that is known when the kernel is compiled, as a float. Masked where it is,
// under the exponent of 2^23, it reads as 2^23 + code·2^bit; a fused product and sum makes that
// code, exactly. That is cheaper than shifting and converting.
inline float code_f32(uint word, uint bit) {
  const uint half_word = bit < 16u ? word : word >> 16;
  const uint at = bit & 15u;
  const float scale = as_type<float>((127u - at) << 23);
  return fma(as_type<float>((half_word & (((1u << BITS) - 1u) << at)) | 0x4b000000u), scale, -8388608.0f * scale);
}
#endif
inline float scale_f32(device const ushort* scales, ulong group) {
#ifdef SCALE_F32
  return ((device const float*)scales)[group];
#else
  return bf16_f32(scales[group]);
#endif
}
#endif
#if defined(MAGNITUDES) || defined(FLOAT8)
#define UNBIASED
#endif

inline uint4 load_words(Weights w, uint4 r, uint word, uint words) {
  device const uint* codes = (device const uint*)w.codes;
#if LAYOUT == 1 && WIDE
  return *(device const uint4*)(codes + word_at(r.x, word, words));
#else
  return uint4(codes[word_at(r.x, word, words)], codes[word_at(r.y, word, words)], codes[word_at(r.z, word, words)],
               codes[word_at(r.w, word, words)]);
#endif
}
inline float4 load_scales(device const ushort* p, uint4 r, uint group, uint groups) {
#if LAYOUT == 1 && WIDE && !defined(MAGNITUDES) && !defined(SCALE_F32)
  const ushort4 v = *(device const ushort4*)(p + group_at(r.x, group, groups));
  return float4(bf16_f32(v.x), bf16_f32(v.y), bf16_f32(v.z), bf16_f32(v.w));
#else
  return float4(scale_f32(p, group_at(r.x, group, groups)), scale_f32(p, group_at(r.y, group, groups)),
                scale_f32(p, group_at(r.z, group, groups)), scale_f32(p, group_at(r.w, group, groups)));
#endif
}
#else
// 4 inputs of one row from input i on; those past the end are 0.
inline float4 load_elements(Weights w, uint row, uint i) {
  const ulong at = ulong(row) * w.cols + i;
#ifdef BLOCK_SIZE
  return block_elements(w.codes + at / BLOCK_LEN * BLOCK_SIZE, uint(at % BLOCK_LEN));
#elif defined(BLOCK_F16)
  device const uchar* e = w.codes + 2u * at;
  return float4(f16_at(e), i + 1u < w.cols ? f16_at(e + 2) : 0.0f, i + 2u < w.cols ? f16_at(e + 4) : 0.0f,
                i + 3u < w.cols ? f16_at(e + 6) : 0.0f);
#elif BITS == 16
  device const ushort* e = (device const ushort*)w.codes + at;
#if WIDE
  const ushort4 v = *(device const ushort4*)e;
  return float4(bf16_f32(v.x), bf16_f32(v.y), bf16_f32(v.z), bf16_f32(v.w));
#else
  return float4(bf16_f32(e[0]), i + 1u < w.cols ? bf16_f32(e[1]) : 0.0f, i + 2u < w.cols ? bf16_f32(e[2]) : 0.0f,
                i + 3u < w.cols ? bf16_f32(e[3]) : 0.0f);
#endif
#else
  device const float* e = (device const float*)w.codes + at;
#if WIDE
  return *(device const float4*)e;
#else
  return float4(e[0], i + 1u < w.cols ? e[1] : 0.0f, i + 2u < w.cols ? e[2] : 0.0f, i + 3u < w.cols ? e[3] : 0.0f);
#endif
#endif
}
#endif

// 4 inputs of a vector from input i on; those past the end are 0.
inline float4 load_inputs(device const float* x, uint i, uint cols) {
#if WIDE
  return *(device const float4*)(x + i);
#elif BITS <= 8
  return float4(x[i], x[i + 1u], x[i + 2u], x[i + 3u]);
#else
  return float4(x[i], i + 1u < cols ? x[i + 1u] : 0.0f, i + 2u < cols ? x[i + 2u] : 0.0f, i + 3u < cols ? x[i + 3u] : 0.0f);
#endif
}

// Adds one unit's products: acc[v] has this lane's 4 rows times vector v, which begins at x +
// at[v].
inline void add_unit(Weights w, uint4 r, uint unit, device const float* x, thread const ulong* at, thread float4* acc) {
  const uint i0 = unit * UNIT;
#if BITS <= 8
  const uint words = w.cols / UNIT, groups = w.cols >> w.group_bits, group = i0 >> w.group_bits;
  const uint4 q = load_words(w, r, unit, words);
  const float4 s = load_scales(w.scales, r, group, groups);
#ifndef UNBIASED
  const float4 b = load_scales(w.biases, r, group, groups);
#endif
  float4 d[XROWS];
  float sum[XROWS];
#pragma unroll
  for (uint v = 0; v < XROWS; v++) {
    d[v] = float4(0.0f);
    sum[v] = 0.0f;
  }
#pragma unroll
  for (uint j = 0; j < UNIT; j += 4u) {
    float4 xv[XROWS];
#pragma unroll
    for (uint v = 0; v < XROWS; v++) {
      xv[v] = load_inputs(x + at[v], i0 + j, w.cols);
      sum[v] += (xv[v].x + xv[v].y) + (xv[v].z + xv[v].w);
    }
#pragma unroll
    for (uint c = 0; c < 4u; c++) {
      const uint bit = code_bit(j + c);
      const float4 code = float4(code_f32(q.x, bit), code_f32(q.y, bit), code_f32(q.z, bit), code_f32(q.w, bit));
#pragma unroll
      for (uint v = 0; v < XROWS; v++) d[v] = fma(code, float4(xv[v][c]), d[v]);
    }
  }
#pragma unroll
#ifdef UNBIASED
  for (uint v = 0; v < XROWS; v++) acc[v] = fma(s, d[v], acc[v]);
#else
  for (uint v = 0; v < XROWS; v++) acc[v] = fma(s, d[v], fma(b, float4(sum[v]), acc[v]));
#endif
#else
  float4 e[4];
  e[0] = load_elements(w, r.x, i0);
  e[1] = load_elements(w, r.y, i0);
  e[2] = load_elements(w, r.z, i0);
  e[3] = load_elements(w, r.w, i0);
#pragma unroll
  for (uint v = 0; v < XROWS; v++) {
    const float4 xv = load_inputs(x + at[v], i0, w.cols);
#pragma unroll
    for (uint c = 0; c < 4u; c++) acc[v] = fma(float4(e[0][c], e[1][c], e[2][c], e[3][c]), float4(xv[c]), acc[v]);
  }
#endif
}

// Sums over the lanes that share a row.
inline float4 sum_lanes(float4 v) {
#if LAYOUT == 1
  v += simd_shuffle_xor(v, 4);
  v += simd_shuffle_xor(v, 8);
  return v + simd_shuffle_xor(v, 16);
#else
  return simd_sum(v);
#endif
}

// Where a threadgroup's simdgroups leave their sums: [simdgroup][vector][TILE].
#define PARTS (8u * XROWS * TILE)

// The products of the tile at row first with XROWS vectors, summed over the threadgroup, into
// part[0][vector][TILE], for every thread to read. All threads of the threadgroup call it; there
// are at most 8 simdgroups.
inline void product(Weights w, uint first, device const float* x, thread const ulong* at, uint lane, uint sg, uint sgs,
                    threadgroup float* part) {
  float4 acc[XROWS];
#pragma unroll
  for (uint v = 0; v < XROWS; v++) acc[v] = float4(0.0f);
  const uint4 r = rows_of(w, first, lane);
  const uint units = (w.cols + UNIT - 1u) / UNIT;
#if LAYOUT == 1
  const uint along = lane >> 2;
#else
  const uint along = lane;
#endif
  for (uint unit = sg * LANES + along; unit < units; unit += sgs * LANES) add_unit(w, r, unit, x, at, acc);
  // Every simdgroup has read what a product before left there.
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint v = 0; v < XROWS; v++) {
    const float4 s = sum_lanes(acc[v]);
    if (lane < TILE / 4u) {
      for (uint c = 0; c < 4u; c++) part[(sg * XROWS + v) * TILE + 4u * lane + c] = s[c];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = sg * 32u + lane; i < XROWS * TILE; i += sgs * 32u) {
    float s = part[i];
    for (uint k = 1; k < sgs; k++) s += part[k * XROWS * TILE + i];
#ifdef FACTOR
    s *= row_factor(w, min(first + i % TILE, w.rows - 1u));
#endif
    part[i] = s;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
