//go:build amd64 && !noasm

package host

var (
	avx512Vectors = vectors{
		lanes: 16, multiplyRate: 16 * 50, moveRate: 16 * 8, expRate: 16 * 4,
		dot: dotAVX512, norm: normAVX512, gatedNorm: gatedNormAVX512, add: addAVX512, axpy: axpyAVX512, merge: mergeAVX512,
		swiglu: swigluAVX512, gate: gateAVX512, combine: combineAVX512, conv: convAVX512, rope: ropeAVX512, ropePairs: ropePairsAVX512,
		widen8: widen8AVX512, transpose8: transpose8AVX512, touch: touchAVX512, transpose: transposeAVX512, softmax: softmaxAVX512, delta: deltaAVX512, dotCodes: dotCodesAVX512, multiply: multiplyAVX512, multiplyAhead: multiplyAheadAVX512,
		codings: avx512.codings,
	}
	avx2Vectors = vectors{
		lanes: 8, multiplyRate: 16 * 25, moveRate: 16 * 6, expRate: 16 * 2,
		dot: dotAVX2, norm: normAVX2, gatedNorm: gatedNormAVX2, add: addAVX2, axpy: axpyAVX2, merge: mergeAVX2,
		swiglu: swigluAVX2, gate: gateAVX2, combine: combineAVX2, conv: convAVX2, rope: ropeAVX2, ropePairs: ropePairsAVX2,
		widen8: widen8AVX2, transpose8: transpose8AVX2, touch: touchAVX2, transpose: transposeAVX2, softmax: softmaxAVX2, delta: deltaAVX2, dotCodes: dotCodesAVX2, multiply: multiplyAVX2, multiplyAhead: multiplyAheadAVX2,
		codings: avx2.codings,
	}
)

// avxVNNIVectors are AVX2's but for products of keys in 8 bits.
var avxVNNIVectors = func() vectors {
	v := avx2Vectors
	v.dotCodes, v.codings = dotCodesAVXVNNI, avxVNNI.codings
	return v
}()

// vectorsOf returns the primitives of a variant of available.
func vectorsOf(variant string) *vectors {
	switch variant {
	case "avx512", "amx":
		return &avx512Vectors
	case "avxvnni":
		return &avxVNNIVectors
	case "avx2":
		return &avx2Vectors
	default:
		return &portableVectors
	}
}
