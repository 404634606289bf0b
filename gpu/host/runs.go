package host

import (
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
)

// runs is what runs the operations of each kind. A function is given what comes next in the
// Commands, runs the first of these operations and those after it that share its job, and returns
// how many.
var runs = [gpu.NumKinds]func(x *executor, ops []gpu.Op) int{
	gpu.KindUpload:          alone((*executor).runUpload),
	gpu.KindDownload:        alone((*executor).runDownload),
	gpu.KindFill:            alone((*executor).runFill),
	gpu.KindFetch:           alone((*executor).runFetch),
	gpu.KindFetched:         alone((*executor).runFetched),
	gpu.KindEmbed:           alone((*executor).runEmbed),
	gpu.KindGather:          alone((*executor).runGather),
	gpu.KindRMSNorm:         alone((*executor).runNorm),
	gpu.KindLayerNorm:       alone((*executor).runLayerNorm),
	gpu.KindGatedNorm:       alone((*executor).runGatedNorm),
	gpu.KindMatMul:          (*executor).runMatMuls,
	gpu.KindHeadMatMul:      alone((*executor).runHeadMatMul),
	gpu.KindCopyHeads:       alone((*executor).runCopyHeads),
	gpu.KindAdd:             alone((*executor).runAdd),
	gpu.KindSigmoidGate:     alone((*executor).runSigmoidGate),
	gpu.KindSwiGLU:          alone((*executor).runSwiGLU),
	gpu.KindRope:            alone((*executor).runRope),
	gpu.KindAppendKV:        alone((*executor).runAppendKV),
	gpu.KindAttention:       alone((*executor).runAttention),
	gpu.KindLatentAttention: alone((*executor).runLatentAttention),
	gpu.KindChoose:          alone((*executor).runChoose),
	gpu.KindCausalConv:      alone((*executor).runConv),
	gpu.KindDeltaRule:       alone((*executor).runDelta),
	gpu.KindTabulate:        alone((*executor).runTabulate),
	gpu.KindRetabulate:      alone((*executor).runRetabulate),
	gpu.KindRoute:           alone((*executor).runRoute),
	gpu.KindExperts:         alone((*executor).runExperts),
	gpu.KindCombine:         alone((*executor).runCombine),
	gpu.KindTopK:            alone((*executor).runTopK),
	gpu.KindMark:            alone((*executor).runMark),
}

// tasks is what operations keep from one to the next of their kind: the work that threads share,
// and its memory.
type tasks struct {
	embed    embedTask
	norm     normTask
	layer    layerNormTask
	mat      matTask
	headMat  headMatTask
	gate     gateTask
	swiglu   swigluTask
	rope     ropeTask
	attn     attnTask
	latent   latentTask
	choose   chooseTask
	conv     convTask
	delta    deltaTask
	gated    gatedTask
	add      addTask
	router   routeTask
	expert   expertTask
	combine  combineTask
	append   appendTask
	copying  copyTask
	rounding roundTask
	topK     topKTask
}

// alone is for operations that share their job with none.
func alone[T gpu.Op](run func(x *executor, o T)) func(x *executor, ops []gpu.Op) int {
	return func(x *executor, ops []gpu.Op) int {
		run(x, ops[0].(T))
		return 1
	}
}

func (x *executor) runUpload(o *gpu.Upload) { copy(bytesAt(o.Dst, len(o.Src)), o.Src) }

func (x *executor) runDownload(o *gpu.Download) { copy(o.Dst, bytesAt(o.Src, len(o.Dst))) }

func (x *executor) runFill(o *gpu.Fill) { clear(bytesAt(o.Dst, o.Bytes)) }

// runFetch copies at once.
func (x *executor) runFetch(o *gpu.Fetch) {
	for _, c := range o.Copies {
		copy(bytesAt(c.Dst, len(c.Src)), c.Src)
	}
}

func (x *executor) runFetched(*gpu.Fetched) {}

// runTabulate does nothing: the host reads tables as they are, until one of their experts moves.
func (x *executor) runTabulate(*gpu.Tabulate) {}

// runRetabulate keeps a list of the experts as they lie now.
func (x *executor) runRetabulate(o *gpu.Retabulate) {
	list := expertsOf(o.Table)
	if o.Table.Kept == nil {
		list = slices.Clone(list)
		o.Table.Kept = list
	}
	list[o.Index] = o.Expert
}

// expertsOf returns the experts of a table as they lie now.
func expertsOf(t *gpu.ExpertTable) []gpu.Expert {
	if moved, ok := t.Kept.([]gpu.Expert); ok {
		return moved
	}
	return t.Experts
}

func (x *executor) runMark(o *gpu.Mark) { o.NS = max(1, x.clock.worked(x.pause)) }
