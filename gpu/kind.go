package gpu

// Kind tells operations apart. A device has a table with a function for each.
type Kind uint8

// The kinds of operations.
const (
	KindUpload Kind = iota
	KindDownload
	KindFill
	KindFetch
	KindFetched
	KindEmbed
	KindGather
	KindRMSNorm
	KindLayerNorm
	KindGatedNorm
	KindMatMul
	KindHeadMatMul
	KindCopyHeads
	KindAdd
	KindSigmoidGate
	KindSwiGLU
	KindRope
	KindAppendKV
	KindAttention
	KindLatentAttention
	KindChoose
	KindCausalConv
	KindDeltaRule
	KindTabulate
	KindRetabulate
	KindRoute
	KindExperts
	KindCombine
	KindTopK
	KindMark

	NumKinds int = iota
)
