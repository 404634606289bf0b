// The K largest of a row of logits, and the sum of all exponentials.
//
// Logits are compared as whole numbers: keys, which grow as the floats do. The K-th largest key is
// found two bits at a time by counting; where several have that key, those of the lowest indices
// are taken. So what is chosen, and its order, depends on the logits alone. EACH is how many
// candidates a thread has.
#include "common.metal"

#ifndef EACH
#define EACH 8
#endif
#define PART_THREADS 256u
#define PART (8u * PART_THREADS)  // logits of a threadgroup of topk_parts, whose EACH is 8
#define MOST 64u                  // K
#define MOST_SGS 32u
#define LOWEST (-1e30f)

struct TopKParams {
  uint vocab;
  uint k;
  uint parts;  // of a row
};

// The sum over the threadgroup of counts, of which each thread has at most EACH. turns says which
// half of part, [2][MOST_SGS], is used: threads may be at the next sum while others read the last.
inline uint4 total(uint4 counts, threadgroup uint4* part, thread uint& turns, uint lane, uint sg, uint sgs) {
  threadgroup uint4* p = part + (turns & 1u) * MOST_SGS;
  turns += 1u;
  // of a simdgroup they have 16 bits
  const uint xy = simd_sum(counts.x | counts.y << 16), z = simd_sum(counts.z);
  if (lane == 0u) p[sg] = uint4(xy & 0xffffu, xy >> 16, z, 0u);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint4 mine = lane < sgs ? p[lane] : uint4(0u);
  return uint4(simd_sum(mine.x), simd_sum(mine.y), simd_sum(mine.z), 0u);
}

// Which of the threadgroup's candidates are among its k largest: exactly k, each with a place of
// its own below k in at, or at = k. Candidates of one key have different indices, and there are k
// or more. All threads call it.
inline void choose(thread const uint* keys, thread const uint* indices, uint k, threadgroup uint4* part, uint lane, uint sg, uint sgs,
                   thread uint* at) {
  uint turns = 0u, key = 0u, taken = 0u;  // how many have the key or one above
  for (uint bit = 32u; bit > 0u && taken != k;) {
    bit -= 2u;
    uint4 n = uint4(0u);
#pragma unroll
    for (uint i = 0; i < EACH; i++) {
      n.x += keys[i] >= (key | 1u << bit) ? 1u : 0u;
      n.y += keys[i] >= (key | 2u << bit) ? 1u : 0u;
      n.z += keys[i] >= (key | 3u << bit) ? 1u : 0u;
    }
    n = total(n, part, turns, lane, sg, sgs);
    const uint digit = n.z >= k ? 3u : n.y >= k ? 2u : n.x >= k ? 1u : 0u;
    key |= digit << bit;
    if (digit > 0u) taken = digit == 3u ? n.z : digit == 2u ? n.y : n.x;
  }
  uint last = 0xffffffffu;  // index up to which candidates of the key itself are taken
  if (taken != k) {
    uint4 n = uint4(0u);
    for (uint i = 0; i < EACH; i++) n.x += keys[i] > key ? 1u : 0u;
    const uint want = k - total(n, part, turns, lane, sg, sgs).x;
    uint below = 0u;  // fewer than wanted have an index below
    for (uint bit = 32u; bit > 0u;) {
      bit -= 2u;
      n = uint4(0u);
      for (uint i = 0; i < EACH; i++) {
        n.x += keys[i] == key && indices[i] < (below | 1u << bit) ? 1u : 0u;
        n.y += keys[i] == key && indices[i] < (below | 2u << bit) ? 1u : 0u;
        n.z += keys[i] == key && indices[i] < (below | 3u << bit) ? 1u : 0u;
      }
      n = total(n, part, turns, lane, sg, sgs);
      below |= (n.z < want ? 3u : n.y < want ? 2u : n.x < want ? 1u : 0u) << bit;
    }
    last = below;
  }
  uint mine = 0u;
#pragma unroll
  for (uint i = 0; i < EACH; i++) mine += keys[i] > key || (keys[i] == key && indices[i] <= last) ? 1u : 0u;
  const uint before = simd_prefix_exclusive_sum(mine);
  threadgroup uint4* p = part + (turns & 1u) * MOST_SGS;
  if (lane == 31u) p[sg] = uint4(before + mine);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint place = before;
  for (uint i = 0; i < sg; i++) place += p[i].x;
#pragma unroll
  for (uint i = 0; i < EACH; i++) {
    const bool chosen = keys[i] > key || (keys[i] == key && indices[i] <= last);
    at[i] = chosen ? place : k;
    place += chosen ? 1u : 0u;
  }
}

// The largest of the threadgroup's floats. part is [MOST_SGS].
inline float largest_of(float x, threadgroup float* part, uint lane, uint sg, uint sgs) {
  x = simd_max(x);
  if (lane == 0u) part[sg] = x;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < sgs; i++) x = max(x, part[i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return x;
}
// Their sum.
inline float sum_of(float x, threadgroup float* part, uint lane, uint sg, uint sgs) {
  x = simd_sum(x);
  if (lane == 0u) part[sg] = x;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float s = part[0];
  for (uint i = 1; i < sgs; i++) s += part[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return s;
}

// The k largest of each PART logits of a row as keys and indices, chosen[row, part, k], and the
// largest of them with the sum of exponentials against it, stats[row, part]. A part of fewer than k
// has others after them, of key 0, which no logit has. Grid: parts, rows.
[[max_total_threads_per_threadgroup(256)]]
kernel void topk_parts(device const float* logits [[buffer(0)]],
                       device uint2* chosen [[buffer(1)]],
                       device float2* stats [[buffer(2)]],
                       constant TopKParams& p [[buffer(3)]],
                       uint2 group [[threadgroup_position_in_grid]],
                       uint tid [[thread_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup uint4 part[2u * MOST_SGS];
  threadgroup float floats[MOST_SGS];
  device const float* row = logits + ulong(group.y) * p.vocab;
  uint keys[EACH], indices[EACH], at[EACH];
  float x[EACH], m = LOWEST;
#pragma unroll
  for (uint i = 0; i < EACH; i++) {
    const uint index = group.x * PART + i * PART_THREADS + tid;
    const bool live = index < p.vocab;
    const float logit = live ? row[index] : LOWEST;
    x[i] = live ? max(logit, LOWEST) : 2.0f * LOWEST;
    keys[i] = live ? key_of(logit) : 0u;
    indices[i] = index;
    m = max(m, x[i]);
  }
  m = largest_of(m, floats, lane, sg, sgs);
  float s = 0.0f;
#pragma unroll
  for (uint i = 0; i < EACH; i++) s += exp(x[i] - m);
  s = sum_of(s, floats, lane, sg, sgs);
  const ulong out = ulong(group.y) * p.parts + group.x;
  if (tid == 0u) stats[out] = float2(m, s);
  choose(keys, indices, p.k, part, lane, sg, sgs, at);
#pragma unroll
  for (uint i = 0; i < EACH; i++) {
    if (at[i] < p.k) chosen[out * p.k + at[i]] = uint2(keys[i], indices[i]);
  }
}

// The k largest of a row's parts, in order, with their indices, and the row's largest and log Σ
// exp(logit - largest). Grid: rows.
[[max_total_threads_per_threadgroup(512)]]
kernel void topk_merge(device const float* logits [[buffer(0)]],
                       device const uint2* chosen [[buffer(1)]],
                       device const float2* part_stats [[buffer(2)]],
                       device float* values [[buffer(3)]],
                       device uint* indices [[buffer(4)]],
                       device float* stats [[buffer(5)]],
                       constant TopKParams& p [[buffer(6)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint tid [[thread_index_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup uint4 part[2u * MOST_SGS];
  threadgroup float floats[MOST_SGS];
  threadgroup uint2 best[MOST];
  const uint threads = sgs * 32u, n = p.parts * p.k;
  uint keys[EACH], candidates[EACH], at[EACH];
#pragma unroll
  for (uint i = 0; i < EACH; i++) {
    const uint j = i * threads + tid;
    const uint2 c = j < n ? chosen[ulong(group) * n + j] : uint2(0u, 0x80000000u + j);
    keys[i] = c.x;
    candidates[i] = c.y;
  }
  float m = LOWEST;
  for (uint i = tid; i < p.parts; i += threads) m = max(m, part_stats[ulong(group) * p.parts + i].x);
  m = largest_of(m, floats, lane, sg, sgs);
  float s = 0.0f;
  for (uint i = tid; i < p.parts; i += threads) {
    const float2 of = part_stats[ulong(group) * p.parts + i];
    s = fma(of.y, exp(of.x - m), s);
  }
  s = sum_of(s, floats, lane, sg, sgs);
  if (tid == 0u) {
    stats[2u * group] = m;
    stats[2u * group + 1u] = log(s);
  }
  choose(keys, candidates, p.k, part, lane, sg, sgs, at);
#pragma unroll
  for (uint i = 0; i < EACH; i++) {
    if (at[i] < p.k) best[at[i]] = uint2(keys[i], candidates[i]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < p.k) {
    const uint2 c = best[tid];
    uint rank = 0u;
    for (uint i = 0; i < p.k; i++) rank += best[i].x > c.x || (best[i].x == c.x && best[i].y < c.y) ? 1u : 0u;
    values[ulong(group) * p.k + rank] = logits[ulong(group) * p.vocab + c.y];
    indices[ulong(group) * p.k + rank] = c.y;
  }
}
