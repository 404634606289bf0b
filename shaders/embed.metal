// Look-up of rows of the embedding table, see product.metal for the #define lines.
#define XROWS 1
#include "product.metal"

struct EmbedParams {
  uint n;  // tokens·cols
  uint cols;
  uint group_bits;
};
// y[r, :] = table[tokens[r], :], dequantised: code·scale + bias.
kernel void embed(device const uchar* codes [[buffer(0)]],
                  device const ushort* scales [[buffer(1)]],
                  device const ushort* biases [[buffer(2)]],
                  device const int* tokens [[buffer(3)]],
                  device float* y [[buffer(4)]],
                  constant EmbedParams& p [[buffer(5)]],
                  uint i [[thread_position_in_grid]]) {
  if (i < p.n) {
    const uint row = uint(tokens[i / p.cols]), c = i % p.cols;
#if defined(BLOCK_SIZE) || defined(BLOCK_F16)
    Weights w;
    w.codes = codes;
    w.cols = p.cols;
    y[i] = load_elements(w, row, c & ~3u)[c & 3u];
#elif BITS == 32
    y[i] = ((device const float*)codes)[ulong(row) * p.cols + c];
#elif BITS == 16
    y[i] = bf16_f32(((device const ushort*)codes)[ulong(row) * p.cols + c]);
#else
    const uint word = ((device const uint*)codes)[word_at(row, c / UNIT, p.cols / UNIT)];
    const ulong g = group_at(row, c >> p.group_bits, p.cols >> p.group_bits);
#ifdef UNBIASED
    y[i] = code_f32(word, code_bit(c % UNIT)) * scale_f32(scales, g);
#ifdef FACTOR
    y[i] *= ((device const float*)biases)[row];
#endif
#else
    const uint code = (word >> code_bit(c % UNIT)) & ((1u << BITS) - 1u);
    y[i] = fma(float(code), scale_f32(scales, g), scale_f32(biases, g));
#endif
#endif
  }
}
