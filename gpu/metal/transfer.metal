// Copies within the device's memory, in the order of the launches, and clearing. UNIT is the type
// that is copied: what the places and the length allow.
#include <metal_stdlib>
using namespace metal;

struct TransferParams {
  uint n;  // of UNIT
};

kernel void copy_memory(device const UNIT* from [[buffer(0)]],
                        device UNIT* to [[buffer(1)]],
                        constant TransferParams& p [[buffer(2)]],
                        uint i [[thread_position_in_grid]]) {
  if (i < p.n) to[i] = from[i];
}

kernel void clear_memory(device UNIT* to [[buffer(0)]],
                         constant TransferParams& p [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  if (i < p.n) to[i] = UNIT(0);
}
