// How the inputs of a matrix are cut. INPUTS is the matrix's columns: a slice's length is known then,
// and what no slice needs is not there. Kernels include it before product.cu or staged.cu.
#include "limbs.cu"

struct Rows {  // of X: where lanes find row r
  const float* x;
  const u8* limbs;
  const float2* sums;
};

#define GROUPS (INPUTS / GROUP)
#define SLICES_MOST ((GROUPS + 7) / 8 < 8 ? (GROUPS + 7) / 8 : 8)
// groups of a slice, the last may have fewer
#define EACH ((GROUPS + SLICES_MOST - 1) / SLICES_MOST)
#define SLICES ((GROUPS + EACH - 1) / EACH)
