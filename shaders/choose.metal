// The choice of positions or blocks by scores of an indexer, see gpu.Choose.
//
// A product is a sum over the channels in order, and a position's score one over the heads in order,
// whatever is scored beside it. The choice compares scores as whole numbers, so it depends on them
// alone. HEAD_DIM is the channels of a key; WIDE and KV8 are as in cache.metal.
#include "cache.metal"

#define SCORED 256u   // positions of a threadgroup
#define TOGETHER 16u  // heads whose products a thread keeps
#define MOST_SGS 32u

struct ChooseParams {
  uint k;
  uint stride;  // floats from a list's scores to the next one's
  uint block;   // positions of an entry
  uint local;   // entries that are chosen in any case, the last ones
};

// scores[row of the launch, stride]. Grid: positions, rows.
[[max_total_threads_per_threadgroup(256)]]
kernel void index_scores(device const float* q [[buffer(0)]],
                         device const float* weights [[buffer(1)]],
                         device const AttentionRow* rows [[buffer(2)]],
                         device const Page* pages [[buffer(3)]],
                         device float* scores [[buffer(4)]],
                         constant AttentionParams& p [[buffer(5)]],
                         constant ChooseParams& c [[buffer(6)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint tid [[thread_index_in_threadgroup]]) {
  threadgroup float4 qs[TOGETHER * QUADS];
  threadgroup float ws[TOGETHER];
  device const AttentionRow& row = rows[group.y];
  const uint first = group.x * SCORED, pos = min(first + tid, row.pos);
  const uint heads = first <= row.pos ? p.heads : 0u;  // rows of a launch may have fewer positions than others
  device const uchar* part = pages[row.pages + pos / row.page_rows].at + p.keys;
  device const float* from = q + ulong(row.row) * p.q_row;
  float total = 0.0f;
  for (uint h0 = 0; h0 < heads; h0 += TOGETHER) {
    const uint n = min(heads - h0, TOGETHER);
    threadgroup_barrier(mem_flags::mem_threadgroup);  // what was there has been used
    for (uint i = tid; i < TOGETHER * QUADS; i += SCORED) {
      qs[i] = i / QUADS < n ? load_query(from + (h0 + i / QUADS) * p.q_head, i % QUADS * 4u) : float4(0.0f);
    }
    if (tid < TOGETHER) ws[tid] = tid < n ? weights[ulong(row.row) * p.heads + h0 + tid] : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum[TOGETHER];
#pragma unroll
    for (uint h = 0; h < TOGETHER; h++) sum[h] = 0.0f;
    for (uint quad = 0; quad < QUADS; quad++) {
      const float4 key = widen(load_quad(part, pos % row.page_rows, row.page_rows, p.kv_dim, 4u * quad, HEAD_DIM, p));
#pragma unroll
      for (uint h = 0; h < TOGETHER; h++) {
        const float4 x = qs[h * QUADS + quad];
        sum[h] = fma(x.w, key.w, fma(x.z, key.z, fma(x.y, key.y, fma(x.x, key.x, sum[h]))));
      }
    }
#pragma unroll
    for (uint h = 0; h < TOGETHER; h++) {
      const float product = sum[h] * p.scale;
      if (h < n) total = fma(ws[h], product < 0.0f ? 0.0f : product, total);  // NaN stays
    }
  }
  if (first + tid <= row.pos) scores[ulong(group.y) * c.stride + first + tid] = total;
}

// The number that has a key.
inline float number_of(uint key) { return as_type<float>(key & 0x80000000u ? key & 0x7fffffffu : ~key); }

// scores[row of the launch, head, stride]: the largest product of each block. A threadgroup takes
// as many blocks as SCORED positions are, or one, whose positions follow in pieces. Grid: blocks,
// rows.
#define BLOCK_HEADS 4u
[[max_total_threads_per_threadgroup(256)]]
kernel void block_scores(device const float* q [[buffer(0)]],
                         device const AttentionRow* rows [[buffer(1)]],
                         device const Page* pages [[buffer(2)]],
                         device float* scores [[buffer(3)]],
                         constant AttentionParams& p [[buffer(4)]],
                         constant ChooseParams& c [[buffer(5)]],
                         uint2 group [[threadgroup_position_in_grid]],
                         uint tid [[thread_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float4 qs[BLOCK_HEADS * QUADS];
  threadgroup uint keys[BLOCK_HEADS * SCORED];
  device const AttentionRow& row = rows[group.y];
  const uint each = max(SCORED / c.block, 1u), b0 = group.x * each, seen = row.pos / c.block + 1u;
  const uint heads = b0 < seen ? p.heads : 0u;  // rows of a launch may have fewer blocks than others
  const uint first = b0 * c.block, size = min(each * c.block, row.pos + 1u - min(first, row.pos));
  device const float* from = q + ulong(row.row) * p.q_row;
  for (uint h0 = 0; h0 < heads; h0 += BLOCK_HEADS) {
    const uint n = min(heads - h0, BLOCK_HEADS);
    threadgroup_barrier(mem_flags::mem_threadgroup);  // what was there has been used
    for (uint i = tid; i < BLOCK_HEADS * QUADS; i += SCORED) {
      qs[i] = i / QUADS < n ? load_query(from + (h0 + i / QUADS) * p.q_head, i % QUADS * 4u) : float4(0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint most = 0u;
    for (uint base = 0; base < size; base += SCORED) {
      const uint pos = min(first + base + tid, row.pos);
      device const uchar* part = pages[row.pages + pos / row.page_rows].at + p.keys;
      float sum[BLOCK_HEADS];
#pragma unroll
      for (uint h = 0; h < BLOCK_HEADS; h++) sum[h] = 0.0f;
      for (uint quad = 0; quad < QUADS; quad++) {
        const float4 key = widen(load_quad(part, pos % row.page_rows, row.page_rows, p.kv_dim, 4u * quad, HEAD_DIM, p));
#pragma unroll
        for (uint h = 0; h < BLOCK_HEADS; h++) {
          const float4 x = qs[h * QUADS + quad];
          sum[h] = fma(x.w, key.w, fma(x.z, key.z, fma(x.y, key.y, fma(x.x, key.x, sum[h]))));
        }
      }
#pragma unroll
      for (uint h = 0; h < BLOCK_HEADS; h++) keys[h * SCORED + tid] = base + tid < size ? key_of(sum[h] * p.scale) : 0u;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = sg; i < n * each; i += SCORED / 32u) {
        const uint h = i / each, b = i % each;
        uint best = 0u;
        for (uint j = lane; j < min(c.block, SCORED); j += 32u) best = max(best, keys[h * SCORED + b * c.block + j]);
        best = simd_max(best);
        most = each == 1u ? max(most, best) : best;  // of one block, a simdgroup has the pieces of a head
        if (lane == 0u && b0 + b < seen) scores[(ulong(group.y) * p.heads + h0 + h) * c.stride + b0 + b] = number_of(most);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
}

// The sums of counts over the threadgroup. turns says which half of part, [2][MOST_SGS], is used:
// threads may be at the next sum while others read the last.
inline uint4 totals(uint4 counts, threadgroup uint4* part, thread uint& turns, uint lane, uint sg, uint sgs) {
  threadgroup uint4* p = part + (turns & 1u) * MOST_SGS;
  turns += 1u;
  const uint x = simd_sum(counts.x), y = simd_sum(counts.y), z = simd_sum(counts.z);
  if (lane == 0u) p[sg] = uint4(x, y, z, 0u);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint4 mine = lane < sgs ? p[lane] : uint4(0u);
  return uint4(simd_sum(mine.x), simd_sum(mine.y), simd_sum(mine.z), 0u);
}

// The entries of a list's largest scores, rising, k of them or all if they are not more. The last
// ones, local, are chosen whatever their scores. The least key of the others that are chosen is
// found two bits at a time by counting; of entries with that key the lowest are taken. Grid: lists
// of a row, rows.
[[max_total_threads_per_threadgroup(512)]]
kernel void choose_entries(device const float* scores [[buffer(0)]],
                           device const AttentionRow* rows [[buffer(1)]],
                           device uint* chosen [[buffer(2)]],
                           constant ChooseParams& c [[buffer(3)]],
                           uint2 group [[threadgroup_position_in_grid]],
                           uint2 grid [[threadgroups_per_grid]],
                           uint tid [[thread_index_in_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]],
                           uint sg [[simdgroup_index_in_threadgroup]],
                           uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup uint4 part[2u * MOST_SGS];
  threadgroup uint counts[2u * MOST_SGS];
  const uint seen = rows[group.y].pos / c.block + 1u, given = min(c.local, seen), n = seen - given, threads = sgs * 32u;
  const uint k = min(c.k, seen) - given;
  device const float* from = scores + (ulong(group.y) * grid.x + group.x) * c.stride;
  device uint* to = chosen + (ulong(rows[group.y].row) * grid.x + group.x) * c.k;
  for (uint i = tid; i < given; i += threads) to[k + i] = n + i;
  uint turns = 0u, key = 0u, want = 0u;  // all keys are above 0
  if (n > k) {
    for (uint bit = 32u; bit > 0u;) {
      bit -= 2u;
      uint4 count = uint4(0u);
      for (uint i = tid; i < n; i += threads) {
        const uint x = key_of(from[i]);
        count.x += x >= (key | 1u << bit) ? 1u : 0u;
        count.y += x >= (key | 2u << bit) ? 1u : 0u;
        count.z += x >= (key | 3u << bit) ? 1u : 0u;
      }
      count = totals(count, part, turns, lane, sg, sgs);
      key |= (count.z >= k ? 3u : count.y >= k ? 2u : count.x >= k ? 1u : 0u) << bit;
    }
    uint4 above = uint4(0u);
    for (uint i = tid; i < n; i += threads) above.x += key_of(from[i]) > key ? 1u : 0u;
    want = k - totals(above, part, turns, lane, sg, sgs).x;
  }
  uint higher = 0u, equal = 0u;  // positions before, with keys above and equal
  for (uint base = 0; base < n; base += threads) {
    const uint i = base + tid, x = i < n ? key_of(from[i]) : 0u;
    const bool is_higher = i < n && x > key, is_equal = i < n && x == key;
    const uint mine = (is_higher ? 1u : 0u) + (is_equal ? 65536u : 0u), before = simd_prefix_exclusive_sum(mine);
    threadgroup uint* all = counts + (turns & 1u) * MOST_SGS;
    turns += 1u;
    if (lane == 31u) all[sg] = before + mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint sum = before, whole = 0u;
    for (uint g = 0; g < sgs; g++) {
      sum += g < sg ? all[g] : 0u;
      whole += all[g];
    }
    const uint taken = equal + (sum >> 16);
    if (is_higher || (is_equal && taken < want)) to[higher + (sum & 65535u) + min(taken, want)] = i;
    higher += whole & 65535u;
    equal += whole >> 16;
  }
}
