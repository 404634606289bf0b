// Routing on the device: the choice of experts, and the lists by which experts.metal works.
#include "common.metal"

#ifndef EXPERTS
#define EXPERTS 1
#define TOPK 1
#endif
#ifndef SIZE
#define SIZE 32
#endif

// A number's bits in an order in which larger numbers have larger bits: 0 is below all finite ones.
// The two zeros are one number.
inline uint ordered(float x) {
  const uint b = as_type<uint>(x);
  if ((b & 0x7fffffffu) == 0u) return 0x80000000u;
  return (b >> 31) != 0u ? ~b : b | 0x80000000u;
}

// Moves the place of the largest of n keys, of equal ones the lowest place, to the front: returns
// it, and takes it out. For one simdgroup, all of whose lanes get it. A lane looks at places lane,
// lane + 32, … alone.
inline uint take_best(threadgroup uint* keys, uint n, uint lane) {
  uint best = 0u, at = n;
  for (uint i = lane; i < n; i += 32u) {
    if (keys[i] > best) {
      best = keys[i];
      at = i;
    }
  }
  const uint most = simd_max(best);
  const uint first = simd_min(best == most ? at : n);
  // With one key a compiler lets all lanes read it: none may read after the write below.
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (first < n && (first & 31u) == lane) keys[first] = 0u;
  return first;
}

struct ExpertJob {
  uint expert;
  uint first;  // in pairs
  uint count;
  uint pad;
};
struct RouteParams {
  uint groups;  // 0 or 1: none
  uint top_groups;
  float scale;
};
// Room for the picks: compilers read four at a time, the last ones, too.
#define CHOSEN ((TOPK + 3u) / 4u * 4u)
// GROUPED: experts may be in groups, of which the best are chosen first. 0 leaves out what that
// takes.
#ifndef GROUPED
#define GROUPED 1
#endif
#if GROUPED
#define SUMS EXPERTS
#else
#define SUMS 1u
#endif

// Chooses TOPK of EXPERTS by a row's scores s, see gpu.Route. SIGMOID: 0 softmax, 1 each score on
// its own. NORM: weights are divided by their sum. BIAS: it is added for the choice. JOBS, for one
// row alone: each pick becomes a job of its own, for experts.metal. For one simdgroup, whose
// threadgroup memory keys, sums, group_keys and chosen are; all of a threadgroup call it.
inline void route_row(device const float* s, device const float* bias, device int* picks, device float* weights, device ExpertJob* jobs,
                      device uint* pairs, threadgroup uint* keys, threadgroup float* sums, threadgroup uint* group_keys,
                      threadgroup uint* chosen, constant RouteParams& p, uint lane) {
  uint broken = EXPERTS;
  float top = -3.0e38f;
  for (uint e = lane; e < EXPERTS; e += 32u) {
    const float v = s[e];
    if ((as_type<uint>(v) & 0x7f800000u) == 0x7f800000u) {
      broken = min(broken, e);
    } else {
      top = max(top, v);
    }
#if SIGMOID
    float key = sigmoid(v);
#else
    float key = v;
#endif
#if BIAS
    key += bias[e];
#endif
#if GROUPED
    sums[e] = key;
#endif
    keys[e] = ordered(key);
  }
  broken = simd_min(broken);
  top = simd_max(top);
  threadgroup_barrier(mem_flags::mem_threadgroup);
#if GROUPED
  if (p.groups > 1u) {
    const uint size = EXPERTS / p.groups;
    for (uint g = lane; g < p.groups; g += 32u) {
      float first = sums[g * size], second = size > 1u ? -3.0e38f : 0.0f;
      for (uint i = g * size + 1u; i < (g + 1u) * size; i++) {
        const float v = sums[i];
        second = max(second, min(first, v));
        first = max(first, v);
      }
      group_keys[g] = ordered(first + second);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Those that are taken out are in.
    for (uint i = 0; i < p.top_groups; i++) take_best(group_keys, p.groups, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = lane; e < EXPERTS; e += 32u) {
      if (group_keys[e / size] != 0u) keys[e] = 0u;
    }
  }
#endif
  float sum = 0.0f;
  for (uint k = 0; k < TOPK; k++) {
    const uint e = take_best(keys, EXPERTS, lane);
    if (lane == 0u) chosen[k] = min(e, EXPERTS - 1u);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#if NORM
  for (uint k = lane; k < TOPK; k += 32u) {
#if SIGMOID
    sum += sigmoid(s[chosen[k]]);
#else
    sum += exp(s[chosen[k]] - top);
#endif
  }
  sum = simd_sum(sum);
#elif SIGMOID
  sum = 1.0f;
#else
  for (uint e = lane; e < EXPERTS; e += 32u) sum += exp(s[e] - top);
  sum = simd_sum(sum);
#endif
  for (uint k = lane; k < TOPK; k += 32u) {
    const uint e = chosen[k];
    uint place = k;
#if SIGMOID
    // By their scores, whatever they were chosen by.
    place = 0u;
    for (uint j = 0; j < TOPK; j++) {
      const uint o = chosen[j];
      if (s[o] > s[e] || (s[o] == s[e] && o < e)) place += 1u;
    }
    const float value = sigmoid(s[e]);
#else
    const float value = exp(s[e] - top);
#endif
    const bool whole = broken == EXPERTS;
    picks[whole ? place : k] = whole ? int(e) : -1 - int(broken);
    weights[whole ? place : k] = whole ? value / sum * p.scale : 0.0f;
#if JOBS
    device ExpertJob& job = jobs[place];
    job.expert = e;
    job.first = place;
    job.count = whole ? 1u : 0u;
    job.pad = 0u;
    pairs[k] = k;
#endif
  }
}

// One simdgroup a row.
[[max_total_threads_per_threadgroup(32)]]
kernel void route(device const float* scores [[buffer(0)]],
                  device const float* bias [[buffer(1)]],
                  device int* picks [[buffer(2)]],
                  device float* weights [[buffer(3)]],
                  device ExpertJob* jobs [[buffer(4)]],
                  device uint* pairs [[buffer(5)]],
                  constant RouteParams& p [[buffer(6)]],
                  uint row [[threadgroup_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint keys[EXPERTS];
  threadgroup float sums[SUMS];
  threadgroup uint group_keys[SUMS];
  threadgroup uint chosen[CHOSEN];
  const ulong at = ulong(row) * TOPK;
  route_row(scores + ulong(row) * EXPERTS, bias, picks + at, weights + at, jobs, pairs, keys, sums, group_keys, chosen, p, lane);
}

struct JobParams {
  uint n;        // pairs
  uint experts;  // in the table, at most SIZE
  uint xrows;    // most pairs of a job
  uint jobs;     // that there can be
};
// Groups the pairs (row·top_k + pick) of n picks by expert, and cuts each expert's into jobs; jobs
// that are left over have a count of 0. Pairs of no expert of the table are in no job. The order of
// an expert's pairs is any. For one threadgroup, whose memory counts, first_pair, first_job and
// used are.
inline void group_pairs(device const int* picks, device ExpertJob* jobs, device uint* pairs, threadgroup atomic_uint* counts,
                        threadgroup uint* first_pair, threadgroup uint* first_job, threadgroup uint* used, constant JobParams& p, uint i0,
                        uint lane, uint sg, uint threads) {
  for (uint e = i0; e < SIZE; e += threads) atomic_store_explicit(&counts[e], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = i0; i < p.n; i += threads) {
    const int e = picks[i];
    if (e >= 0 && uint(e) < p.experts) atomic_fetch_add_explicit(&counts[e], 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0u) {
    uint pair = 0u, job = 0u;
    for (uint e0 = 0; e0 < SIZE; e0 += 32u) {
      const uint n = atomic_load_explicit(&counts[e0 + lane], memory_order_relaxed), m = (n + p.xrows - 1u) / p.xrows;
      first_pair[e0 + lane] = pair + simd_prefix_exclusive_sum(n);
      first_job[e0 + lane] = job + simd_prefix_exclusive_sum(m);
      pair += simd_sum(n);
      job += simd_sum(m);
    }
    if (lane == 0u) used[0] = job;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint e = i0; e < p.experts; e += threads) {
    const uint n = atomic_load_explicit(&counts[e], memory_order_relaxed);
    for (uint at = 0, j = first_job[e]; at < n; at += p.xrows, j++) {
      device ExpertJob& job = jobs[j];
      job.expert = e;
      job.first = first_pair[e] + at;
      job.count = min(p.xrows, n - at);
      job.pad = 0u;
    }
  }
  for (uint j = used[0] + i0; j < p.jobs; j += threads) {
    device ExpertJob& job = jobs[j];
    job.expert = 0u;
    job.first = 0u;
    job.count = 0u;
    job.pad = 0u;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // From here on the counts say where the expert's next pair goes.
  for (uint e = i0; e < SIZE; e += threads) atomic_store_explicit(&counts[e], first_pair[e], memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = i0; i < p.n; i += threads) {
    const int e = picks[i];
    if (e >= 0 && uint(e) < p.experts) pairs[atomic_fetch_add_explicit(&counts[e], 1u, memory_order_relaxed)] = i;
  }
}

// One threadgroup.
[[max_total_threads_per_threadgroup(1024)]]
kernel void expert_jobs(device const int* picks [[buffer(0)]],
                        device ExpertJob* jobs [[buffer(1)]],
                        device uint* pairs [[buffer(2)]],
                        constant JobParams& p [[buffer(3)]],
                        uint i0 [[thread_position_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint sg [[simdgroup_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
  threadgroup atomic_uint counts[SIZE];
  threadgroup uint first_pair[SIZE];
  threadgroup uint first_job[SIZE];
  threadgroup uint used[1];
  group_pairs(picks, jobs, pairs, counts, first_pair, first_job, used, p, i0, lane, sg, threads);
}

// route and expert_jobs of at most ROWS rows: a simdgroup chooses for each row, and then all group
// the pairs. One threadgroup of as many simdgroups as there are rows.
[[max_total_threads_per_threadgroup(1024)]]
kernel void route_jobs(device const float* scores [[buffer(0)]],
                       device const float* bias [[buffer(1)]],
                       device int* picks [[buffer(2)]],
                       device float* weights [[buffer(3)]],
                       device ExpertJob* jobs [[buffer(4)]],
                       device uint* pairs [[buffer(5)]],
                       constant RouteParams& p [[buffer(6)]],
                       constant JobParams& q [[buffer(7)]],
                       uint i0 [[thread_position_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint row [[simdgroup_index_in_threadgroup]],
                       uint threads [[threads_per_threadgroup]]) {
  threadgroup uint keys[ROWS * EXPERTS];
  threadgroup float sums[ROWS * SUMS];
  threadgroup uint group_keys[ROWS * SUMS];
  threadgroup uint chosen[ROWS * CHOSEN];
  threadgroup atomic_uint counts[SIZE];
  threadgroup uint first_pair[SIZE];
  threadgroup uint first_job[SIZE];
  threadgroup uint used[1];
  const ulong at = ulong(row) * TOPK;
  route_row(scores + ulong(row) * EXPERTS, bias, picks + at, weights + at, jobs, pairs, keys + row * EXPERTS, sums + row * SUMS,
            group_keys + row * SUMS, chosen + row * CHOSEN, p, lane);
  threadgroup_barrier(mem_flags::mem_device);  // all picks are there
  group_pairs(picks, jobs, pairs, counts, first_pair, first_job, used, q, i0, lane, row, threads);
}
