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
// Threads of a threadgroup, and positions of a chunk that a thread has the scores of: it reads each
// query once for all of them.
#if HEAD_DIM <= 128 && VALUE_DIM <= 128
#define THREADS 128u
#define POSITIONS 2u
#else
#define THREADS 256u
#define POSITIONS 1u
#endif
#define PLACES (THREADS / LANES)  // positions side by side
#define SIMDGROUPS (THREADS / 32u)
#define STATES ((HEADS + SIMDGROUPS - 1u) / SIMDGROUPS)  // heads of a simdgroup
#define ALL_HEADS (STATES * SIMDGROUPS == HEADS)  // each simdgroup has as many
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
// value once for all of them, and their weights as vectors.
#if VALUE_DIM * HEADS >= 8u * THREADS && HEADS >= 8
#define WEIGHTS 8
#elif VALUE_DIM * HEADS >= 4u * THREADS && HEADS >= 4
#define WEIGHTS 4
#elif VALUE_DIM * HEADS >= 2u * THREADS && HEADS >= 2
#define WEIGHTS 2
#else
#define WEIGHTS 1
#endif
#if WEIGHTS >= 4
#define WeightVector float4
#define IN_VECTOR 4
#elif WEIGHTS == 2
#define WeightVector float2
#define IN_VECTOR 2
#else
#define WeightVector float
#define IN_VECTOR 1
#endif
#define VECTORS (HEADS / WEIGHTS)  // threads of a channel
#define CHANNELS ((VALUE_DIM + 31u) / 32u * 32u)
#define ITEMS ((CHANNELS * VECTORS + THREADS - 1u) / THREADS)
inline float weight_of(float4 w, uint i) { return w[i]; }
inline float weight_of(float2 w, uint i) { return w[i]; }
inline float weight_of(float w, uint i) { return w; }

#define AT_ONCE min(PIECE, 8u)  // positions whose values are loaded before they are added
// Adds a position's value of a channel to the sums of WEIGHTS heads.
inline void add_value(float x, threadgroup const WeightVector* weights, thread float* sum) {
#pragma unroll
  for (uint g = 0; g < WEIGHTS; g += IN_VECTOR) {
    const WeightVector of = weights[g / IN_VECTOR];
#pragma unroll
    for (uint h = 0; h < IN_VECTOR; h++) sum[g + h] = fma(weight_of(of, h), x, sum[g + h]);
  }
}

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

// What a threadgroup looks at.
struct Looked {
  device const Page* table;  // pages of the row's sequence
  device const uint* list;   // of the row and key-value head, with CHOSEN
  uint page_rows;
  uint key_channel;
  uint value_channel;
};

// A chunk's quads of keys of this thread's lane and positions, of which j is the first. one: they
// lie in the place's page.
inline void load_keys(thread const Looked& x, thread const Place& b, bool one,
    constant AttentionParams& p, uint j, uint l, thread Quad* k) {
#pragma unroll
  for (uint n = 0; n < POSITIONS; n++) {
    const uint at = chosen_at(x.list, p, position_of(b, j + n * PLACES));
    const Vectors from = vectors_at(b, one, x.table, x.page_rows, p.keys, p.kv_dim, at);
#pragma unroll
    for (uint i = 0; i < KEYS; i++) {
      const uint quad = l + LANES * i;
      k[n * KEYS + i] = quad < QUADS ? load_quad(from.part, from.slot, x.page_rows, p.kv_dim,
          x.key_channel + 4u * quad, x.key_channel + HEAD_DIM, p) : no_quad();
    }
  }
}

// A chunk's quads of values that this thread brings to threadgroup memory.
inline void load_values(thread const Looked& x, thread const Place& b, bool one,
    constant AttentionParams& p, uint tid, thread Quad* v) {
#pragma unroll
  for (uint piece = 0; piece < PIECES; piece++) {
#pragma unroll
    for (uint i = 0; i < BROUGHT; i++) {
      const uint item = i * THREADS + tid, c = x.value_channel + 4u * (item % VALUE_QUADS);
      const uint at = chosen_at(x.list, p, position_of(b, piece * PIECE + item / VALUE_QUADS));
      const Vectors from = vectors_at(b, one, x.table, x.page_rows, p.values, p.v_dim, at);
      if (item < PIECE * VALUE_QUADS) {
        v[piece * BROUGHT + i] = load_quad(from.part, from.slot, x.page_rows, p.v_dim, c,
            x.value_channel + VALUE_DIM, p);
      }
    }
  }
}

// The place of a chunk. Positions of a list lie anywhere.
inline Place chunk_of(thread const Looked& x, uint first, uint low, uint last) {
  Place b = place_of(x.table, first, CHUNK, low, last, x.page_rows);
#if CHOSEN
  b.one = false;
#endif
  return b;
}

// Where all positions of a chunk lie in one page, which is so but for odd sizes of pages, its place
// is found once and not by each thread for each position.
inline void load_keys(thread const Looked& x, thread const Place& b, constant AttentionParams& p,
    uint j, uint l, thread Quad* k) {
  if (b.one) {
    load_keys(x, b, true, p, j, l, k);
  } else {
    load_keys(x, b, false, p, j, l, k);
  }
}
inline void load_values(thread const Looked& x, thread const Place& b, constant AttentionParams& p,
    uint tid, thread Quad* v) {
  if (b.one) {
    load_values(x, b, true, p, tid, v);
  } else {
    load_values(x, b, false, p, tid, v);
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

// Grid: (row, parts that are made together); key-value heads times blocks. A row of one part is
// written to y[row, head, VALUE_DIM], else each part's sums of values to parts[row of the launch,
// part, head, VALUE_DIM] and its largest score and sum of weights to part_ml.
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
  threadgroup WeightVector w[CHUNK * HEADS / IN_VECTOR];
  threadgroup float2 fs[HEADS];    // factors of what was before and of the chunk
  threadgroup float2 ends[HEADS];  // states after the chunk
  const uint r = group.x / p.groups;
  uint part = group.x % p.groups * p.together;
  device const AttentionRow& row = rows[r];
  const uint of = row.row, pos = row.pos, page_rows = row.page_rows, chunks = pos / CHUNK + 1u;
  const uint low = first_of(pos, p), part0 = low / (CHUNK * p.per);  // the first of both that the row looks at
  const uint c0 = max((part0 + part) * p.per, low / CHUNK);
  const uint c1 = min((part0 + part + p.together) * p.per, chunks);
  const bool whole = (chunks - 1u) / p.per == part0;  // the row has one part
  const uint kv_head = group.y / p.blocks, block = group.y % p.blocks * HEADS;
  const uint head0 = kv_head * p.group + block;           // of the block
  const uint live = min(p.group - block, uint(HEADS));    // heads of the block that there are
  const uint key_channel = kv_head * HEAD_DIM, value_channel = kv_head * VALUE_DIM;
  // This thread's lane and first position of a chunk's scores. Half a simdgroup reads eight quads
  // of a query at a time, which a GPU brings in one pass.
  const uint l = lane % 16u / 2u, j = tid / 32u * 4u + lane % 2u + lane / 16u * 2u;
  device const Page* table = pages + row.pages;
#if !CHOSEN
  for (uint n = 0; n < POSITIONS && c0 < c1; n++) {
    const uint at = max(min(c0 * CHUNK + j + n * PLACES, pos), low);
    prefetch_position(table, p, page_rows, key_channel, value_channel, at, l);
  }
#endif
  WAIT_PREREQUISITES
  LAUNCH_DEPENDENTS  // late: its threadgroups would take processors from these
  Looked x;
  x.table = table;
  x.list = chosen + (ulong(of) * (p.heads / p.group) + kv_head) * p.budget;
  x.page_rows = page_rows;
  x.key_channel = key_channel;
  x.value_channel = value_channel;
  Quad k[POSITIONS * KEYS], v[PIECES * BROUGHT];
  float acc[ITEMS * WEIGHTS];
  if (c0 < c1) {
    const Place b = chunk_of(x, c0 * CHUNK, low, pos);
    load_keys(x, b, p, j, l, k);
    load_values(x, b, p, tid, v);
    for (uint i = tid; i < HEADS * QUADS; i += THREADS) {
      const uint head = head0 + min(i / QUADS, live - 1u);
      device const float* query = q + ulong(of) * p.q_row + head * p.q_head;
#if WIDE
      qs[i] = *(device const float4*)(query + i % QUADS * 4u);
#else
      qs[i] = load_query(query, i % QUADS * 4u);
#endif
    }
  }
  for (uint i = 0; i < ITEMS * WEIGHTS; i++) acc[i] = 0.0f;
  AttentionState state[STATES];  // of heads sg, sg + SIMDGROUPS, …
#pragma unroll
  for (uint i = 0; i < STATES; i++) {
    state[i].m = LOWEST;
    state[i].l = 0.0f;
    if (p.sinks != 0u && part == 0u) {  // what is before the first position
      state[i].m = sinks[head0 + min(sg + i * SIMDGROUPS, live - 1u)];
      state[i].l = 1.0f;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint c = c0; c < c1; c++) {
    const uint first = c * CHUNK, n = min(pos + 1u - first, CHUNK);
    float4 key[POSITIONS * KEYS];
#pragma unroll
    for (uint i = 0; i < POSITIONS * KEYS; i++) key[i] = widen(k[i]);
    threadgroup const float4* query = qs + l;
    threadgroup float* to = (threadgroup float*)sums + j * LANES + l;
#pragma unroll 2  // more heads at once would take twice the registers
    for (uint h = 0; h < HEADS; h++) {
      float s[POSITIONS];
#pragma unroll
      for (uint n = 0; n < POSITIONS; n++) s[n] = 0.0f;
#pragma unroll
      for (uint i = 0; i < KEYS; i++) {
        const float4 a = l + LANES * i < QUADS ? query[LANES * i] : float4(0.0f);
#pragma unroll
        for (uint n = 0; n < POSITIONS; n++) {
          const float4 b = key[n * KEYS + i];
          s[n] = fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, s[n]))));
        }
      }
#pragma unroll
      for (uint n = 0; n < POSITIONS; n++) to[n * PLACES * LANES] = s[n];
      query += QUADS;
      to += CHUNK * LANES;
    }
    const Place next = chunk_of(x, min(first + CHUNK, pos), low, pos);
    if (c + 1u < c1) load_keys(x, next, p, j, l, k);
#pragma unroll
    for (uint i = 0; i < BROUGHT; i++) {
      if (i * THREADS + tid < PIECE * VALUE_QUADS) vs[i * THREADS + tid] = widen(v[i]);
    }
#if VALUE_DIM <= 128
    if (c + 1u < c1) load_values(x, next, p, tid, v);
#endif
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (uint i = 0; i < STATES; i++) {
      const uint h = sg + i * SIMDGROUPS;
      if (ALL_HEADS || h < HEADS) {
        const float4 a = sums[(h * CHUNK + lane) * 2u], b = sums[(h * CHUNK + lane) * 2u + 1u];
        const float s = (((((((a.x + a.y) + a.z) + a.w) + b.x) + b.y) + b.z) + b.w) * p.scale;
        float2 ml;
        ((threadgroup float*)w)[lane * HEADS + h] = weigh(s, lane < n && first + lane >= low, ml);
        const float2 f = merge(state[i], ml.x, ml.y);
        if (lane == 0u) {
          fs[h] = f;
          ends[h] = float2(state[i].m, state[i].l);
        }
      }
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
          threadgroup const float* from = (threadgroup const float*)vs + channel;
          threadgroup const WeightVector* weights = w + (j0 * HEADS + vector * WEIGHTS) / IN_VECTOR;
          uint t = 0;
          for (; t + AT_ONCE <= m; t += AT_ONCE) {
#pragma unroll
            for (uint u = 0; u < AT_ONCE; u++) {
              add_value(from[u * (4u * VALUE_QUADS)], weights + u * (HEADS / IN_VECTOR),
                  sum + i * WEIGHTS);
            }
            from += AT_ONCE * 4u * VALUE_QUADS;
            weights += AT_ONCE * (HEADS / IN_VECTOR);
          }
          for (; t < m; t++) {
            add_value(*from, weights, sum + i * WEIGHTS);
            from += 4u * VALUE_QUADS;
            weights += HEADS / IN_VECTOR;
          }
        }
      }
    }
#if VALUE_DIM > 128
    if (c + 1u < c1) load_values(x, next, p, tid, v);
#endif
#pragma unroll
    for (uint i = 0; i < ITEMS * WEIGHTS; i++) {
      const float2 f = fs[(i / WEIGHTS * THREADS + tid) / CHANNELS % VECTORS * WEIGHTS + i % WEIGHTS];
      acc[i] = fma(sum[i], f.y, acc[i] * f.x);
    }
    if (p.per == 1u || c + 1u == c1) {  // the part's last
#pragma unroll
      for (uint i = 0; i < ITEMS; i++) {
        const uint item = i * THREADS + tid, channel = item % CHANNELS;
        const uint h0 = item / CHANNELS * WEIGHTS;
        if (channel >= VALUE_DIM || h0 >= HEADS) continue;
        const ulong at = ulong(whole ? of : r * p.parts + part) * p.heads + head0 + h0;
        device float* result = (whole ? y : parts) + at * VALUE_DIM + channel;
#pragma unroll
        for (uint h = 0; h < WEIGHTS; h++) {
          if (h0 + h >= live) continue;
          const float v = acc[i * WEIGHTS + h];
          result[h * VALUE_DIM] = whole ? v / ends[h0 + h].y * p.value_scale : v;
        }
      }
      if (!whole && tid < live) {
        part_ml[ulong(r * p.parts + part) * p.heads + head0 + tid] = ends[tid];
      }
      part++;
#pragma unroll
      for (uint i = 0; i < ITEMS * WEIGHTS; i++) acc[i] = 0.0f;
#pragma unroll
      for (uint i = 0; i < STATES; i++) {
        state[i].m = LOWEST;
        state[i].l = 0.0f;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // values, weights and factors have been used
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
