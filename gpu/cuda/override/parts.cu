// The matrices of one launch: the same X times PARTS matrices of one format, 1 to 4, one after the
// other along the grid. Each is five parameters, in this order, so that chains of launches are told
// apart by them as by all memory; what is a number stands in MatMulParams.
#define PART_PARAMS(i) const u8 *codes##i, const u16 *scales##i, const u16 *biases##i, const float *bias##i, float *y##i
#if PARTS == 1
#define ALL_PARTS PART_PARAMS(0)
#elif PARTS == 2
#define ALL_PARTS PART_PARAMS(0), PART_PARAMS(1)
#elif PARTS == 3
#define ALL_PARTS PART_PARAMS(0), PART_PARAMS(1), PART_PARAMS(2)
#else
#define ALL_PARTS PART_PARAMS(0), PART_PARAMS(1), PART_PARAMS(2), PART_PARAMS(3)
#endif

struct PartParams {
  u32 rows, y_stride;
  u32 first;   // threadgroups before it
  u32 biased;  // bias is added; else its parameter is any memory
};
struct MatMulParams {
  u32 cols, rows, x_stride, pad;
  PartParams part[PARTS];
};

struct Part {
  Weights w;
  const float* bias;
  float* y;
  PartParams p;
};

FN void store(const Part& w, u32 row, u32 o, float v) { w.y[(u64)row * w.p.y_stride + o] = w.p.biased ? v + w.bias[o] : v; }

// The part of a threadgroup.
#define TAKE_PART(i) \
  if (blockIdx.x >= p.part[i].first) part = Part{{codes##i, scales##i, biases##i}, bias##i, y##i, p.part[i]};
#if PARTS == 1
#define THE_PART() Part part{{codes0, scales0, biases0}, bias0, y0, p.part[0]};
#elif PARTS == 2
#define THE_PART() Part part; TAKE_PART(0) TAKE_PART(1)
#elif PARTS == 3
#define THE_PART() Part part; TAKE_PART(0) TAKE_PART(1) TAKE_PART(2)
#else
#define THE_PART() Part part; TAKE_PART(0) TAKE_PART(1) TAKE_PART(2) TAKE_PART(3)
#endif
