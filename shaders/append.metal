// Rows of the cache of keys and values, and how groups of channels are rounded to 8 bits, see
// gpu.KV.
#include "common.metal"

struct AppendRow {
  device uchar* k;  // the keys of the page that the row goes to
  device uchar* v;
  uint row;
  uint slot;  // of the row in the page
  uint page_rows;
  uint pad;
};

// Where the scales of a part of a page begin: after the codes of its rows of dim channels.
inline device float* scales_of(device uchar* part, uint page_rows, uint dim) {
  return (device float*)(part + ((page_rows * dim + 63u) & ~63u));
}

// The bits of a group's largest magnitude, see gpu.Int8LeastBits.
#define LEAST_BITS 0x03fe0000u
#define INFINITE_BITS 0x7f800000u

// A group's scale. Where codes are 0 whatever the channels are, divisor is 0.
struct RoundedGroup {
  float scale;
  float divisor;
};

// |x| as bits, whose order is that of the magnitudes, with infinities and NaNs above all.
inline uint magnitude(float x) { return as_type<uint>(x) & 0x7fffffffu; }

// The scale of a group whose largest magnitude is most: NaN where that is not finite, 0 where it is
// too small.
inline RoundedGroup rounded_group(uint most) {
  const float scale = as_type<float>(as_type<uint>(as_type<float>(most) / 127.0f) & ~0xffu);
  RoundedGroup g;
  g.divisor = most < INFINITE_BITS && most >= LEAST_BITS ? scale : 0.0f;
  g.scale = most < INFINITE_BITS ? g.divisor : as_type<float>(0x7fc00000u);
  return g;
}

// A channel's code. The sum has no room for fractions: the low bits are the nearest whole number,
// ties to even.
inline uchar rounded(float x, RoundedGroup g) {
  return g.divisor != 0.0f ? uchar(as_type<uint>(x / g.divisor + 12582912.0f) & 0xffu) : uchar(0u);
}
