// Rows of float32 as limbs: what kernels of gpu/cuda/override multiply by, and make of rows that
// nobody has made them of, see limbs.cu there. A kernel that writes rows writes their limbs, too, if
// the next one wants them.
//
// LIMBS is the inputs of a group, 32, 64 or 128, of which three limbs are wanted, ROUNDED those of a
// group of which one is; 0: nobody wants any.
#include "common.metal"

#ifndef LIMBS
#define LIMBS 0
#endif
#ifndef ROUNDED
#define ROUNDED 0
#endif

// The largest magnitude's bits of the 4 numbers of each of so many lanes next to each other. Their
// order is that of magnitudes, NaN above all.
inline uint most_bits(float4 v, uint lanes) {
  uint most = 0u;
#pragma unroll
  for (uint c = 0; c < 4u; c++) most = max(most, as_type<uint>(v[c]) & 0x7fffffffu);
#pragma unroll
  for (uint d = 1; d < lanes; d *= 2u) most = max(most, simd_shuffle_xor(most, ushort(d)));
  return most;
}

#if LIMBS
#define LIMB_LANES (LIMBS / 4u)  // that have a group, next to each other

// Writes the limbs of a lane's 4 numbers, and one lane of a group its power of two and sum. record
// is the lane's group, counted over all rows. All lanes call it; those that are not live have none.
inline void store_limbs(device uint* limbs, device float* sums, ulong record, float4 v, uint lane, bool live) {
  const uint most = most_bits(v, LIMB_LANES);
  const uint exponent = most >> 23, e = min(max(exponent, 22u), 254u);  // by 127 more than it is
  const bool whole = exponent < 255u;
  const float up = as_type<float>((276u - e) << 23);
  int sum = 0;
  uint upper = 0u, middle = 0u, lower = 0u;
#pragma unroll
  for (uint c = 0; c < 4u; c++) {
    const int q = whole ? min(int(rint(v[c] * up)), 0x7fffff) : 0;
    sum += q;
    upper |= (uint(q) >> 16 & 255u) << 8u * c;
    middle |= (uint(q) >> 8 & 255u) << 8u * c;
    lower |= (uint(q) & 255u) << 8u * c;
  }
#pragma unroll
  for (uint d = 1; d < LIMB_LANES; d *= 2u) sum += simd_shuffle_xor(sum, ushort(d));
  if (!live) return;
  device uint* to = limbs + record * (3u * LIMB_LANES) + lane % LIMB_LANES;
  to[0] = upper;
  to[LIMB_LANES] = middle;
  to[2u * LIMB_LANES] = lower;
  if (lane % LIMB_LANES == 0u) {
    sums[2u * record] = as_type<float>(whole ? e << 23 : 0x7fc00000u);
    sums[2u * record + 1u] = float(sum) * 2.384185791015625e-07f;
  }
}
#endif

#if ROUNDED
#define ROUNDED_LANES (ROUNDED / 4u)  // that have a group, next to each other

// x/s rounded to the nearest, where by is 1/s: a product, its error, and the error's share.
inline float quotient(float x, float s, float by) {
  const float q = x * by;
  return fma(fma(-q, s, x), by, q);
}

// Writes the one limb of each of a lane's 4 numbers, and one lane of a group its scale and sum, as
// store_limbs does.
inline void store_rounded(device uint* limbs, device float* sums, ulong record, float4 v, uint lane, bool live) {
  const uint most = most_bits(v, ROUNDED_LANES);
  const bool whole = most < 0x7f800000u, none = most < 0x03fe0000u;  // 127·2^-126
  const float s = none || !whole ? 1.0f : as_type<float>(most) / 127.0f, by = 1.0f / s;
  int sum = 0;
  uint all = 0u;
#pragma unroll
  for (uint c = 0; c < 4u; c++) {
    const int q = whole ? int(rint(quotient(v[c], s, by))) : 0;
    sum += q;
    all |= (uint(q) & 255u) << 8u * c;
  }
#pragma unroll
  for (uint d = 1; d < ROUNDED_LANES; d *= 2u) sum += simd_shuffle_xor(sum, ushort(d));
  if (!live) return;
  limbs[record * ROUNDED_LANES + lane % ROUNDED_LANES] = all;
  if (lane % ROUNDED_LANES == 0u) {
    sums[2u * record] = whole ? none ? 0.0f : s : as_type<float>(0x7fc00000u);
    sums[2u * record + 1u] = float(sum);
  }
}
#endif
