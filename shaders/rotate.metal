// Rotation of a pair of channels by an angle with this cosine and sine. Fused in the text, so that
// all kernels that rotate give the same bits.
#include "common.metal"

inline float turned_first(float a, float b, float cosine, float sine) { return fma(a, cosine, -(b * sine)); }
inline float turned_second(float a, float b, float cosine, float sine) { return fma(a, sine, b * cosine); }
