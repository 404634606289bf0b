// What happens to the heads' vectors between the products that make them and attention, in one launch: norms of queries and keys, rotation, and
// rows of keys and values on their way to the cache. Each step computes what its own kernel does, to the bit.
//
// A set is vectors of one kind: the queries, the keys, the values. A simdgroup takes one vector. KV8: the cache holds 8 bits and scales, else float.
#include "append.metal"
#include "rotate.metal"
#include "vectors.metal"

#define SETS 3
#define SIMDGROUPS 4  // of a threadgroup
#define WIDTH (128 * QUADS)

struct HeadSet {
  device float* x;            // vector (row, head) begins at row·row + head·head
  device const float* w;      // of the norm
  device const float* turns;  // [rows, pairs, 2]
  device float* copy;         // of channels, from copied on; vector (row, head) goes to row·copy_row + head·copy_head
  uint row;
  uint head;
  uint heads;   // 0: there is no such set
  uint dim;     // channels of a vector
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
inline void normalised(constant HeadSet& s, device const float* x, uint lane, uint n, threadgroup float* h) {
  float4 v[QUADS], all[QUADS];
  const uint norm = min(s.norm, n);
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
    const uint i = quad_at(q, lane);
    all[q] = load_quad(x, i, n);
    v[q] = all[q];
#pragma unroll
    for (uint c = 0; c < 4u; c++) v[q][c] = i + c < norm ? v[q][c] : 0.0f;
  }
  const float factor = norm_factor(square_sum(v, lane, 0u, h), max(s.norm, 1u), s.eps);
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
#pragma unroll
    for (uint c = 0; c < 4u; c++) {
      const uint i = quad_at(q, lane) + c;
      float y = all[q][c];
      if (i < norm) y = s.w[i] * (v[q][c] * factor);
      if (i < n) h[i] = y;
    }
  }
}

// Rotates the pairs of the vector in h.
inline void rotated(constant HeadSet& s, uint row, uint lane, uint pairs, threadgroup float* h) {
  for (uint pair = lane; pair < pairs; pair += 32u) {
    device const float* turn = s.turns + (ulong(row) * s.pairs + pair) * 2u;
#if INTERLEAVED
    const uint ia = s.turned + 2u * pair, ib = ia + 1u;
#else
    const uint ia = s.turned + pair, ib = ia + s.pairs;
#endif
    const float a = h[ia], b = h[ib];
    h[ia] = turned_first(a, b, turn[0], turn[1]);
    h[ib] = turned_second(a, b, turn[0], turn[1]);
  }
}

// Writes n channels of the vector in h, whose first is channel first of a row of the cache.
inline void kept(device uchar* part, device const AppendRow& r, constant HeadVectorsParams& p, uint first, uint lane, uint n,
                 threadgroup const float* h) {
#if KV8
  device uchar* codes = part + ulong(r.slot) * p.cache_dim + first;
  for (uint from = 0; from < n; from += p.group) {
    uint most = 0u;
    for (uint i = lane; i < p.group; i += 32u) most = max(most, magnitude(h[from + i]));
    const RoundedGroup to = rounded_group(simd_max(most));
    for (uint i = lane; i < p.group; i += 32u) codes[from + i] = rounded(h[from + i], to);
    if (lane == 0u) scales_of(part, r, p.cache_dim)[(first + from) / p.group * r.page_rows + r.slot] = to.scale;
  }
#else
  device float* to = (device float*)part + ulong(r.slot) * p.cache_dim + first;
  for (uint i = lane; i < n; i += 32u) to[i] = h[i];
#endif
}

// Grid: the vectors of all rows, SIMDGROUPS a threadgroup. rows has the places of the rows in the cache, in order.
[[max_total_threads_per_threadgroup(128)]]
kernel void head_vectors(device const AppendRow* rows [[buffer(0)]],
                         constant HeadVectorsParams& p [[buffer(1)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float all[SIMDGROUPS][WIDTH];
  const uint at = group * SIMDGROUPS + sg, row = min(at / p.vectors, p.rows - 1u);
  uint head = at % p.vectors, which = 0u;
  for (uint i = 0; i + 1u < SETS; i++) {
    if (which == i && head >= p.set[i].heads) {
      head -= p.set[i].heads;
      which = i + 1u;
    }
  }
  constant HeadSet& s = p.set[which];
  const bool live = at < p.vectors * p.rows;
  const uint n = live ? s.dim : 0u;
  device float* x = s.x + ulong(row) * s.row + ulong(head) * s.head;
  threadgroup float* h = all[sg];
  normalised(s, x, lane, n, h);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  rotated(s, row, lane, live ? s.pairs : 0u, h);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (s.norm > 0u || s.pairs > 0u) {
    for (uint i = lane; i < n; i += 32u) x[i] = h[i];
  }
  if (live) {
    for (uint i = lane; i < s.copies; i += 32u) s.copy[ulong(row) * s.copy_row + ulong(head) * s.copy_head + i] = h[s.copied + i];
    device const AppendRow& r = rows[row];
    if (s.part == 1u) kept(r.k, r, p, head * s.head, lane, n, h);
    if (s.part == 2u) kept(r.v, r, p, head * s.head, lane, n, h);
  }
}
