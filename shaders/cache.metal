// Attention over a paged cache: what attention.metal and prefill.metal share.
//
// The order of sums, which is the same in every kernel of these files. Positions are taken in
// chunks of CHUNK and chunks in spans of SPAN, both counted from position 0. A score is the sum of
// 8 lanes in order, times the scale; lane l takes the channels of the quads l, l+8, … one after the
// other. A chunk has its largest score, the sum of the weights against it (lanes_sum, one position
// a lane), and for each channel the weighted values, position after position. Chunks are merged
// into spans in order, and spans into the result in order. So bits are the same whether chunks,
// spans or all positions of a row are one threadgroup's work, and whether rows are alone or share
// tiles.
//
// HEAD_DIM and VALUE_DIM are the channels of a key and of a value. WIDE: the cache's places allow
// vectors to be loaded. KV8: 1 for 8 bits and scales, see gpu.KV; 2 where each head has one scale.
#include "common.metal"

#ifndef HEAD_DIM
#define HEAD_DIM 4
#define VALUE_DIM 4
#endif
#define CHUNK 32u
#define SPAN 16u
#define LANES 8u
#define QUADS ((HEAD_DIM + 3u) / 4u)
#define VALUE_QUADS ((VALUE_DIM + 3u) / 4u)
#define KEYS ((QUADS + LANES - 1u) / LANES)  // quads of a lane
#define LOWEST (-1e30f)

struct Page {
  device const uchar* at;  // of all layers' keys and values
};
struct AttentionRow {
  uint row;
  uint pos;
  uint pages;  // where the sequence's pages begin in the table
  uint page_rows;
};
struct AttentionParams {
  uint heads;
  uint group;   // query heads that share a key-value head
  uint blocks;  // of query heads in a group, each a threadgroup's
  uint q_row;   // floats from row to row
  uint q_head;
  uint kv_dim;    // channels of a position's keys
  uint v_dim;     // and of its values
  uint kv_group;  // of them share a scale, with KV8
  uint per;       // chunks of a part: 1, or SPAN
  uint parts;     // most that a row of the launch has
  uint together;  // parts that a threadgroup makes one after the other
  uint groups;    // threadgroups of a row: parts by together
  uint window;         // positions that a row attends to at most
  float scale;
  float value_scale;   // of what a row gives
  uint sinks;    // 1: heads have scores without a value, see gpu.Attention
  uint budget;   // entries of a list, with CHOSEN
  uint block;    // positions of an entry, with CHOSEN 2
  ulong keys;    // bytes from a page's beginning
  ulong values;
};

// The first position that a row at a position attends to.
inline uint first_of(uint pos, constant AttentionParams& p) { return pos >= p.window ? pos + 1u - p.window : 0u; }

// Positions that follow one another, as the threads of a threadgroup look at them together.
struct Place {
  uint first;  // position
  uint low;    // the first position that may be looked at
  uint last;   // the last one that there is
  uint page0;  // position of the first slot of its first page
  device const uchar* page;
  bool one;    // all positions that are read lie in that page
};
// The place of n positions.
inline Place place_of(device const Page* table, uint first, uint n, uint low, uint last,
    uint page_rows) {
  const uint page = first / page_rows;
  Place b;
  b.first = first;
  b.low = low;
  b.last = last;
  b.page0 = page * page_rows;
  b.page = table[page].at;
  b.one = min(first + n - 1u, last) - b.page0 < page_rows;
  return b;
}
// Position i of the place, or low or last if it lies before or after these.
inline uint position_of(thread const Place& b, uint i) {
  return max(min(b.first + i, b.last), b.low);
}

// A position's keys or values of all heads.
struct Vectors {
  device const uchar* part;
  uint slot;
};
inline Vectors vectors_in(device const uchar* page, uint slot, ulong part, uint dim) {
  Vectors v;
  v.part = page + part;
  v.slot = slot;
#if !KV8
  v.part += ulong(slot) * (4u * dim);
  v.slot = 0u;
#endif
  return v;
}
// Those of a position. one: it lies in the place's page.
inline Vectors vectors_at(thread const Place& b, bool one, device const Page* table, uint page_rows,
    ulong part, uint dim, uint at) {
  if (one) return vectors_in(b.page, at - b.page0, part, dim);
  return vectors_in(table[at / page_rows].at, at % page_rows, part, dim);
}
// Those of position i of the place.
inline Vectors vectors_of(thread const Place& b, device const Page* table, uint page_rows,
    ulong part, uint dim, uint i) {
  return vectors_at(b, b.one, table, page_rows, part, dim, position_of(b, i));
}

// 4 channels of keys or values as they were loaded: nothing waits for a load before they are
// widened.
#if KV8 && WIDE
struct Quad {
  uint codes;
  float scale;
};
#else
struct Quad {
  float4 x;
};
#endif
inline Quad no_quad() {
  Quad v;
#if KV8 && WIDE
  v.codes = 0u;
  v.scale = 0.0f;
#else
  v.x = float4(0.0f);
#endif
  return v;
}

// 4 channels from channel c on of a position of a page's keys or values of dim channels, those from channel end on
// 0.
inline Quad load_quad(device const uchar* part, uint slot, uint page_rows, uint dim, uint c, uint end, constant AttentionParams& p) {
  Quad v;
#if KV8
  device const uchar* codes = part + ulong(slot) * dim;
  device const float* scales = (device const float*)(part + ((page_rows * dim + 63u) & ~63u)) + slot;
#if WIDE
  v.codes = *(device const uint*)(codes + c);
#if KV8 == 2
  v.scale = scales[c / HEAD_DIM * page_rows];
#else
  v.scale = scales[c / p.kv_group * page_rows];
#endif
#else
  v.x = float4(0.0f);
  for (uint i = 0; i < 4u; i++) {
    if (c + i < end) v.x[i] = float(as_type<int>(uint(codes[c + i]) << 24) >> 24) * scales[(c + i) / p.kv_group * page_rows];
  }
#endif
#else
  device const float* x = (device const float*)part + ulong(slot) * dim;
#if WIDE
  v.x = *(device const float4*)(x + c);
#else
  v.x = float4(x[c], c + 1u < end ? x[c + 1u] : 0.0f, c + 2u < end ? x[c + 2u] : 0.0f, c + 3u < end ? x[c + 3u] : 0.0f);
#endif
#endif
  return v;
}

// The 4 channels.
inline float4 widen(Quad v) {
#if KV8 && WIDE
  // A code plus 128 under the exponent of 2^23 is a float; what is taken away makes it the code,
  // exactly.
  const uint w = v.codes ^ 0x80808080u;
  return float4(as_type<float>((w & 255u) | 0x4b000000u) - 8388736.0f, as_type<float>((w >> 8 & 255u) | 0x4b000000u) - 8388736.0f,
                as_type<float>((w >> 16 & 255u) | 0x4b000000u) - 8388736.0f, as_type<float>((w >> 24) | 0x4b000000u) - 8388736.0f) * v.scale;
#else
  return v.x;
#endif
}

// 4 channels of a query from channel c on, those past its end 0.
inline float4 load_query(device const float* q, uint c) {
  return float4(q[c], c + 1u < HEAD_DIM ? q[c + 1u] : 0.0f, c + 2u < HEAD_DIM ? q[c + 2u] : 0.0f, c + 3u < HEAD_DIM ? q[c + 3u] : 0.0f);
}

// The largest score so far and the sum of the weights against it.
struct AttentionState {
  float m;
  float l;
};
// Takes what follows into the state. Weighted values become fma(what follows, y, x·before).
inline float2 merge(thread AttentionState& state, float m_next, float l_next) {
  const float m = max(state.m, m_next);
  const float2 f = float2(exp(state.m - m), exp(m_next - m));
  state.l = fma(l_next, f.y, state.l * f.x);
  state.m = m;
  return f;
}

// The sum over all lanes, in an order that is the same on every device: attention_tiles adds so, too.
inline float lanes_sum(float v) {
#pragma unroll
  for (uint d = 16; d > 0u; d /= 2u) v += simd_shuffle_xor(v, ushort(d));
  return v;
}

// A chunk's weight of a lane's position, whose score is s; a position that is not live weighs
// nothing. ml is the chunk's largest score and the sum of its weights.
inline float weigh(float s, bool live, thread float2& ml) {
  const float m = simd_max(live ? s : LOWEST);
  const float e = live ? exp(s - m) : 0.0f;
  ml = float2(m, lanes_sum(e));
  return e;
}
