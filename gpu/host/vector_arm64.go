//go:build arm64 && !noasm

package host

var neonVectors = vectors{
	lanes: 4, multiplyRate: 16 * 12, moveRate: 16 * 4, expRate: 16,
	dot: dotNEON, norm: normNEON, gatedNorm: gatedNormNEON, add: addNEON, axpy: axpyNEON, merge: mergeNEON,
	swiglu: swigluNEON, gate: gateNEON, combine: combineNEON, conv: convNEON, rope: ropeNEON, ropePairs: ropePairsNEON,
	widen8: widen8NEON, transpose8: transpose8NEON, touch: touchNEON, dotCodes: dotCodesNEON, transpose: transposeNEON, softmax: softmaxNEON, delta: deltaNEON, multiply: multiplyNEON,
	codings: neon.codings,
}

// vectorsOf returns the primitives of a variant of available.
func vectorsOf(variant string) *vectors {
	if variant == "neon" {
		return &neonVectors
	}
	return &portableVectors
}
