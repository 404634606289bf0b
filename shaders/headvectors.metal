// What happens to the heads' vectors between the products that make them and attention, in one
// launch: norms of queries and keys, rotation, and rows of keys and values on their way to the
// cache. Each step computes what its own kernel does, to the bit.
//
// A set is vectors of one kind: the queries, the keys, the values. A simdgroup takes one vector.
// KV8: the cache holds 8 bits and scales, else float.
#include "append.metal"
#include "rotate.metal"
#include "vectors.metal"

#define SETS 3
#define SIMDGROUPS 4  // of a threadgroup
#define WIDTH (128 * QUADS)

struct HeadSet {
  device float* x;            // vector (row, head) begins at row·row + head·head
  device const float* w;      // of the norm; without, any 1 float
  device const float* turns;  // [rows, pairs, 2]; without pairs, any 2 floats
  // of channels, from copied on; vector (row, head) goes to row·copy_row + head·copy_head
  device float* copy;
  uint row;
  uint head;
  uint heads;   // 0: there is no such set
  uint dim;     // channels of a vector, 2 at least
  uint norm;    // that are normalised, from the first on; 0: none
  uint turned;  // the first that is rotated
  uint pairs;   // that are rotated; 0: none
  uint part;    // of the cache: 0 none, 1 keys, 2 values
  uint copied;
  uint copies;  // channels; 0: none
  uint copy_row;
  uint copy_head;
  float eps;
  uint pad;
};
struct HeadVectorsParams {
  HeadSet set[SETS];
  uint vectors;  // of a row, of all sets
  uint rows;
  uint cache_dim;
  uint group;  // channels that share a scale
};

// The vector's channels, the first of them normalised, into h.
inline void normalised(constant HeadSet& s, device const float* x, uint lane, threadgroup float* h) {
  float4 v[QUADS], w[QUADS], squared[QUADS];
  const uint last = max(s.norm, 1u) - 1u;
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
    const uint i = quad_at(q, lane);
    v[q] = load_quad(x, i, s.dim);
#pragma unroll
    for (uint c = 0; c < 4u; c++) {
      w[q][c] = s.w[min(i + c, last)];
      squared[q][c] = i + c < s.norm ? v[q][c] : 0.0f;
    }
  }
  const float factor = norm_factor(square_sum(squared, lane, 0u, h), last + 1u, s.eps);
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
#pragma unroll
    for (uint c = 0; c < 4u; c++) {
      const uint i = quad_at(q, lane) + c;
      if (i < s.dim) h[i] = i < s.norm ? w[q][c] * (v[q][c] * factor) : v[q][c];
    }
  }
}

// The lane's pairs: lane, lane + 32, …
#define PAIRS (2 * QUADS)

// Cosines and sines of a row for the lane's pairs.
inline void load_turns(constant HeadSet& s, uint row, uint lane, thread float2* turns) {
  device const float* from = s.turns + ulong(row) * s.pairs * 2u;
#pragma unroll
  for (uint j = 0; j < PAIRS; j++) {
    const uint i = 2u * min(32u * j + lane, max(s.pairs, 1u) - 1u);
    turns[j] = float2(from[i], from[i + 1u]);
  }
}

// Rotates the pairs of the vector in h.
inline void rotated(constant HeadSet& s, uint lane, thread const float2* turns, threadgroup float* h) {
#pragma unroll
  for (uint j = 0; j < PAIRS; j++) {
    const uint pair = 32u * j + lane;
    if (pair < s.pairs) {
#if INTERLEAVED
      const uint ia = s.turned + 2u * pair, ib = ia + 1u;
#else
      const uint ia = s.turned + pair, ib = ia + s.pairs;
#endif
      const float a = h[ia], b = h[ib];
      h[ia] = turned_first(a, b, turns[j].x, turns[j].y);
      h[ib] = turned_second(a, b, turns[j].x, turns[j].y);
    }
  }
}

// Writes n channels of the vector in h, whose first is channel first of a row of the cache.
inline void kept(device uchar* part, uint slot, uint page_rows, constant HeadVectorsParams& p, uint first, uint lane, uint n,
                 threadgroup const float* h) {
#if KV8
  device uchar* codes = part + ulong(slot) * p.cache_dim + first;
  for (uint from = 0; from < n; from += p.group) {
    uint most = 0u;
    for (uint i = lane; i < p.group; i += 32u) most = max(most, magnitude(h[from + i]));
    const RoundedGroup to = rounded_group(simd_max(most));
    for (uint i = lane; i < p.group; i += 32u) codes[from + i] = rounded(h[from + i], to);
    if (lane == 0u) scales_of(part, page_rows, p.cache_dim)[(first + from) / p.group * page_rows + slot] = to.scale;
  }
#else
  device float* to = (device float*)part + ulong(slot) * p.cache_dim + first;
  for (uint i = lane; i < n; i += 32u) to[i] = h[i];
#endif
}

// Grid: the vectors of all rows, SIMDGROUPS a threadgroup; simdgroups past the last read that once
// more and write nothing. rows has the places of the rows in the cache, in order.
[[max_total_threads_per_threadgroup(128)]]
kernel void head_vectors(device const AppendRow* rows [[buffer(0)]],
                         constant HeadVectorsParams& p [[buffer(1)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float all[SIMDGROUPS][WIDTH];
  LAUNCH_DEPENDENTS
  const uint at = group * SIMDGROUPS + sg, v = min(at, p.vectors * p.rows - 1u), row = v / p.vectors;
  uint head = v % p.vectors, which = 0u;
  for (uint i = 0; i + 1u < SETS; i++) {
    if (which == i && head >= p.set[i].heads) {
      head -= p.set[i].heads;
      which = i + 1u;
    }
  }
  constant HeadSet& s = p.set[which];
  const bool live = at == v;
  device float* x = s.x + ulong(row) * s.row + ulong(head) * s.head;
  threadgroup float* h = all[sg];
  device uchar* part = nullptr;
  uint slot = 0u, page_rows = 0u;
  if (s.part > 0u) {
    device const AppendRow& r = rows[row];
    part = s.part == 1u ? r.k : r.v;
    slot = r.slot;
    page_rows = r.page_rows;
  }
  // Since the last token more was read than a cache holds.
  PREFETCH(s.w + min(4u * lane, max(s.norm, 1u) - 1u));
  PREFETCH(s.turns + ulong(row) * s.pairs * 2u + min(4u * lane, max(2u * s.pairs, 1u) - 1u));
  WAIT_PREREQUISITES
  float2 turns[PAIRS];
  load_turns(s, row, lane, turns);
  normalised(s, x, lane, h);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  rotated(s, lane, turns, h);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (live) {
    if (s.norm > 0u || s.pairs > 0u) {
      for (uint i = lane; i < s.dim; i += 32u) x[i] = h[i];
    }
    for (uint i = lane; i < s.copies; i += 32u) s.copy[ulong(row) * s.copy_row + ulong(head) * s.copy_head + i] = h[s.copied + i];
    if (s.part > 0u) kept(part, slot, page_rows, p, head * s.head, lane, s.dim, h);
  }
}
