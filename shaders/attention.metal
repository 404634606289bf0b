// Causal softmax attention of few rows: see cache.metal for the order of sums and the #define
// lines.
//
// HEADS is how many query heads of one key-value head a threadgroup takes together; which they are
// changes no bit. CHOSEN: what a row attends to are the entries of its key-value head's list, which
// says where their keys and values are: 1 positions, 2 blocks.
#include "cache.metal"
#include "limbs.metal"

#ifndef HEADS
#define HEADS 8
#endif
#define THREADS 256u
#if VALUE_DIM <= 128
#define PIECE 32u  // positions of values in threadgroup memory at a time
#elif VALUE_DIM <= 256
#define PIECE 8u
#elif VALUE_DIM <= 512
#define PIECE 4u
#else
#define PIECE 1u
#endif
#define PIECES (CHUNK / PIECE)
// quads of a piece that a thread brings
#define BROUGHT ((PIECE * VALUE_QUADS + THREADS - 1u) / THREADS)

// Threadgroup memory bounds the kernel. So a thread has one channel of WEIGHTS heads: it reads each
// value once for all of them, and their weights together.
#if VALUE_DIM * HEADS >= 1024 && HEADS >= 4
#define WEIGHTS 4
#define WeightVector float4
#elif VALUE_DIM * HEADS >= 512 && HEADS >= 2
#define WEIGHTS 2
#define WeightVector float2
#else
#define WEIGHTS 1
#define WeightVector float
#endif
#define VECTORS (HEADS / WEIGHTS)  // of a position
#define CHANNELS ((VALUE_DIM + 31u) / 32u * 32u)
#define ITEMS ((CHANNELS * VECTORS + THREADS - 1u) / THREADS)
inline float weight_of(float4 w, uint i) { return w[i]; }
inline float weight_of(float2 w, uint i) { return w[i]; }
inline float weight_of(float w, uint i) { return w; }

// Where the position is that comes at-th in a list.
inline uint chosen_at(device const uint* list, constant AttentionParams& p, uint at) {
#if CHOSEN == 2
  return list[at / p.block] * p.block + at % p.block;
#elif CHOSEN
  return list[at];
#else
  return at;
#endif
}

// A chunk's quads of keys of this thread's lane and position. Positions past the last are the last
// one again.
inline void load_keys(device const Page* pages, device const uint* list, constant AttentionParams& p, uint page_rows, uint channel, uint at,
                      uint l, thread Quad* k) {
  at = chosen_at(list, p, at);
  device const uchar* part = pages[at / page_rows].at + p.keys;
  const uint slot = at % page_rows;
#pragma unroll
  for (uint i = 0; i < KEYS; i++) {
    const uint quad = l + LANES * i;
    k[i] = quad < QUADS ? load_quad(part, slot, page_rows, p.kv_dim, channel + 4u * quad, channel + HEAD_DIM, p) : no_quad();
  }
}

// A chunk's quads of values that this thread brings to threadgroup memory.
inline void load_values(device const Page* pages, device const uint* list, constant AttentionParams& p, uint page_rows, uint channel,
                        uint first, uint low, uint last, uint tid, thread Quad* v) {
#pragma unroll
  for (uint piece = 0; piece < PIECES; piece++) {
#pragma unroll
    for (uint i = 0; i < BROUGHT; i++) {
      const uint item = i * THREADS + tid, c = channel + 4u * (item % VALUE_QUADS);
      const uint at = chosen_at(list, p, max(min(first + piece * PIECE + item / VALUE_QUADS, last), low));
      if (item < PIECE * VALUE_QUADS) {
        v[piece * BROUGHT + i] = load_quad(pages[at / page_rows].at + p.values, at % page_rows, page_rows, p.v_dim, c, channel + VALUE_DIM, p);
      }
    }
  }
}

#if KV8
#define CHANNEL_BYTES 1u
#else
#define CHANNEL_BYTES 4u
#endif
#define LINE 128u  // bytes of a cache line
// Prefetches a position's keys and values into the L2 cache; l is one of LANES lanes. Later reads
// still see what earlier launches write.
inline void prefetch_position(device const Page* pages, constant AttentionParams& p, uint page_rows, uint key_channel, uint value_channel,
                              uint at, uint l) {
  device const uchar* page = pages[at / page_rows].at;
  const ulong slot = at % page_rows;
  device const uchar* keys = page + p.keys + (slot * p.kv_dim + key_channel) * CHANNEL_BYTES;
  device const uchar* values = page + p.values + (slot * p.v_dim + value_channel) * CHANNEL_BYTES;
  for (uint i = l * LINE; i < HEAD_DIM * CHANNEL_BYTES; i += LANES * LINE) PREFETCH(keys + i);
  for (uint i = l * LINE; i < VALUE_DIM * CHANNEL_BYTES; i += LANES * LINE) PREFETCH(values + i);
}

// Grid: (row, part); key-value heads times blocks. A row of one part is written to y[row, head,
// VALUE_DIM], else the part's sums of values to parts[row of the launch, part, head, VALUE_DIM] and
// its largest score and sum of weights to part_ml.
[[max_total_threads_per_threadgroup(256)]]
kernel void attention(device const float* q [[buffer(0)]],
                      device const AttentionRow* rows [[buffer(1)]],
                      device const Page* pages [[buffer(2)]],
                      device float* y [[buffer(3)]],
                      device float* parts [[buffer(4)]],
                      device float2* part_ml [[buffer(5)]],
                      device const float* sinks [[buffer(6)]],
                      device const uint* chosen [[buffer(7)]],
                      constant AttentionParams& p [[buffer(8)]],
                      uint2 group [[threadgroup_position_in_grid]],
                      uint tid [[thread_index_in_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]],
                      uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float4 qs[HEADS * QUADS];
  threadgroup float4 vs[PIECE * VALUE_QUADS];
  threadgroup float4 sums[HEADS * CHUNK * 2u];  // of 8 lanes, for each head and position
  threadgroup WeightVector w[CHUNK * VECTORS];
  // factors of what was before and of the chunk; at the end the state
  threadgroup float2 fs[HEADS];
  const uint r = group.x / p.parts, part = group.x % p.parts;
  device const AttentionRow& row = rows[r];
  const uint of = row.row, pos = row.pos, page_rows = row.page_rows, chunks = pos / CHUNK + 1u;
  const uint low = first_of(pos, p), part0 = low / (CHUNK * p.per);  // the first of both that the row looks at
  const uint c0 = max((part0 + part) * p.per, low / CHUNK), c1 = min((part0 + part + 1u) * p.per, chunks);
  const uint kv_head = group.y / p.blocks, block = group.y % p.blocks * HEADS;
  const uint head0 = kv_head * p.group + block;           // of the block
  const uint live = min(p.group - block, uint(HEADS));    // heads of the block that there are
  const uint key_channel = kv_head * HEAD_DIM, value_channel = kv_head * VALUE_DIM;
  // this thread's lane and position of a chunk's scores
  const uint l = tid % LANES, j = tid / LANES;
  device const Page* table = pages + row.pages;
#if !CHOSEN
  if (c0 < c1) prefetch_position(table, p, page_rows, key_channel, value_channel, max(min(c0 * CHUNK + j, pos), low), l);
#endif
  WAIT_PREREQUISITES
  LAUNCH_DEPENDENTS  // late: its threadgroups would take processors from these
  device const uint* list = chosen + (ulong(of) * (p.heads / p.group) + kv_head) * p.budget;
  Quad k[KEYS], v[PIECES * BROUGHT];
  float acc[ITEMS * WEIGHTS];
  if (c0 < c1) {
    load_keys(table, list, p, page_rows, key_channel, max(min(c0 * CHUNK + j, pos), low), l, k);
    load_values(table, list, p, page_rows, value_channel, c0 * CHUNK, low, pos, tid, v);
    for (uint i = tid; i < HEADS * QUADS; i += THREADS) {
      qs[i] = load_query(q + ulong(of) * p.q_row + (head0 + min(i / QUADS, live - 1u)) * p.q_head, i % QUADS * 4u);
    }
  }
  for (uint i = 0; i < ITEMS * WEIGHTS; i++) acc[i] = 0.0f;
  AttentionState state;  // of head sg
  state.m = LOWEST;
  state.l = 0.0f;
  if (p.sinks != 0u && part == 0u) {  // what is before the first position
    state.m = sinks[head0 + min(sg, live - 1u)];
    state.l = 1.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint c = c0; c < c1; c++) {
    const uint first = c * CHUNK, n = min(pos + 1u - first, CHUNK);
    float4 key[KEYS];
#pragma unroll
    for (uint i = 0; i < KEYS; i++) key[i] = widen(k[i]);
#pragma unroll 2  // more heads at once would take twice the registers
    for (uint h = 0; h < HEADS; h++) {
      float s = 0.0f;
#pragma unroll
      for (uint i = 0; i < KEYS; i++) {
        const uint quad = l + LANES * i;
        const float4 x = quad < QUADS ? qs[h * QUADS + quad] : float4(0.0f);
        s = fma(x.w, key[i].w, fma(x.z, key[i].z, fma(x.y, key[i].y, fma(x.x, key[i].x, s))));
      }
      ((threadgroup float*)sums)[h * CHUNK * LANES + tid] = s;
    }
    if (c + 1u < c1) load_keys(table, list, p, page_rows, key_channel, min(first + CHUNK + j, pos), l, k);
#pragma unroll
    for (uint i = 0; i < BROUGHT; i++) {
      if (i * THREADS + tid < PIECE * VALUE_QUADS) vs[i * THREADS + tid] = widen(v[i]);
    }
#if VALUE_DIM <= 128
    if (c + 1u < c1) load_values(table, list, p, page_rows, value_channel, first + CHUNK, low, pos, tid, v);
#endif
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sg < HEADS) {
      const float4 a = sums[(sg * CHUNK + lane) * 2u], b = sums[(sg * CHUNK + lane) * 2u + 1u];
      const float s = (((((((a.x + a.y) + a.z) + a.w) + b.x) + b.y) + b.z) + b.w) * p.scale;
      float2 ml;
      ((threadgroup float*)w)[lane * HEADS + sg] = weigh(s, lane < n && first + lane >= low, ml);
      const float2 f = merge(state, ml.x, ml.y);
      if (lane == 0u) fs[sg] = f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum[ITEMS * WEIGHTS];
    for (uint i = 0; i < ITEMS * WEIGHTS; i++) sum[i] = 0.0f;
#pragma unroll
    for (uint piece = 0; piece < PIECES; piece++) {
      if (piece > 0u) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint i = 0; i < BROUGHT; i++) {
          if (i * THREADS + tid < PIECE * VALUE_QUADS) vs[i * THREADS + tid] = widen(v[piece * BROUGHT + i]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      const uint j0 = piece * PIECE, m = n < j0 ? 0u : min(n - j0, PIECE);
#pragma unroll
      for (uint i = 0; i < ITEMS; i++) {
        const uint item = i * THREADS + tid, channel = item % CHANNELS, vector = item / CHANNELS;
        if (channel < VALUE_DIM && vector < VECTORS) {
#pragma unroll 4
          for (uint t = 0; t < m; t++) {
            const float x = ((threadgroup float*)vs)[t * (4u * VALUE_QUADS) + channel];
            const WeightVector weights = w[(j0 + t) * VECTORS + vector];
#pragma unroll
            for (uint h = 0; h < WEIGHTS; h++) sum[i * WEIGHTS + h] = fma(weight_of(weights, h), x, sum[i * WEIGHTS + h]);
          }
        }
      }
    }
#if VALUE_DIM > 128
    if (c + 1u < c1) load_values(table, list, p, page_rows, value_channel, first + CHUNK, low, pos, tid, v);
#endif
#pragma unroll
    for (uint i = 0; i < ITEMS * WEIGHTS; i++) {
      const float2 f = fs[(i / WEIGHTS * THREADS + tid) / CHANNELS % VECTORS * WEIGHTS + i % WEIGHTS];
      acc[i] = fma(sum[i], f.y, acc[i] * f.x);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // values, weights and factors have been used
  }
  if (sg < HEADS && lane == 0u) fs[sg] = float2(state.m, state.l);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool whole = part == 0u && c1 == chunks;
#pragma unroll
  for (uint i = 0; i < ITEMS * WEIGHTS; i++) {
    const uint item = i / WEIGHTS * THREADS + tid, channel = item % CHANNELS, vector = item / CHANNELS, h = vector * WEIGHTS + i % WEIGHTS;
    if (channel < VALUE_DIM && vector < VECTORS && h < live && c0 < c1) {
      const float2 ml = fs[h];
      const ulong at = (ulong(r) * p.parts + part) * p.heads + head0 + h;
      device float* to = whole ? y + (ulong(of) * p.heads + head0 + h) * VALUE_DIM : parts + at * VALUE_DIM;
      to[channel] = whole ? acc[i] / ml.y * p.value_scale : acc[i];
      if (!whole && channel == 0u) part_ml[at] = ml;
    }
  }
}

// 16 parts of a chain, one to a lane: the largest score m of this part and of those before it, of
// which the first part's is start, and the factors of what was before it and of itself.
inline float2 factors(float start, float m_part, uint i, thread float& m) {
  m = m_part;
#pragma unroll
  for (uint d = 1; d < SPAN; d *= 2u) {
    const float before = simd_shuffle_up(m, ushort(d));
    if (i >= d) m = max(m, before);
  }
  m = max(m, start);
  const float before = simd_shuffle_up(m, 1);
  return float2(exp((i == 0u ? start : before) - m), exp(m_part - m));
}

// Merges the parts of rows that have more than one. SPANS: a part is a span, else a chunk, and
// there are at most MOST_SPANS spans. MERGED channels of a head are a threadgroup's; with chunks up
// to 4 threads share a channel, and each has a share of the spans. LIMBS and ROUNDED: the limbs of
// the result are written, too, also those of rows that have one part and are in y already; without,
// their parameters are any memory. Grid: heads times blocks of channels, rows.
#define MERGED 128u
#define MOST_SPANS 24u
[[max_total_threads_per_threadgroup(512)]]
kernel void attention_merge(device const AttentionRow* rows [[buffer(0)]],
                            device const float* parts [[buffer(1)]],
                            device const float2* part_ml [[buffer(2)]],
                            device float* y [[buffer(3)]],
                            device uint* limbs [[buffer(4)]],
                            device float* limb_sums [[buffer(5)]],
                            device uint* rounded [[buffer(6)]],
                            device float* rounded_sums [[buffer(7)]],
                            constant AttentionParams& p [[buffer(8)]],
                            uint2 group [[threadgroup_position_in_grid]],
                            uint tid [[thread_index_in_threadgroup]],
                            uint sgs [[simdgroups_per_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
#if !SPANS
  threadgroup float span_acc[MOST_SPANS * MERGED];
  threadgroup float2 span_ml[MOST_SPANS];
#endif
#if LIMBS || ROUNDED
  threadgroup float4 result[MERGED / 4u];
#endif
  LAUNCH_DEPENDENTS
  device const AttentionRow& row = rows[group.y];
  const uint of = row.row, pos = row.pos;
  WAIT_PREREQUISITES
  const uint head = group.x % p.heads, mine = tid % MERGED, channel = group.x / p.heads * MERGED + mine;
  const uint size = CHUNK * p.per, low = first_of(pos, p);
  const uint n = pos / size - low / size + 1u;  // parts of the row
  const ulong first = ulong(group.y) * p.parts * p.heads + head;
  device const float* from = parts + first * VALUE_DIM + min(channel, uint(VALUE_DIM) - 1u);
  const uint i = lane % SPAN;
#if SPANS
  const uint skip = 0u;
#else
  const uint skip = low / CHUNK % SPAN;  // chunks of the first span before the row's first
#endif
  const uint past = skip + n;
  float largest = LOWEST, l = 0.0f, acc = 0.0f;
  for (uint base = tid / MERGED * SPAN; base < past; base += sgs * 32u / MERGED * SPAN) {
#if !SPANS
    largest = LOWEST;
    l = 0.0f;
    acc = 0.0f;
#endif
    const float2 ml = base + i >= skip && base + i < past ? part_ml[first + ulong(base + i - skip) * p.heads] : float2(LOWEST, 0.0f);
    float x[SPAN];
#pragma unroll
    for (uint t = 0; t < SPAN; t++) x[t] = from[ulong(max(min(base + t, past - 1u), skip) - skip) * p.heads * VALUE_DIM];
    float m;
    const float2 f = factors(largest, ml.x, i, m);
#pragma unroll
    for (uint t = 0; t < SPAN; t++) {
      const float before = simd_shuffle(f.x, ushort(t)), of = simd_shuffle(f.y, ushort(t)), lt = simd_shuffle(ml.y, ushort(t));
      if (base + t >= skip && base + t < past) {
        acc = fma(x[t], of, acc * before);
        l = fma(lt, of, l * before);
      }
    }
    largest = simd_shuffle(m, ushort(SPAN - 1u));
#if !SPANS
    span_acc[base / SPAN * MERGED + mine] = acc;
    if (mine == 0u) span_ml[base / SPAN] = float2(largest, l);
#endif
  }
#if !SPANS
  threadgroup_barrier(mem_flags::mem_threadgroup);
  AttentionState state;
  state.m = LOWEST;
  state.l = 0.0f;
  acc = 0.0f;
  for (uint span = 0; span * SPAN < past; span++) {
    const float2 f = merge(state, span_ml[span].x, span_ml[span].y);
    acc = fma(span_acc[span * MERGED + mine], f.y, acc * f.x);
  }
  l = state.l;
#endif
  device float* to = y + (ulong(of) * p.heads + head) * VALUE_DIM + min(channel, uint(VALUE_DIM) - 1u);
  const float whole = n > 1u ? acc / l * p.value_scale : *to;
  const bool here = channel < VALUE_DIM && tid < MERGED;
  if (here && n > 1u) *to = whole;
#if LIMBS || ROUNDED
  if (tid < MERGED) ((threadgroup float*)result)[mine] = whole;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid < 32u) {
    const uint first = group.x / p.heads * MERGED + 4u * lane;
    const ulong vector = ulong(of) * p.heads + head;
    const uint last = min(first, uint(VALUE_DIM) - 1u);
#if LIMBS
    store_limbs(limbs, limb_sums, vector * (VALUE_DIM / LIMBS) + last / LIMBS, result[lane], lane, first < VALUE_DIM);
#endif
#if ROUNDED
    store_rounded(rounded, rounded_sums, vector * (VALUE_DIM / ROUNDED) + last / ROUNDED, result[lane], lane, first < VALUE_DIM);
#endif
  }
#endif
}
