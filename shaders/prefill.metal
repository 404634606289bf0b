// Causal softmax attention of many rows of a sequence: tiles of queries share the keys and values
// that threadgroup memory holds. Each row has the bits that attention.metal gives it: see
// cache.metal for the order of sums and the #define lines.
//
// A tile is QUERIES queries: HEADS heads of one key-value head of QUERIES/HEADS rows that follow
// one another. Positions are taken in blocks of two chunks: the scores of a block, then its
// weights, then the sums of values. Keys, queries and values come in pieces of 8 KiB and less.
// TILE_DIM is HEAD_DIM and VALUE_DIM, 64, 128 or 256, and the threads of a threadgroup;
// operands are WIDE.
#ifndef TILE_DIM
#define TILE_DIM 128
#define HEADS 8
#endif
#define HEAD_DIM TILE_DIM
#define VALUE_DIM TILE_DIM
#define WIDE 1
#include "cache.metal"

#define TILE_THREADS uint(HEAD_DIM)
#define QUERIES 32u
#define TILE_ROWS (QUERIES / HEADS)
#define BLOCK (2u * CHUNK)
#define PIECE 8u                             // quads of keys and queries
#define PIECE_LANES (PIECE / KEYS)           // lanes whose quads they are
#define MINE (QUERIES * BLOCK / 4u / TILE_THREADS)  // positions of a thread's scores, for 4 queries
#define FEW (BLOCK / MINE)                   // threads that share a query's scores, or its values
#define VALUE_PIECE (512u / VALUE_QUADS)     // positions of values
// floats of a query's scores: queries that a simdgroup reads together lie in different banks
#define ROW_S (BLOCK + 4u)

struct AttentionTile {
  uint entry;  // of its first row in the table of rows
  uint rows;
};

// What the threads of a tile share for one block.
struct BlockPlace {
  uint first;      // position
  uint low;        // the first that may be looked at
  uint last;       // that there is
  uint page_rows;
  uint page;       // of the first position, where all lie in one
  bool one;        // they do
};
inline BlockPlace place_of(uint first, uint low, uint last, uint page_rows) {
  BlockPlace b;
  b.first = first;
  b.low = low;
  b.last = last;
  b.page_rows = page_rows;
  b.page = first / page_rows;
  b.one = min(first + BLOCK - 1u, last) / page_rows == b.page;
  return b;
}
// Position i of a block: its page and where it lies in that. Positions past the last are the last
// one again, and so are those before the first.
inline uint2 position_of(thread const BlockPlace& b, uint i) {
  const uint at = max(min(b.first + i, b.last), b.low);
  if (b.one) return uint2(b.page, at - b.page * b.page_rows);
  return uint2(at / b.page_rows, at % b.page_rows);
}

// Grid: key-value heads times blocks of heads; tiles; spans. Rows of one span are written to y, see
// attention; others to parts.
[[max_total_threads_per_threadgroup(512)]]
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
                            uint sg [[simdgroup_index_in_threadgroup]],
                            uint sgs [[simdgroups_per_threadgroup]]) {
  // keys [quad][position], one more so that writers meet in no bank; values [position][quad]
  threadgroup float4 ks[PIECE * (BLOCK + 1u)];
  threadgroup float4 qs[PIECE * (QUERIES + 1u)];
  threadgroup float s[QUERIES * ROW_S];
  threadgroup float2 fs[QUERIES * 2u];  // factors of a query's chunks
  threadgroup float2 run[QUERIES];      // its state
  device const AttentionTile& tile = tiles[group.y];
  device const AttentionRow& row0 = rows[tile.entry];
  device const Page* table = pages + row0.pages;
  const uint pos0 = row0.pos, last = pos0 + tile.rows - 1u, page_rows = row0.page_rows;
  // positions
  const uint low = first_of(pos0, p), lowest_last = first_of(last, p);  // the first that the first row sees, and the last
  const uint span = low / (SPAN * CHUNK) + group.z;
  const uint span0 = span * SPAN * CHUNK, end = min(last + 1u, span0 + SPAN * CHUNK);
  const uint kv_head = group.x / p.blocks, head_block = group.x % p.blocks * HEADS;
  const uint head0 = kv_head * p.group + head_block, live = min(p.group - head_block, uint(HEADS));
  const uint channel = kv_head * HEAD_DIM;
  // this thread's place in a tile of scores
  const uint few = lane % 8u + 8u * (sg % (FEW / 8u)), qg = lane / 8u + 4u * (sg / (FEW / 8u));
  if (tid < QUERIES) {
    run[tid] = float2(LOWEST, 0.0f);
    if (p.sinks != 0u && span == first_of(pos0 + tid / HEADS, p) / (SPAN * CHUNK)) run[tid] = float2(sinks[head0 + min(tid % HEADS, live - 1u)], 1.0f);
  }
  float4 acc[4][2];
#pragma unroll
  for (uint i = 0; i < 4u; i++) acc[i][0] = acc[i][1] = float4(0.0f);
  for (uint first = max(span0, low / BLOCK * BLOCK); first < end; first += BLOCK) {
    const BlockPlace b = place_of(first, low, last, page_rows);
    float score[4][MINE];
#pragma unroll
    for (uint i = 0; i < 4u; i++) {
#pragma unroll
      for (uint t = 0; t < MINE; t++) score[i][t] = 0.0f;
    }
#pragma unroll 1
    for (uint l0 = 0; l0 < LANES; l0 += PIECE_LANES) {
      threadgroup_barrier(mem_flags::mem_threadgroup);  // what was there has been used
      // both the same for all items of a thread
      const uint x = tid % PIECE, quad = l0 + x / KEYS + LANES * (x % KEYS);
#pragma unroll
      for (uint i = 0; i < PIECE * BLOCK / TILE_THREADS; i++) {
        const uint at = (i * TILE_THREADS + tid) / PIECE;
        const uint2 place = position_of(b, at);
        ks[x * (BLOCK + 1u) + at] = widen(load_quad(table[place.x].at + p.keys, place.y, page_rows, p.kv_dim, channel + 4u * quad, channel + HEAD_DIM, p));
      }
#pragma unroll
      for (uint i = 0; i < PIECE * QUERIES / TILE_THREADS; i++) {
        const uint at = (i * TILE_THREADS + tid) / PIECE, r = min(at / HEADS, tile.rows - 1u), h = min(at % HEADS, live - 1u);
        qs[x * (QUERIES + 1u) + at] = *(device const float4*)(q + ulong(row0.row + r) * p.q_row + (head0 + h) * p.q_head + 4u * quad);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
      for (uint l = 0; l < PIECE_LANES; l++) {
        float sum[4][MINE];
#pragma unroll
        for (uint i = 0; i < 4u; i++) {
#pragma unroll
          for (uint t = 0; t < MINE; t++) sum[i][t] = 0.0f;
        }
#pragma unroll
        for (uint k = 0; k < KEYS; k++) {
          float4 a[4];
#pragma unroll
          for (uint i = 0; i < 4u; i++) a[i] = qs[(l * KEYS + k) * (QUERIES + 1u) + qg + 8u * i];
#pragma unroll
          for (uint t = 0; t < MINE; t++) {
            const float4 kt = ks[(l * KEYS + k) * (BLOCK + 1u) + few + FEW * t];
#pragma unroll
            for (uint i = 0; i < 4u; i++) {
              sum[i][t] = fma(a[i].w, kt.w, fma(a[i].z, kt.z, fma(a[i].y, kt.y, fma(a[i].x, kt.x, sum[i][t]))));
            }
          }
        }
#pragma unroll
        for (uint i = 0; i < 4u; i++) {
#pragma unroll
          for (uint t = 0; t < MINE; t++) score[i][t] += sum[i][t];
        }
      }
    }
#pragma unroll
    for (uint i = 0; i < 4u; i++) {
#pragma unroll
      for (uint t = 0; t < MINE; t++) s[(qg + 8u * i) * ROW_S + few + FEW * t] = score[i][t] * p.scale;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint query = sg; query < QUERIES; query += sgs) {
      const uint n = pos0 + query / HEADS + 1u, from = first_of(n - 1u, p);  // the end and the first of what it sees
      AttentionState state;
      state.m = run[query].x;
      state.l = run[query].y;
      simdgroup_barrier(mem_flags::mem_threadgroup);  // all lanes have read it
#pragma unroll
      for (uint c = 0; c < 2u; c++) {
        float2 ml;
        const float e = weigh(s[query * ROW_S + c * CHUNK + lane], first + c * CHUNK + lane < n && first + c * CHUNK + lane >= from, ml);
        float2 f = float2(1.0f, 0.0f);
        if (first + c * CHUNK < n && first + (c + 1u) * CHUNK > from) f = merge(state, ml.x, ml.y);
        s[query * ROW_S + c * CHUNK + lane] = e;
        if (lane == 0u) fs[query * 2u + c] = f;
      }
      if (lane == 0u) run[query] = float2(state.m, state.l);
    }
    // positions that some row sees
    const uint seen = min(end - first, BLOCK);
    const uint common = pos0 + 1u < first ? 0u : min(pos0 + 1u - first, BLOCK);  // and all rows
#pragma unroll 1
    for (uint c = 0; c < 2u; c++) {
      float4 sum[4][2];
#pragma unroll
      for (uint i = 0; i < 4u; i++) sum[i][0] = sum[i][1] = float4(0.0f);
#pragma unroll 1
      for (uint j0 = c * CHUNK; j0 < min((c + 1u) * CHUNK, seen); j0 += VALUE_PIECE) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint i = 0; i < VALUE_PIECE * VALUE_QUADS / TILE_THREADS; i++) {
          const uint item = i * TILE_THREADS + tid;
          const uint2 place = position_of(b, j0 + item / VALUE_QUADS);
          ks[item] =
            widen(load_quad(table[place.x].at + p.values, place.y, page_rows, p.v_dim, channel + 4u * (item % VALUE_QUADS), channel + VALUE_DIM, p));
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint j = 0; j < VALUE_PIECE; j += 4u) {
          float4 w[4];
#pragma unroll
          for (uint i = 0; i < 4u; i++) w[i] = *(threadgroup const float4*)(s + (qg + 8u * i) * ROW_S + j0 + j);
          if (j0 + j + 4u <= common && first + j0 + j >= lowest_last) {
#pragma unroll
            for (uint t = 0; t < 4u; t++) {
              const float4 va = ks[(j + t) * VALUE_QUADS + few], vb = ks[(j + t) * VALUE_QUADS + few + FEW];
#pragma unroll
              for (uint i = 0; i < 4u; i++) {
                sum[i][0] = fma(float4(w[i][t]), va, sum[i][0]);
                sum[i][1] = fma(float4(w[i][t]), vb, sum[i][1]);
              }
            }
          } else {  // rows that do not see a position do not look at it
#pragma unroll 1
            for (uint t = 0; t < 4u; t++) {
              const float4 va = ks[(j + t) * VALUE_QUADS + few], vb = ks[(j + t) * VALUE_QUADS + few + FEW];
#pragma unroll
              for (uint i = 0; i < 4u; i++) {
                const uint at = pos0 + (qg + 8u * i) / HEADS;
                if (first + j0 + j + t <= at && first + j0 + j + t >= first_of(at, p)) {
                  const float wt = s[(qg + 8u * i) * ROW_S + j0 + j + t];
                  sum[i][0] = fma(float4(wt), va, sum[i][0]);
                  sum[i][1] = fma(float4(wt), vb, sum[i][1]);
                }
              }
            }
          }
        }
      }
      if (c * CHUNK < seen) {
#pragma unroll
        for (uint i = 0; i < 4u; i++) {
          const uint at = pos0 + (qg + 8u * i) / HEADS;
          if (first + c * CHUNK <= at && first + (c + 1u) * CHUNK > first_of(at, p)) {
            const float2 f = fs[(qg + 8u * i) * 2u + c];
            acc[i][0] = fma(sum[i][0], float4(f.y), acc[i][0] * f.x);
            acc[i][1] = fma(sum[i][1], float4(f.y), acc[i][1] * f.x);
          }
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (uint i = 0; i < 4u; i++) {
    const uint query = qg + 8u * i, r = query / HEADS, h = query % HEADS;
    const uint span_r = first_of(pos0 + r, p) / (SPAN * CHUNK);  // the row's first
    if (r < tile.rows && h < live && span0 <= pos0 + r && span >= span_r) {
      const bool whole = (pos0 + r) / (SPAN * CHUNK) == span_r;
      const ulong at = (ulong(tile.entry + r) * p.parts + (span - span_r)) * p.heads + head0 + h;
      device float* to = whole ? y + (ulong(row0.row + r) * p.heads + head0 + h) * VALUE_DIM : parts + at * VALUE_DIM;
      const float2 ml = run[query];
#pragma unroll
      for (uint part = 0; part < 2u; part++) {
        const float4 v = whole ? acc[i][part] / ml.y * p.value_scale : acc[i][part];
        for (uint c = 0; c < 4u; c++) to[4u * (few + FEW * part) + c] = v[c];
      }
      if (!whole && few == 0u) part_ml[at] = ml;
    }
  }
}
