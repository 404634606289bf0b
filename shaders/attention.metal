// Causal softmax attention over a paged cache.
//
// HEAD_DIM and VALUE_DIM are the channels of a key and of a value. A row's positions are taken in chunks of CHUNK from position 0 on; each chunk
// gives its largest score, the sum of the weights against it and the weighted sum of values, and chunks are merged one after the other. So
// the bits are the same whether one threadgroup goes through all chunks of a row or each has one (SPLIT) and attention_merge adds them.
// WIDE: the cache's places allow vectors to be loaded. KV8: it holds 8 bits and scales, see gpu.KV.
#include "common.metal"

#ifndef HEAD_DIM
#define HEAD_DIM 4
#define VALUE_DIM 4
#define CHUNK 64
#endif
#define BLOCK 8u     // query heads of a threadgroup, all of one key-value head
#define THREADS 128u
#define QUADS ((HEAD_DIM + 3u) / 4u)
#define VALUE_QUADS ((VALUE_DIM + 3u) / 4u)
#define HALF (BLOCK / 2u)  // heads that one thread takes together
#define ITEMS ((2u * VALUE_QUADS + THREADS - 1u) / THREADS)

struct Page {
  device const uchar* k;
  device const uchar* v;
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
  uint blocks;  // of BLOCK heads in a group
  uint q_row;   // floats from row to row
  uint q_head;
  uint kv_dim;    // channels of a position
  uint kv_group;  // of them share a scale, with KV8
  uint chunks;  // most that a row of the launch has
  uint shared_values;  // 1: the one value head is the beginning of the row
  float scale;
};

// 4 channels from channel c on of a position of a page's keys or values, those from channel end on 0.
inline float4 load_channels(device const uchar* part, uint slot, uint page_rows, uint c, uint end, constant AttentionParams& p) {
#if KV8
  device const uchar* codes = part + ulong(slot) * p.kv_dim;
  device const float* scales = (device const float*)(part + ((page_rows * p.kv_dim + 63u) & ~63u)) + slot;
#if WIDE
  const uint w = *(device const uint*)(codes + c);
  return float4(float(as_type<int>(w << 24) >> 24), float(as_type<int>(w << 16) >> 24), float(as_type<int>(w << 8) >> 24),
                float(as_type<int>(w) >> 24)) * scales[c / p.kv_group * page_rows];
#else
  float4 v = float4(0.0f);
  for (uint i = 0; i < 4u; i++) {
    if (c + i < end) v[i] = float(as_type<int>(uint(codes[c + i]) << 24) >> 24) * scales[(c + i) / p.kv_group * page_rows];
  }
  return v;
#endif
#else
  device const float* x = (device const float*)part + ulong(slot) * p.kv_dim;
#if WIDE
  return *(device const float4*)(x + c);
#else
  return float4(x[c], c + 1u < end ? x[c + 1u] : 0.0f, c + 2u < end ? x[c + 2u] : 0.0f, c + 3u < end ? x[c + 3u] : 0.0f);
#endif
#endif
}

// The scores of positions first to first+n-1 for BLOCK heads, into s[head][position].
inline void scores(device const Page* pages, constant AttentionParams& p, uint page_rows, uint kv_head, uint first, uint n,
                   uint tid, threadgroup const float4* q, threadgroup float* s) {
  for (uint i = tid; i < 2u * CHUNK; i += THREADS) {
    const uint j = i % CHUNK, h0 = i / CHUNK * HALF;
    if (j < n) {
      const uint at = first + j;
      device const uchar* k = pages[at / page_rows].k;
      const uint slot = at % page_rows, channel = kv_head * HEAD_DIM;
      float4 sum[HALF];
      for (uint h = 0; h < HALF; h++) sum[h] = float4(0.0f);
      for (uint c = 0; c < QUADS; c++) {
        const float4 kc = load_channels(k, slot, page_rows, channel + 4u * c, channel + HEAD_DIM, p);
#pragma unroll
        for (uint h = 0; h < HALF; h++) sum[h] = fma(q[(h0 + h) * QUADS + c], kc, sum[h]);
      }
      for (uint h = 0; h < HALF; h++) s[(h0 + h) * CHUNK + j] = ((sum[h].x + sum[h].y) + (sum[h].z + sum[h].w)) * p.scale;
    }
  }
}

// Turns a chunk's scores into weights against the largest; ml[head] is the largest and the sum.
inline void weigh(uint n, uint lane, uint sg, threadgroup float* s, threadgroup float2* ml) {
  for (uint h = sg; h < BLOCK; h += THREADS / 32u) {
    float m = -1e30f;
    for (uint j = lane; j < n; j += 32u) m = max(m, s[h * CHUNK + j]);
    m = simd_max(m);
    float l = 0.0f;
    for (uint j = lane; j < n; j += 32u) {
      const float e = exp(s[h * CHUNK + j] - m);
      s[h * CHUNK + j] = e;
      l += e;
    }
    l = simd_sum(l);
    if (lane == 0u) ml[h] = float2(m, l);
  }
}

// The weighted sum of 4 channels of the values of positions first to first+n-1, for HALF heads.
inline void add_values(device const Page* pages, constant AttentionParams& p, uint page_rows, uint channel, uint dim,
                       uint first, uint n, threadgroup const float* s, thread float4* sum) {
  for (uint h = 0; h < HALF; h++) sum[h] = float4(0.0f);
  for (uint j = 0; j < n;) {
    const uint at = first + j, slot = at % page_rows, m = min(page_rows - slot, n - j);
    device const uchar* v = pages[at / page_rows].v;
    for (uint k = 0; k < m; k++) {
      const float4 vc = load_channels(v, slot + k, page_rows, channel, dim, p);
#pragma unroll
      for (uint h = 0; h < HALF; h++) sum[h] = fma(float4(s[h * CHUNK + j + k]), vc, sum[h]);
    }
    j += m;
  }
}

struct AttentionState {
  float m;
  float l;
};
// Takes the next chunk's largest score and sum into the state; the sums of values are multiplied by x and y and added.
inline float2 merge(thread AttentionState& state, float2 next) {
  const float m = max(state.m, next.x);
  const float2 f = float2(exp(state.m - m), exp(next.x - m));
  state.l = state.l * f.x + next.y * f.y;
  state.m = m;
  return f;
}

// Grid: (row, chunk) or row; key-value heads times blocks. Without SPLIT, and for rows of one chunk, y[row, head, VALUE_DIM] is written, else the
// chunk's sums of values parts[row of the launch, chunk, head, VALUE_DIM] and its largest score and sum of weights.
[[max_total_threads_per_threadgroup(128)]]
kernel void attention(device const float* q [[buffer(0)]],
                      device const AttentionRow* rows [[buffer(1)]],
                      device const Page* pages [[buffer(2)]],
                      device float* y [[buffer(3)]],
                      device float* parts [[buffer(4)]],
                      device float2* part_ml [[buffer(5)]],
                      constant AttentionParams& p [[buffer(6)]],
                      uint2 group [[threadgroup_position_in_grid]],
                      uint tid [[thread_index_in_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]],
                      uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float4 qs[BLOCK * QUADS];
  threadgroup float s[BLOCK * CHUNK];
  threadgroup float2 ml[BLOCK];
#if SPLIT
  const uint r = group.x / p.chunks, c0 = group.x % p.chunks;
#else
  const uint r = group.x, c0 = 0u;
#endif
  device const AttentionRow& row = rows[r];
  const uint kv_head = group.y / p.blocks, block = group.y % p.blocks * BLOCK;
  const uint head0 = kv_head * p.group + block;         // of the block
  const uint live = min(p.group - block, BLOCK);        // heads of the block that there are
  const uint chunks = row.pos / CHUNK + 1u;
#if SPLIT
  const uint c1 = min(c0 + 1u, chunks);
#else
  const uint c1 = chunks;
#endif
  device const Page* table = pages + row.pages;
  for (uint i = tid; i < BLOCK * QUADS; i += THREADS) {
    const uint h = min(i / QUADS, live - 1u), c = i % QUADS * 4u;
    device const float* qh = q + ulong(row.row) * p.q_row + (head0 + h) * p.q_head;
    qs[i] = float4(qh[c], c + 1u < HEAD_DIM ? qh[c + 1u] : 0.0f, c + 2u < HEAD_DIM ? qh[c + 2u] : 0.0f, c + 3u < HEAD_DIM ? qh[c + 3u] : 0.0f);
  }
  AttentionState state[ITEMS][HALF];
  float4 acc[ITEMS][HALF];
  for (uint i = 0; i < ITEMS; i++) {
    for (uint h = 0; h < HALF; h++) {
      state[i][h].m = -1e30f;
      state[i][h].l = 0.0f;
      acc[i][h] = float4(0.0f);
    }
  }
  const uint value_head = p.shared_values ? 0u : kv_head * VALUE_DIM;
  for (uint c = c0; c < c1; c++) {
    const uint first = c * CHUNK, n = min(row.pos + 1u - first, uint(CHUNK));
    threadgroup_barrier(mem_flags::mem_threadgroup);  // queries are there; the chunk before has been used
    scores(table, p, row.page_rows, kv_head, first, n, tid, qs, s);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    weigh(n, lane, sg, s, ml);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < ITEMS; i++) {
      const uint item = i * THREADS + tid, h0 = item / VALUE_QUADS * HALF, quad = item % VALUE_QUADS;
      if (item < 2u * VALUE_QUADS) {
        float4 sum[HALF];
        add_values(table, p, row.page_rows, value_head + 4u * quad, value_head + VALUE_DIM, first, n, s + h0 * CHUNK, sum);
        for (uint h = 0; h < HALF; h++) {
          if (c == c0) {
            state[i][h].m = ml[h0 + h].x;
            state[i][h].l = ml[h0 + h].y;
            acc[i][h] = sum[h];
          } else {
            const float2 f = merge(state[i][h], ml[h0 + h]);
            acc[i][h] = acc[i][h] * f.x + sum[h] * f.y;
          }
        }
      }
    }
  }
  const bool whole = c0 == 0u && c1 == chunks;
  for (uint i = 0; i < ITEMS; i++) {
    const uint item = i * THREADS + tid, h0 = item / VALUE_QUADS * HALF, quad = item % VALUE_QUADS;
    for (uint h = h0; h < min(h0 + HALF, live); h++) {
      if (item < 2u * VALUE_QUADS && c0 < c1) {
        const uint head = head0 + h;
        const ulong part = (ulong(r) * p.chunks + c0) * p.heads + head;
        const AttentionState st = state[i][h - h0];
        const float4 v = whole ? acc[i][h - h0] / st.l : acc[i][h - h0];
        device float* to = whole ? y + (ulong(row.row) * p.heads + head) * VALUE_DIM : parts + part * VALUE_DIM;
        for (uint c = 0; c < 4u; c++) {
          if (4u * quad + c < VALUE_DIM) to[4u * quad + c] = v[c];
        }
        if (!whole && quad == 0u) part_ml[part] = float2(st.m, st.l);
      }
    }
  }
}

// Merges the chunks of rows that have more than one. One thread a channel; grid: channels of a row's heads, rows.
kernel void attention_merge(device const AttentionRow* rows [[buffer(0)]],
                            device const float* parts [[buffer(1)]],
                            device const float2* part_ml [[buffer(2)]],
                            device float* y [[buffer(3)]],
                            constant AttentionParams& p [[buffer(4)]],
                            uint2 at [[thread_position_in_grid]]) {
  device const AttentionRow& row = rows[at.y];
  const uint chunks = row.pos / CHUNK + 1u, head = at.x / VALUE_DIM, channel = at.x % VALUE_DIM;
  if (head < p.heads && chunks > 1u) {
    AttentionState state;
    ulong part = ulong(at.y) * p.chunks * p.heads + head;
    state.m = part_ml[part].x;
    state.l = part_ml[part].y;
    float acc = parts[part * VALUE_DIM + channel];
    for (uint c = 1; c < chunks; c++) {
      part += p.heads;
      const float2 f = merge(state, part_ml[part]);
      acc = acc * f.x + parts[part * VALUE_DIM + channel] * f.y;
    }
    y[(ulong(row.row) * p.heads + head) * VALUE_DIM + channel] = acc / state.l;
  }
}
