// Numbers in the blocks of GGUF files, see model/quant: with BLOCK_NAME_… defined, BLOCK_LEN of them
// lie in BLOCK_SIZE bytes. Blocks may begin at any byte.
#if defined(BLOCK_SIZE) || defined(BLOCK_F16)

// An fp16 number, exactly.
inline float f16_f32(uint h) {
  const uint e = h & 0x7fffu;
  const float small = float(e) * as_type<float>(0x33800000u);  // 2^-24
  const float v = e < 0x400u ? small : as_type<float>((e << 13) + (e < 0x7c00u ? 0x38000000u : 0x70000000u));
  return (h & 0x8000u) != 0u ? -v : v;
}
inline uint u16_at(device const uchar* b) { return uint(b[0]) | (uint(b[1]) << 8); }
inline float f16_at(device const uchar* b) { return f16_f32(u16_at(b)); }
// A byte as a number with a sign.
inline float signed_byte(uint b) { return float(int(b ^ 128u) - 128); }

// Bits shift to shift+width-1 of 4 neighbouring bytes.
inline uint4 bits_of(device const uchar* b, uint shift, uint width) {
  const uint mask = (1u << width) - 1u;
  return uint4((uint(b[0]) >> shift) & mask, (uint(b[1]) >> shift) & mask, (uint(b[2]) >> shift) & mask, (uint(b[3]) >> shift) & mask);
}
inline float4 floats_of(uint4 c) { return float4(float(c.x), float(c.y), float(c.z), float(c.w)); }

// Bits first to first+3 of 32, each as the fifth bit of a code.
inline uint4 fifth_of(device const uchar* b, uint first) {
  const uint nibble = uint(b[first >> 3]) >> (first & 4u);
  return uint4((nibble & 1u) << 4, (nibble & 2u) << 3, (nibble & 4u) << 2, (nibble & 8u) << 1);
}

// Codes of 2 bits, of which a byte has one of each 32 in its half of 256.
inline uint4 twos_of(device const uchar* b, uint j) { return bits_of(b + ((j >> 7) << 5) + (j & 31u), ((j >> 5) & 3u) * 2u, 2u); }

#if defined(BLOCK_Q4_K) || defined(BLOCK_Q5_K)
// The scale and the minimum of group g of 8, 6 bits each in 12 bytes.
inline uint2 six_bits(device const uchar* b, uint g) {
  if (g < 4u) return uint2(uint(b[g]) & 63u, uint(b[g + 4u]) & 63u);
  const uint low = b[g + 4u];
  return uint2((low & 15u) | ((uint(b[g - 4u]) >> 6) << 4), (low >> 4) | ((uint(b[g]) >> 6) << 4));
}
#endif

#if defined(BLOCK_IQ4_NL) || defined(BLOCK_IQ4_XS)
// What a code of 4 bits stands for.
inline float iq4_f32(uint c) {
  const uint word = c < 8u ? (c < 4u ? 0xbfad9881u : 0xf6eaddcfu) : (c < 12u ? 0x26190d01u : 0x71594535u);
  return signed_byte((word >> (8u * (c & 3u))) & 255u);
}
inline float4 iq4_of(uint4 c) { return float4(iq4_f32(c.x), iq4_f32(c.y), iq4_f32(c.z), iq4_f32(c.w)); }
#endif

#ifdef BLOCK_MXFP4
// What a code of 4 bits stands for, in halves.
inline float e2m1_f32(uint c) {
  const float magnitude = float((0xc8643210u >> (4u * (c & 7u))) & 15u);
  return (c & 8u) != 0u ? -magnitude : magnitude;
}
#endif

#ifdef BLOCK_SIZE
// Numbers j to j+3 of the block at b; j is a multiple of 4.
inline float4 block_elements(device const uchar* b, uint j) {
#if defined(BLOCK_Q8_0)
  const float d = f16_at(b);
  return d * float4(signed_byte(b[2u + j]), signed_byte(b[3u + j]), signed_byte(b[4u + j]), signed_byte(b[5u + j]));
#elif defined(BLOCK_Q4_0)
  return f16_at(b) * (floats_of(bits_of(b + 2 + (j & 15u), (j & 16u) >> 2, 4u)) - float4(8.0f));
#elif defined(BLOCK_Q4_1)
  return fma(floats_of(bits_of(b + 4 + (j & 15u), (j & 16u) >> 2, 4u)), float4(f16_at(b)), float4(f16_at(b + 2)));
#elif defined(BLOCK_Q5_0)
  return f16_at(b) * (floats_of(bits_of(b + 6 + (j & 15u), (j & 16u) >> 2, 4u) | fifth_of(b + 2, j)) - float4(16.0f));
#elif defined(BLOCK_Q5_1)
  return fma(floats_of(bits_of(b + 8 + (j & 15u), (j & 16u) >> 2, 4u) | fifth_of(b + 4, j)), float4(f16_at(b)), float4(f16_at(b + 2)));
#elif defined(BLOCK_IQ4_NL)
  return f16_at(b) * iq4_of(bits_of(b + 2 + (j & 15u), (j & 16u) >> 2, 4u));
#elif defined(BLOCK_MXFP4)
  const uint4 c = bits_of(b + 1 + (j & 15u), (j & 16u) >> 2, 4u);
  const uint e = b[0];
  const float s = e == 255u ? as_type<float>(0x7fc00000u) : 0.5f * as_type<float>(max(e << 23, 1u << 22));
  return s * float4(e2m1_f32(c.x), e2m1_f32(c.y), e2m1_f32(c.z), e2m1_f32(c.w));
#elif defined(BLOCK_Q4_K)
  const uint2 s = six_bits(b + 4, j >> 5);
  const float4 c = floats_of(bits_of(b + 16 + ((j >> 6) << 5) + (j & 31u), ((j >> 5) & 1u) * 4u, 4u));
  return fma(c, float4(f16_at(b) * float(s.x)), float4(-(f16_at(b + 2) * float(s.y))));
#elif defined(BLOCK_Q5_K)
  const uint2 s = six_bits(b + 4, j >> 5);
  const uint4 high = bits_of(b + 16 + (j & 31u), j >> 5, 1u);
  const uint4 low = bits_of(b + 48 + ((j >> 6) << 5) + (j & 31u), ((j >> 5) & 1u) * 4u, 4u);
  return fma(floats_of(low | (high << 4u)), float4(f16_at(b) * float(s.x)), float4(-(f16_at(b + 2) * float(s.y))));
#elif defined(BLOCK_Q2_K)
  const uint s = b[j >> 4];
  return fma(floats_of(twos_of(b + 16, j)), float4(f16_at(b + 80) * float(s & 15u)), float4(-(f16_at(b + 82) * float(s >> 4))));
#elif defined(BLOCK_Q3_K)
  const uint g = j >> 4;
  const uint s = ((uint(b[96u + (g & 7u)]) >> ((g >> 3) * 4u)) & 15u) | (((uint(b[104u + (g & 3u)]) >> ((g >> 2) * 2u)) & 3u) << 4);
  const uint4 high = bits_of(b + (j & 31u), j >> 5, 1u);
  return (f16_at(b + 108) * (float(s) - 32.0f)) * (floats_of(twos_of(b + 32, j) | (high << 2u)) - float4(4.0f));
#elif defined(BLOCK_Q6_K)
  const uint4 low = bits_of(b + ((j >> 7) << 6) + (j & 63u), ((j >> 6) & 1u) * 4u, 4u);
  return (f16_at(b + 208) * signed_byte(b[192u + (j >> 4)])) * (floats_of(low | (twos_of(b + 128, j) << 4u)) - float4(32.0f));
#elif defined(BLOCK_IQ4_XS)
  const uint g = j >> 5;
  const uint s = ((uint(b[4u + (g >> 1)]) >> ((g & 1u) * 4u)) & 15u) | (((u16_at(b + 2) >> (2u * g)) & 3u) << 4);
  return (f16_at(b) * (float(s) - 32.0f)) * iq4_of(bits_of(b + 8 + 16u * g + (j & 15u), (j & 16u) >> 2, 4u));
#else
#error no such block
#endif
}
#endif
#endif
