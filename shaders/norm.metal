// Norms of vectors, alone and of what an operation before them wrote, and rotation of heads. Teams
// past the last vector read that once more and write nothing. LIMBS and ROUNDED: the limbs of norms
// are written, too, see limbs.metal; without, their parameters are any memory.
#include "rotate.metal"
#include "vectors.metal"

struct NormParams {
  uint vectors;
  uint dim;
  uint x_stride;  // floats from vector to vector
  uint y_stride;
  float eps;
};
// y = w ⊙ x/sqrt(mean(x²)+eps). WEIGHTED: 0 without w.
[[max_total_threads_per_threadgroup(1024)]]
kernel void rms_norm(device float* x [[buffer(0)]],
                     device const float* w [[buffer(1)]],
                     device float* y [[buffer(2)]],
                     device uint* limbs [[buffer(3)]],
                     device float* sums [[buffer(4)]],
                     device uint* rounded [[buffer(5)]],
                     device float* rounded_sums [[buffer(6)]],
                     constant NormParams& p [[buffer(7)]],
                     uint group [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint sg [[simdgroup_index_in_threadgroup]],
                     uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[TEAM];
  const uint at = (group * sgs + sg) / TEAM, v = min(at, p.vectors - 1u), member = sg % TEAM * 32u + lane;
  LAUNCH_DEPENDENTS
  prefetch_weights(w, member, p.dim);
  WAIT_PREREQUISITES
  float4 in[QUADS], weights[QUADS];
#pragma unroll
  for (uint q = 0; q < QUADS; q++) in[q] = load_quad(x + ulong(v) * p.x_stride, quad_at(q, member), p.dim);
  load_weights(w, member, p.dim, weights);
  const float factor = norm_factor(square_sum(in, lane, sg, part), p.dim, p.eps);
  store_norm(y + ulong(v) * p.y_stride, limbs, sums, rounded, rounded_sums, v, in, weights, factor, member, p.dim, at < p.vectors);
}

// z = a + b and the norm of z. z is dense.
[[max_total_threads_per_threadgroup(1024)]]
kernel void add_norm(device float* a [[buffer(0)]],
                     device float* b [[buffer(1)]],
                     device float* z [[buffer(2)]],
                     device const float* w [[buffer(3)]],
                     device float* y [[buffer(4)]],
                     device uint* limbs [[buffer(5)]],
                     device float* sums [[buffer(6)]],
                     device uint* rounded [[buffer(7)]],
                     device float* rounded_sums [[buffer(8)]],
                     constant NormParams& p [[buffer(9)]],
                     uint group [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint sg [[simdgroup_index_in_threadgroup]],
                     uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[TEAM];
  const uint at = (group * sgs + sg) / TEAM, v = min(at, p.vectors - 1u), member = sg % TEAM * 32u + lane;
  LAUNCH_DEPENDENTS
  prefetch_weights(w, member, p.dim);
  WAIT_PREREQUISITES
  const ulong row = ulong(v) * p.dim;
  float4 sum[QUADS], weights[QUADS];
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
    const uint i = quad_at(q, member);
    sum[q] = load_quad(a + row, i, p.dim) + load_quad(b + row, i, p.dim);
  }
  load_weights(w, member, p.dim, weights);
  const float factor = norm_factor(square_sum(sum, lane, sg, part), p.dim, p.eps);
  if (at < p.vectors) {
#pragma unroll
    for (uint q = 0; q < QUADS; q++) store_quad(z + row, quad_at(q, member), p.dim, sum[q]);
  }
  store_norm(y + ulong(v) * p.y_stride, limbs, sums, rounded, rounded_sums, v, sum, weights, factor, member, p.dim, at < p.vectors);
}

struct CombineNormParams {
  uint rows;
  uint dim;
  uint top_k;
  uint y_stride;  // floats from row to row
  float eps;
};
#define ROUND (QUADS == 1 ? 8 : QUADS == 2 ? 4 : 1)  // experts whose results are loaded together
// z = combine's result, see elements.metal, and the norm of z. z is dense.
[[max_total_threads_per_threadgroup(1024)]]
kernel void combine_norm(device const float* routed [[buffer(0)]],
                         device const float* shared [[buffer(1)]],
                         device const float* gate [[buffer(2)]],
                         device float* residual [[buffer(3)]],
                         device const float* picks [[buffer(4)]],
                         device float* z [[buffer(5)]],
                         device const float* w [[buffer(6)]],
                         device float* y [[buffer(7)]],
                         device uint* limbs [[buffer(8)]],
                         device float* limb_sums [[buffer(9)]],
                         device uint* rounded [[buffer(10)]],
                         device float* rounded_sums [[buffer(11)]],
                         constant CombineNormParams& p [[buffer(12)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint sg [[simdgroup_index_in_threadgroup]],
                         uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[TEAM];
  const uint at = (group * sgs + sg) / TEAM, v = min(at, p.rows - 1u), member = sg % TEAM * 32u + lane;
  LAUNCH_DEPENDENTS
  prefetch_weights(w, member, p.dim);
  WAIT_PREREQUISITES
  const ulong row = ulong(v) * p.dim;
  float4 sum[QUADS], rest[QUADS], weights[QUADS];
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
    sum[q] = float4(0.0f);
    rest[q] = load_quad(residual + row, quad_at(q, member), p.dim);
  }
  load_weights(w, member, p.dim, weights);
  device const float* experts = routed + ulong(v) * p.top_k * p.dim;
  device const float* weights_of = picks + ulong(v) * p.top_k;
  // All loads of a round are under way together. The branches keep compilers from moving them to
  // where they are used.
  for (uint first = 0; first < p.top_k; first += ROUND) {
    float weight[ROUND];
    float4 expert[ROUND * QUADS];
#pragma unroll
    for (uint k = 0; k < ROUND; k++) {
      const uint at = min(first + k, p.top_k - 1u);
      weight[k] = weights_of[at];
#pragma unroll
      for (uint q = 0; q < QUADS; q++) {
        expert[k * QUADS + q] = load_quad(experts + at * p.dim, quad_at(q, member), p.dim);
      }
    }
#pragma unroll
    for (uint k = 0; k < ROUND; k++) {
      if (first + k < p.top_k) {
#pragma unroll
        for (uint q = 0; q < QUADS; q++) {
          sum[q] = fma(float4(weight[k]), expert[k * QUADS + q], sum[q]);
        }
      }
    }
  }
#pragma unroll
  for (uint q = 0; q < QUADS; q++) {
#if SHARED == 1
    sum[q] += load_quad(shared + row, quad_at(q, member), p.dim);
#elif SHARED == 2
    sum[q] = fma(float4(sigmoid(gate[v])), load_quad(shared + row, quad_at(q, member), p.dim), sum[q]);
#endif
    sum[q] = rest[q] + sum[q];
  }
  const float factor = norm_factor(square_sum(sum, lane, sg, part), p.dim, p.eps);
  if (at < p.rows) {
#pragma unroll
    for (uint q = 0; q < QUADS; q++) store_quad(z + row, quad_at(q, member), p.dim, sum[q]);
  }
  store_norm(y + ulong(v) * p.y_stride, limbs, limb_sums, rounded, rounded_sums, v, sum, weights, factor, member, p.dim, at < p.rows);
}

struct GatedNormParams {
  uint vectors;
  uint dim;
  float eps;
};
// y = w ⊙ x/sqrt(mean(x²)+eps) ⊙ silu(z), dense; one simdgroup a vector.
kernel void gated_norm(device float* x [[buffer(0)]],
                       device const float* w [[buffer(1)]],
                       device const float* z [[buffer(2)]],
                       device float* y [[buffer(3)]],
                       constant GatedNormParams& p [[buffer(4)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  const uint v = group * sgs + sg;
  if (v >= p.vectors) return;  // a whole simdgroup, and no barrier follows
  const ulong at = ulong(v) * p.dim;
  float s = 0.0f;
  for (uint i = lane; i < p.dim; i += 32u) s = fma(x[at + i], x[at + i], s);
  const float r = 1.0f / sqrt(simd_sum(s) / float(p.dim) + p.eps);
  for (uint i = lane; i < p.dim; i += 32u) y[at + i] = w[i] * (x[at + i] * r) * silu(z[at + i]);
}

struct LayerNormParams {
  uint vectors;
  uint dim;
  float eps;
};
// y = w ⊙ (x - mean)/sqrt(mean((x - mean)²)+eps) + b, dense; one simdgroup a vector.
kernel void layer_norm(device float* x [[buffer(0)]],
                       device const float* w [[buffer(1)]],
                       device const float* b [[buffer(2)]],
                       device float* y [[buffer(3)]],
                       constant LayerNormParams& p [[buffer(4)]],
                       uint group [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint sg [[simdgroup_index_in_threadgroup]],
                       uint sgs [[simdgroups_per_threadgroup]]) {
  const uint v = group * sgs + sg;
  if (v >= p.vectors) return;  // a whole simdgroup, and no barrier follows
  const ulong at = ulong(v) * p.dim;
  float sum = 0.0f, squares = 0.0f;
  for (uint i = lane; i < p.dim; i += 32u) sum += x[at + i];
  const float mean = simd_sum(sum) / float(p.dim);
  for (uint i = lane; i < p.dim; i += 32u) {
    const float d = x[at + i] - mean;
    squares = fma(d, d, squares);
  }
  const float r = 1.0f / sqrt(simd_sum(squares) / float(p.dim) + p.eps);
  for (uint i = lane; i < p.dim; i += 32u) y[at + i] = fma(w[i], (x[at + i] - mean) * r, b[i]);
}

struct RopeParams {
  uint n;  // rows·heads·pairs
  uint heads;
  uint pairs;  // of channels: Rotary/2
  uint row;    // floats from row to row
  uint head;
};
// Turns pairs of channels, see rotate.metal, by the angles of the table [rows, pairs, 2].
// INTERLEAVED: pairs are neighbours, else halves.
kernel void rope(device float* x [[buffer(0)]],
                 device const float* turns [[buffer(1)]],
                 constant RopeParams& p [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const uint pair = i % p.pairs, v = i / p.pairs, r = v / p.heads;
    const ulong at = ulong(r) * p.row + v % p.heads * p.head;
#if INTERLEAVED
    const ulong ia = at + 2u * pair, ib = ia + 1u;
#else
    const ulong ia = at + pair, ib = ia + p.pairs;
#endif
    const float c = turns[(ulong(r) * p.pairs + pair) * 2u], s = turns[(ulong(r) * p.pairs + pair) * 2u + 1u];
    const float a = x[ia], b = x[ib];
    x[ia] = turned_first(a, b, c, s);
    x[ib] = turned_second(a, b, c, s);
  }
}
