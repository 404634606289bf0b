package launch

import "github.com/moeflux/moeflux-actor/gpu"

// encoding is how the operations of a kind, which have been checked, become steps.
type encoding struct {
	// alone appends the steps of one operation.
	alone func(x *encoder, op gpu.Op) error
	// join, where it is not nil, makes one launch of operations that follow one another. It looks
	// at those that come next, two or more, of which the first is of the kind, and returns how many
	// it has encoded: 0 where they are not what it joins, or where one of them would see in memory
	// what another one wrote, other than as the join computes it. What it computes has the bits of
	// the operations one after the other: its kernel adds in the same order and writes every result
	// that they write.
	join func(x *encoder, ops []gpu.Op) int
}

// encodings is the table of them, by kind.
var encodings = [gpu.NumKinds]encoding{
	gpu.KindUpload:          {alone: always((*encoder).upload)},
	gpu.KindFetch:           {alone: always((*encoder).fetch)},
	gpu.KindFetched:         {alone: always((*encoder).fetched)},
	gpu.KindDownload:        {alone: always((*encoder).download)},
	gpu.KindFill:            {alone: always((*encoder).fill)},
	gpu.KindEmbed:           {alone: always((*encoder).embed)},
	gpu.KindGather:          {alone: always((*encoder).gather)},
	gpu.KindRMSNorm:         {alone: always((*encoder).rmsNorm), join: (*encoder).joinHeads},
	gpu.KindLayerNorm:       {alone: always((*encoder).layerNorm)},
	gpu.KindGatedNorm:       {alone: always((*encoder).gatedNorm)},
	gpu.KindMatMul:          {alone: always((*encoder).matMul), join: (*encoder).joinProducts},
	gpu.KindHeadMatMul:      {alone: always((*encoder).headMatMul)},
	gpu.KindCopyHeads:       {alone: always((*encoder).copyHeads)},
	gpu.KindAdd:             {alone: always((*encoder).add), join: (*encoder).joinAddNorm},
	gpu.KindSigmoidGate:     {alone: always((*encoder).sigmoidGate)},
	gpu.KindSwiGLU:          {alone: always((*encoder).swiglu)},
	gpu.KindRope:            {alone: always((*encoder).rope), join: (*encoder).joinHeads},
	gpu.KindAppendKV:        {alone: always((*encoder).appendKV)},
	gpu.KindAttention:       {alone: always((*encoder).attention)},
	gpu.KindLatentAttention: {alone: always((*encoder).latentAttention)},
	gpu.KindChoose:          {alone: always((*encoder).choose)},
	gpu.KindCausalConv:      {alone: always((*encoder).conv)},
	gpu.KindDeltaRule:       {alone: always((*encoder).deltaRule)},
	gpu.KindTabulate:        {alone: always((*encoder).tabulate)},
	gpu.KindRetabulate:      {alone: always((*encoder).retabulate)},
	gpu.KindRoute:           {alone: sometimes((*encoder).route), join: (*encoder).joinRoute},
	gpu.KindExperts:         {alone: sometimes((*encoder).experts)},
	gpu.KindCombine:         {alone: always((*encoder).combine), join: (*encoder).joinCombineNorm},
	gpu.KindTopK:            {alone: always((*encoder).topK)},
	gpu.KindMark:            {alone: always((*encoder).mark)},
}

// always is for operations whose kernels serve every size.
func always[T gpu.Op](encode func(x *encoder, o T)) func(x *encoder, op gpu.Op) error {
	return func(x *encoder, op gpu.Op) error {
		encode(x, op.(T))
		return nil
	}
}

// sometimes is for operations whose kernels do not.
func sometimes[T gpu.Op](encode func(x *encoder, o T) error) func(x *encoder, op gpu.Op) error {
	return func(x *encoder, op gpu.Op) error { return encode(x, op.(T)) }
}

// encode appends the steps of the first of ops, or of several if they are one launch, and returns
// of how many.
func (x *encoder) encode(ops []gpu.Op) (int, error) {
	e := &encodings[ops[0].Kind()]
	if e.join != nil && len(ops) > 1 && !x.plain {
		if n := e.join(x, ops); n > 0 {
			return n, nil
		}
	}
	return 1, e.alone(x, ops[0])
}

// lists are what operations build their tables in.
type lists struct {
	rows    []attentionRow
	tiles   []attentionTile
	appends []appendRow
	conv    []convRow
	last    []convRow
	delta   []deltaSegment
	experts []expertWeights
	copies  []MemoryCopy
	heads   headJoin
}

// or returns n, or zero if n is 0.
func or(n, zero int) int {
	if n == 0 {
		return zero
	}
	return n
}

// ceil returns how many pieces of size n cover a.
func ceil(a, n int) int { return (a + n - 1) / n }

// flag is 1 for true, as a #define wants it.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// aligned reports whether every view begins at a multiple of n bytes. Buffers do.
func aligned(n int, views ...gpu.View) bool {
	for _, v := range views {
		if !v.IsZero() && address(v)%uint64(n) != 0 {
			return false
		}
	}
	return true
}
