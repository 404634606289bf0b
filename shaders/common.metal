// Helpers that every kernel file may use. bf16 lies in memory as ushort: MSL has a type for it only from 3.1 on.
#include <metal_stdlib>
using namespace metal;

inline float bf16_f32(ushort b) { return as_type<float>(uint(b) << 16); }

// 1/(1+exp(-x)), without an exponential that overflows.
inline float sigmoid(float x) {
  const float e = exp(-fabs(x));
  return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}
inline float silu(float x) { return x * sigmoid(x); }
