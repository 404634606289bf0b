// Helpers that every kernel file may use. bf16 lies in memory as ushort: MSL has a type for it only
// from 3.1 on.
#include <metal_stdlib>
using namespace metal;

inline float bf16_f32(ushort b) { return as_type<float>(uint(b) << 16); }

// 1/(1+exp(-x)), without an exponential that overflows.
inline float sigmoid(float x) {
  const float e = exp(-fabs(x));
  return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}
// x·sigmoid(x). The exponential's root is squared with x between: where it alone would be too small
// to be a normal number, which devices make 0, the product is not yet.
inline float silu(float x) {
  const float h = exp(-0.5f * fabs(x)), e = h * h;
  return (x >= 0.0f ? x : x * h * h) / (1.0f + e);
}
