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

// A number's key, which grows as the number does: NaN is above all, -0 is 0.
inline uint key_of(float x) {
  const uint bits = as_type<uint>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
  if (bits == 0x80000000u) return 0x80000000u;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

#ifndef CLAMPED
#define CLAMPED 0
#endif
// The two factors of a gated unit, see gpu.Clamp: CLAMPED 1 bounds gates before their activation, 2
// after it. What is above the limit is compared, so that a NaN stays one.
inline float gate_factor(float g, float limit, float alpha) {
#if CLAMPED == 2
  const float s = silu(g);
  return s > limit ? limit : s;
#elif CLAMPED
  return silu(alpha * (g > limit ? limit : g));
#else
  return silu(g);
#endif
}
inline float up_factor(float u, float limit, float alpha) {
#if CLAMPED == 2
  return u > limit ? limit : u < -limit ? -limit : u;
#elif CLAMPED
  return ((u > limit ? limit : u < -limit ? -limit : u) + 1.0f) / alpha;
#else
  return u;
#endif
}
