package host

import "math"

// sigmoid returns 1/(1+e^-x), rounded once.
func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// silu returns x·σ(x), rounded once.
func silu(x float32) float32 { return float32(float64(x) / (1 + math.Exp(-float64(x)))) }

// softplus returns ln(1+e^x) without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// dot returns Σ q[i]·x[i], summed in four lanes: see the package comment. len(x) >= len(q).
func dot(q, x []float32) float32 {
	var a, b, c, d float32
	x = x[:len(q)]
	for len(q) >= 8 && len(x) >= 8 {
		a += float32(q[0] * x[0])
		b += float32(q[1] * x[1])
		c += float32(q[2] * x[2])
		d += float32(q[3] * x[3])
		a += float32(q[4] * x[4])
		b += float32(q[5] * x[5])
		c += float32(q[6] * x[6])
		d += float32(q[7] * x[7])
		q, x = q[8:], x[8:]
	}
	lanes := [4]float32{a, b, c, d}
	for i, v := range q {
		lanes[i%4] += float32(v * x[i])
	}
	return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

// blockInputs is how many elements are summed in lanes before the lanes are added up, where there
// are no quantisation groups. Short blocks keep the rounding of long sums small.
const blockInputs = 64

// dotBlocks returns Σ q[i]·x[i], in blocks of blockInputs.
func dotBlocks(q, x []float32) float32 {
	var sum float32
	for len(q) > blockInputs {
		sum += dot(q[:blockInputs], x)
		q, x = q[blockInputs:], x[blockInputs:]
	}
	return sum + dot(q, x)
}

// addTimes adds f·v to y.
func addTimes(y, v []float32, f float32) {
	v = v[:len(y)]
	for d := range y {
		y[d] += float32(f * v[d])
	}
}
