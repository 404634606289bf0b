package launch

import "github.com/moeflux/moeflux-actor/gpu"

type topKParams struct{ vocab, k, parts uint32 }

const (
	topKThreads  = 256 // of a part
	topKEach     = 8   // logits of a thread
	mergeThreads = 512
)

func (x *encoder) topK(o *gpu.TopK) {
	parts, at := ceil(o.Vocab, topKThreads*topKEach), 0
	chosen := x.reserve(&at, o.Rows*parts*o.K*2)
	stats := x.reserve(&at, o.Rows*parts*2)
	p := topKParams{uint32(o.Vocab), uint32(o.K), uint32(parts)}
	x.begin(o, "topk_parts", topKEach)
	x.views(o.Logits)
	x.places(chosen, stats)
	constants(x, p)
	x.end(topKThreads, parts, o.Rows)
	each := 1
	for each*mergeThreads < parts*o.K {
		each *= 2
	}
	x.begin(o, "topk_merge", each)
	x.views(o.Logits)
	x.places(chosen, stats)
	x.views(o.Values, o.Indices, o.Stats)
	constants(x, p)
	x.end(mergeThreads, o.Rows)
}
