package refmodel

import "math"

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 { return x * sigmoid(x) }

// softplus is ln(1+e^x), computed so that it does not overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// softmax returns e^x[i] / Σ e^x[j].
func softmax(x []float64) []float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	out := make([]float64, len(x))
	sum := 0.0
	for i, v := range x {
		out[i] = math.Exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

func add(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

// rmsNorm returns w · x / sqrt(mean(x²) + eps).
func rmsNorm(x, w []float64, eps float64) []float64 {
	r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = w[i] * (v * r)
	}
	return out
}

// headNorm normalises each head of x, which is [heads·len(w)], separately.
func headNorm(x, w []float64, eps float64) []float64 {
	var out []float64
	for h := 0; h < len(x); h += len(w) {
		out = append(out, rmsNorm(x[h:h+len(w)], w, eps)...)
	}
	return out
}

// gatedNorm returns rmsNorm(x) · silu(z).
func gatedNorm(x, w, z []float64, eps float64) []float64 {
	out := rmsNorm(x, w, eps)
	for i := range out {
		out[i] *= silu(z[i])
	}
	return out
}

// l2Norm returns scale · x / sqrt(Σ x² + 1e-6). The epsilon is added to the sum, not to the mean.
func l2Norm(x []float64, scale float64) []float64 {
	r := scale / math.Sqrt(dot(x, x)+1e-6)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * r
	}
	return out
}
