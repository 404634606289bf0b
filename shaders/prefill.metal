// Causal softmax attention of many rows of a sequence: tiles of queries share the keys and values
// that threadgroup memory holds. Each row has the bits that attention.metal gives it: see
// cache.metal for the order of sums and the #define lines.
//
// A tile is QUERIES queries: those of HEADS query heads that share a key-value head, in
// QUERIES/HEADS consecutive rows. Positions are taken in blocks of two chunks: first a block's
// scores, then its weights, then the sums of its values. Keys, queries and values come to
// threadgroup memory in pieces of 8 KiB or less, and the next piece of keys and values is loaded
// while one is used. A thread has the scores of 4 queries at POSITIONS positions, and of the result
// 4 channels of up to 8 queries.
//
// TILE_DIM is HEAD_DIM and VALUE_DIM, 64, 128 or 256; operands are WIDE. A tile has TILE_THREADS
// threads, 128 or 256. The kernel declares 384, so that a compiler for NVIDIA gives each up to 168
// registers, room for what is loaded ahead, and a processor holds three tiles of 128 threads or one
// of 256.
#ifndef TILE_DIM
#define TILE_DIM 128
#define HEADS 8
#endif
#define HEAD_DIM TILE_DIM
#define VALUE_DIM TILE_DIM
#define WIDE 1
#include "cache.metal"

#define QUERIES 32u
#if TILE_DIM == 256
#define TILE_THREADS 256u
#define POSITIONS 2u
#define Positions float2
#else
#define TILE_THREADS 128u
#define POSITIONS 4u
#define Positions float4
#endif
#define BLOCK (2u * CHUNK)
#define PIECE 8u                    // quads of a key or a query in a piece
#define PIECE_LANES (PIECE / KEYS)  // lanes whose quads they are
#define VALUE_PIECE (512u / VALUE_QUADS)  // positions of a piece of values
// Quads of a piece that a thread brings, and of how many keys or queries they are.
#define KEY_ITEMS (PIECE * BLOCK / TILE_THREADS)
#define KEY_PLACES ((PIECE_LANES * BLOCK + TILE_THREADS - 1u) / TILE_THREADS)
#define QUERY_ITEMS (PIECE * QUERIES / TILE_THREADS)
#define QUERY_PLACES ((PIECE_LANES * QUERIES + TILE_THREADS - 1u) / TILE_THREADS)
// How many threads share queries in the scores. In the result it is VALUE_QUADS.
#define SCORE_THREADS (BLOCK / POSITIONS)
// Quads of queries of a thread's result, and how far apart they are.
#define RESULT_QUADS (QUERIES * VALUE_QUADS / 4u / TILE_THREADS)
#define RESULT_STEP (QUERIES / 8u)
// Quads from one channel to the next of keys and queries, and from one position to the next of
// scores: one more than there are, so that threads that read or write at once use different banks.
#define ROW_K (BLOCK / 4u + 1u)
#define ROW_Q (QUERIES / 4u + 1u)

struct AttentionTile {
  uint entry;  // of its first row in the table of rows
  uint rows;
};

// The row of a tile that query i of a quad is of.
inline uint row_of_query(uint quad, uint i) {
#if HEADS >= 4
  return quad / (HEADS / 4u);
#else
  return (4u * quad + i) / HEADS;
#endif
}

// A quad that a thread brings to a piece of n keys or queries: of which of them it is, which of the
// piece's lanes adds it up (one of LANES, not a thread), and which of that lane's quads it is. The
// quads of neighbouring threads lie side by side.
struct PieceItem {
  uint of;
  uint lane;
  uint quad;
};
inline PieceItem piece_item(uint i, uint tid, uint n) {
  const uint item = i * TILE_THREADS + tid;
  PieceItem x;
  x.of = item / PIECE_LANES % n;
  x.lane = item % PIECE_LANES;
  x.quad = item / (PIECE_LANES * n);
  return x;
}
// Its first channel, in a piece whose first lane is l0.
inline uint channel_of(thread const PieceItem& x, uint l0) {
  return 4u * (l0 + x.lane + LANES * x.quad);
}
// Puts it into a piece, [channel][key or query], of row quads a channel.
inline void put(threadgroup float4* piece, uint row, thread const PieceItem& x, float4 v) {
  threadgroup float* to =
      (threadgroup float*)piece + (x.quad * PIECE_LANES + x.lane) * 16u * row + x.of;
  to[0] = v.x;
  to[4u * row] = v.y;
  to[8u * row] = v.z;
  to[12u * row] = v.w;
}

inline void load_keys(thread const Vectors* from, constant AttentionParams& p, uint page_rows,
    uint channel, uint l0, uint tid, thread Quad* k) {
#pragma unroll
  for (uint i = 0; i < KEY_ITEMS; i++) {
    const uint c = channel + channel_of(piece_item(i, tid, BLOCK), l0);
    k[i] = load_quad(from[i % KEY_PLACES].part, from[i % KEY_PLACES].slot, page_rows, p.kv_dim, c,
        channel + HEAD_DIM, p);
  }
}
// Finds the keys of a block that a thread brings, and loads those of its first piece.
inline void begin_keys(thread const Place& b, device const Page* table,
    constant AttentionParams& p, uint page_rows, uint channel, uint tid,
    thread Vectors* from, thread Quad* k) {
#pragma unroll
  for (uint i = 0; i < KEY_PLACES; i++) {
    from[i] = vectors_of(b, table, page_rows, p.keys, p.kv_dim, piece_item(i, tid, BLOCK).of);
  }
  load_keys(from, p, page_rows, channel, 0u, tid, k);
}
inline void load_values(thread const Place& b, device const Page* table,
    constant AttentionParams& p, uint page_rows, uint channel, uint j0,
    uint tid, thread Quad* v) {
  const uint c = channel + 4u * (tid % VALUE_QUADS), j = j0 + tid / VALUE_QUADS;
  if (b.one) {  // tested once, not for each value
#pragma unroll
    for (uint i = 0; i < KEY_ITEMS; i++) {
      const uint at = position_of(b, j + i * (TILE_THREADS / VALUE_QUADS));
      const Vectors from = vectors_in(b.page, at - b.page0, p.values, p.v_dim);
      v[i] = load_quad(from.part, from.slot, page_rows, p.v_dim, c, channel + VALUE_DIM, p);
    }
    return;
  }
#pragma unroll
  for (uint i = 0; i < KEY_ITEMS; i++) {
    const Vectors from = vectors_of(b, table, page_rows, p.values, p.v_dim,
        j + i * (TILE_THREADS / VALUE_QUADS));
    v[i] = load_quad(from.part, from.slot, page_rows, p.v_dim, c, channel + VALUE_DIM, p);
  }
}

// 2n values of each lane become n: a lane with bit d keeps the second half, one without it the
// first, each joined with the same values of the lane d away. So 8 values take 9 shuffles, not 40,
// for what simd_max and lanes_sum give, and are added in the order of lanes_sum.
inline void halve_max(thread float* v, uint n, uint d, uint lane) {
#pragma unroll
  for (uint i = 0; i < n; i++) {
    const float mine = lane & d ? v[i + n] : v[i], other = lane & d ? v[i] : v[i + n];
    v[i] = max(mine, simd_shuffle_xor(other, ushort(d)));
  }
}
inline void halve_sum(thread float* v, uint n, uint d, uint lane) {
#pragma unroll
  for (uint i = 0; i < n; i++) {
    const float mine = lane & d ? v[i + n] : v[i], other = lane & d ? v[i] : v[i + n];
    v[i] = mine + simd_shuffle_xor(other, ushort(d));
  }
}

// Makes weights of the scores of a quad of queries in a block, a position a lane. of becomes each
// chunk's largest score and the sum of its weights, see weigh.
inline void weigh_quad(threadgroup float4* s, threadgroup float2* of, constant AttentionParams& p,
    uint first, uint pos0, uint quad, uint lane) {
  float x[8], most[8];  // of the first chunk's 4 queries, then of the second's
  bool sees[8];
#pragma unroll
  for (uint c = 0; c < 2u; c++) {
    const float4 v = s[(c * CHUNK + lane) * ROW_Q + quad];
    const uint at = first + c * CHUNK + lane;
#pragma unroll
    for (uint i = 0; i < 4u; i++) {
      const uint pos = pos0 + row_of_query(quad, i);
      x[4u * c + i] = v[i];
      sees[4u * c + i] = at <= pos && at >= first_of(pos, p);
      most[4u * c + i] = sees[4u * c + i] ? v[i] : LOWEST;
    }
  }
  halve_max(most, 4u, 16u, lane);
  halve_max(most, 2u, 8u, lane);
  halve_max(most, 1u, 4u, lane);
  float m = max(most[0], simd_shuffle_xor(most[0], 2));
  m = max(m, simd_shuffle_xor(m, 1));  // of value lane/4
#pragma unroll
  for (uint i = 0; i < 8u; i++) {
    const float e = exp(x[i] - simd_shuffle(m, ushort(4u * i)));
    x[i] = sees[i] ? e : 0.0f;
  }
#pragma unroll
  for (uint c = 0; c < 2u; c++) {
    s[(c * CHUNK + lane) * ROW_Q + quad] =
        float4(x[4u * c], x[4u * c + 1u], x[4u * c + 2u], x[4u * c + 3u]);
  }
  halve_sum(x, 4u, 16u, lane);
  halve_sum(x, 2u, 8u, lane);
  halve_sum(x, 1u, 4u, lane);
  float l = x[0] + simd_shuffle_xor(x[0], 2);
  l += simd_shuffle_xor(l, 1);
  if (lane % 4u == 0u) of[lane / 16u * QUERIES + 4u * quad + lane / 4u % 4u] = float2(m, l);
}

// Grid: key-value heads times blocks of heads; tiles; spans. Rows of one span are written to y, see
// attention; others to parts.
[[max_total_threads_per_threadgroup(384)]]
kernel void attention_tiles(device const float* q [[buffer(0)]],
                            device const AttentionRow* rows [[buffer(1)]],
                            device const Page* pages [[buffer(2)]],
                            device const AttentionTile* tiles [[buffer(3)]],
                            device float* y [[buffer(4)]],
                            device float* parts [[buffer(5)]],
                            device float2* part_ml [[buffer(6)]],
                            device const float* sinks [[buffer(7)]],
                            constant AttentionParams& p [[buffer(8)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint tid [[thread_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]],
                            uint sg [[simdgroup_index_in_threadgroup]]) {
  // keys [channel][position], or values [position][quad]
  threadgroup float4 ks[4u * PIECE * ROW_K];
  // queries [channel][query], or scores and weights [position][query]
  threadgroup float4 s[BLOCK * ROW_Q];
  // Of a block's chunks, for each query: the largest score and the sum of weights, then the factors
  // of what was before and of the chunk. At the end the queries' states.
  threadgroup float2 fs[2u * QUERIES];
  device const AttentionTile& tile = tiles[group.y];
  device const AttentionRow& row0 = rows[tile.entry];
  device const Page* table = pages + row0.pages;
  const uint tile_rows = tile.rows, pos0 = row0.pos, last = pos0 + tile_rows - 1u,
      page_rows = row0.page_rows;
  // the first position that the first row sees, and the first that the last row sees
  const uint low = first_of(pos0, p), lowest_last = first_of(last, p);
  const uint span = low / (SPAN * CHUNK) + group.z;
  const uint span0 = span * SPAN * CHUNK, end = min(last + 1u, span0 + SPAN * CHUNK);
  const uint kv_head = group.x / p.blocks, head_block = group.x % p.blocks * HEADS;
  const uint head0 = kv_head * p.group + head_block, live = min(p.group - head_block, uint(HEADS));
  const uint channel = kv_head * HEAD_DIM;
  // This thread's quad of queries in scores and in results, and its positions or channels. Half a
  // simdgroup has 2 quads of queries by 8 of the others, so that it reads no more than 8 addresses.
  const uint row = lane / 16u * 2u + lane % 2u, column = lane % 16u / 2u;
  const uint score_q = row + 4u * (sg / (SCORE_THREADS / 8u)),
      score_at = column + 8u * (sg % (SCORE_THREADS / 8u));
  const uint result_q = row + 4u * (sg / (VALUE_QUADS / 8u)),
      result_at = column + 8u * (sg % (VALUE_QUADS / 8u));
  AttentionState state;  // of query tid
  state.m = LOWEST;
  state.l = 0.0f;
  if (tid < QUERIES && p.sinks != 0u && span == first_of(pos0 + tid / HEADS, p) / (SPAN * CHUNK)) {
    state.m = sinks[head0 + min(tid % HEADS, live - 1u)];
    state.l = 1.0f;
  }
  float4 acc[4u * RESULT_QUADS];
#pragma unroll
  for (uint i = 0; i < 4u * RESULT_QUADS; i++) acc[i] = float4(0.0f);
  ulong queries[QUERY_PLACES];  // where those begin that this thread brings
#pragma unroll
  for (uint i = 0; i < QUERY_PLACES; i++) {
    const uint of = piece_item(i, tid, QUERIES).of, r = min(of / HEADS, tile_rows - 1u),
        h = min(of % HEADS, live - 1u);
    queries[i] = ulong(row0.row + r) * p.q_row + (head0 + h) * p.q_head;
  }
  Quad next[KEY_ITEMS];  // of keys or values
  uint first = max(span0, low / BLOCK * BLOCK);
  Place b;
  Vectors keys[KEY_PLACES];
  if (first < end) {
    b = place_of(table, first, BLOCK, low, last, page_rows);
    begin_keys(b, table, p, page_rows, channel, tid, keys, next);
  }
  for (; first < end; first += BLOCK) {
    Positions score[4];  // of a query
#pragma unroll
    for (uint i = 0; i < 4u; i++) score[i] = Positions(0.0f);
#pragma unroll 1
    for (uint l0 = 0; l0 < LANES; l0 += PIECE_LANES) {
      float4 next_q[QUERY_ITEMS];
#pragma unroll
      for (uint i = 0; i < QUERY_ITEMS; i++) {
        next_q[i] = *(device const float4*)(q + queries[i % QUERY_PLACES]
            + channel_of(piece_item(i, tid, QUERIES), l0));
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);  // what was there has been used
#pragma unroll
      for (uint i = 0; i < KEY_ITEMS; i++) {
        put(ks, ROW_K, piece_item(i, tid, BLOCK), widen(next[i]));
      }
#pragma unroll
      for (uint i = 0; i < QUERY_ITEMS; i++) put(s, ROW_Q, piece_item(i, tid, QUERIES), next_q[i]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (l0 + PIECE_LANES < LANES) {
        load_keys(keys, p, page_rows, channel, l0 + PIECE_LANES, tid, next);
      }
#pragma unroll
      for (uint l = 0; l < PIECE_LANES; l++) {
        Positions sum[4];
#pragma unroll
        for (uint i = 0; i < 4u; i++) sum[i] = Positions(0.0f);
#pragma unroll
        for (uint k = 0; k < KEYS; k++) {
#pragma unroll
          for (uint c = 0; c < 4u; c++) {
            const uint at = (k * PIECE_LANES + l) * 4u + c;  // channel
            const Positions key = ((threadgroup const Positions*)(ks + at * ROW_K))[score_at];
            const float4 x = s[at * ROW_Q + score_q];
#pragma unroll
            for (uint i = 0; i < 4u; i++) sum[i] = fma(Positions(x[i]), key, sum[i]);
          }
        }
#pragma unroll
        for (uint i = 0; i < 4u; i++) score[i] = score[i] + sum[i];
      }
    }
    load_values(b, table, p, page_rows, channel, 0u, tid, next);
    threadgroup_barrier(mem_flags::mem_threadgroup);  // queries have been used
#pragma unroll
    for (uint t = 0; t < POSITIONS; t++) {
      s[(POSITIONS * score_at + t) * ROW_Q + score_q] =
          float4(score[0][t], score[1][t], score[2][t], score[3][t]) * p.scale;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll 1
    for (uint quad = sg; quad < QUERIES / 4u; quad += TILE_THREADS / 32u) {
      weigh_quad(s, fs, p, first, pos0, quad, lane);
    }
    // how many positions some row sees, and how many every row
    const uint seen = min(end - first, BLOCK);
    const uint common = pos0 + 1u < first ? 0u : min(pos0 + 1u - first, BLOCK);
#pragma unroll 1
    for (uint c0 = 0; c0 < seen; c0 += CHUNK) {
      float4 sum[4u * RESULT_QUADS];
#pragma unroll
      for (uint i = 0; i < 4u * RESULT_QUADS; i++) sum[i] = float4(0.0f);
#pragma unroll 1
      for (uint j0 = c0; j0 < min(c0 + CHUNK, seen); j0 += VALUE_PIECE) {
        // weights are there, and what was there has been used
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint i = 0; i < KEY_ITEMS; i++) ks[i * TILE_THREADS + tid] = widen(next[i]);
        if (j0 == 0u && tid < QUERIES) {
          const uint pos = pos0 + tid / HEADS;
#pragma unroll 1
          for (uint c = 0; c < 2u; c++) {
            if (first + c * CHUNK <= pos && first + (c + 1u) * CHUNK > first_of(pos, p)) {
              const float2 ml = fs[c * QUERIES + tid];
              fs[c * QUERIES + tid] = merge(state, ml.x, ml.y);
            }
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (j0 + VALUE_PIECE < seen) {
          load_values(b, table, p, page_rows, channel, j0 + VALUE_PIECE, tid, next);
        } else if (first + BLOCK < end) {
          b = place_of(table, first + BLOCK, BLOCK, low, last, page_rows);
          begin_keys(b, table, p, page_rows, channel, tid, keys, next);
        }
        threadgroup const float4* w = s + j0 * ROW_Q + result_q;
        threadgroup const float4* v = ks + result_at;
        if (j0 + VALUE_PIECE <= common && first + j0 >= lowest_last) {
#pragma unroll
          for (uint j = 0; j < VALUE_PIECE; j++) {
            const float4 x = v[j * VALUE_QUADS];
#pragma unroll
            for (uint a = 0; a < RESULT_QUADS; a++) {
              const float4 of = w[j * ROW_Q + RESULT_STEP * a];
#pragma unroll
              for (uint i = 0; i < 4u; i++) {
                sum[4u * a + i] = fma(float4(of[i]), x, sum[4u * a + i]);
              }
            }
          }
        } else {  // rows that do not see a position do not look at it
#pragma unroll 1
          for (uint j = 0; j < min(VALUE_PIECE, seen - j0); j++) {
            const uint at = first + j0 + j;
            const float4 x = v[j * VALUE_QUADS];
#pragma unroll
            for (uint a = 0; a < RESULT_QUADS; a++) {
              const float4 of = w[j * ROW_Q + RESULT_STEP * a];
#pragma unroll
              for (uint i = 0; i < 4u; i++) {
                const uint pos = pos0 + row_of_query(result_q + RESULT_STEP * a, i);
                if (at <= pos && at >= first_of(pos, p)) {
                  sum[4u * a + i] = fma(float4(of[i]), x, sum[4u * a + i]);
                }
              }
            }
          }
        }
      }
#pragma unroll
      for (uint i = 0; i < 4u * RESULT_QUADS; i++) {
        const uint quad = result_q + RESULT_STEP * (i / 4u), at = pos0 + row_of_query(quad, i % 4u);
        if (first + c0 <= at && first + c0 + CHUNK > first_of(at, p)) {
          const float2 f = fs[c0 / CHUNK * QUERIES + 4u * quad + i % 4u];
          acc[i] = fma(sum[i], float4(f.y), acc[i] * f.x);
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // factors have been used
  if (tid < QUERIES) fs[tid] = float2(state.m, state.l);
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < 4u * RESULT_QUADS; i++) {
    const uint query = 4u * (result_q + RESULT_STEP * (i / 4u)) + i % 4u, r = query / HEADS,
        h = query % HEADS;
    const uint span_r = first_of(pos0 + r, p) / (SPAN * CHUNK);  // the row's first
    if (r < tile_rows && h < live && span0 <= pos0 + r && span >= span_r) {
      const bool whole = (pos0 + r) / (SPAN * CHUNK) == span_r;
      const ulong at = (ulong(tile.entry + r) * p.parts + (span - span_r)) * p.heads + head0 + h;
      device float* to = whole ? y + (ulong(row0.row + r) * p.heads + head0 + h) * VALUE_DIM
          : parts + at * VALUE_DIM;
      const float2 ml = fs[query];
      const float4 v = whole ? acc[i] / ml.y * p.value_scale : acc[i];
      for (uint c = 0; c < 4u; c++) to[4u * result_at + c] = v[c];
      if (!whole && result_at == 0u) part_ml[at] = ml;
    }
  }
}
