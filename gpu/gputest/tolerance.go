package gputest

import "math"

// All tolerances. They hold for any order of summation, with or without fused multiply-add.

// unit is the largest relative error of one float32 rounding.
const unit = 1.0 / (1 << 24)

// tiny covers results below the normal range, which a device may flush to zero, and products of a
// scale of which it flushes half: 6·2^-126 at most, the largest code of MXFP4 times that.
const tiny = 1e-37

// sumTolerance is the error of a sum of n products against the sum of their magnitudes. Roundings
// are as often up as down, so they grow as the root of their number; 8 more cover the products and
// the ends of short sums.
func sumTolerance(n int) float64 { return unit * (8 + math.Sqrt(float64(n))) }

// functionTolerance is the relative error of an exponential, a sigmoid or a softplus, and of the
// product it goes into. Devices promise exp to 2–4 units in the last place; the rest is for the
// quotient.
const functionTolerance = 16 * unit

// siluSlope bounds the derivative of silu, by which an error of its argument grows.
const siluSlope = 1.1

// dequantTolerance is the error of q·scale + bias against |q·scale| + |bias|: two roundings.
const dequantTolerance = 2 * unit

// normTolerance is the relative error of a normalised value of n: that of the mean of squares,
// halved by the root, and those of root, quotient and two products.
func normTolerance(n int) float64 { return sumTolerance(n)/2 + 6*unit }

// ropeTolerance is the error of x·cos - y·sin against |x·cos| + |y·sin|: two products and a sum.
const ropeTolerance = 3 * unit

// attentionTolerance is the relative error of one weight over n positions, to be taken against Σ
// a·|v|, when the scores are off by scoreError: it enters twice, above and below the fraction bar.
func attentionTolerance(n int, scoreError float64) float64 {
	return 2*scoreError + 2*functionTolerance + 2*sumTolerance(n)
}

// deltaTolerance is the relative error of the gated delta rule's state and output after steps of
// rows. One step adds the rounding of sums over the key dimension, and decay forgets the old ones;
// 64 steps of 128 keys stay below 1e-5.
const deltaTolerance = 1e-5
