package launch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
)

// encode appends the steps of one operation, which has been checked.
func (x *encoder) encode(op gpu.Op) error {
	switch o := op.(type) {
	case *gpu.Upload, *gpu.Download, *gpu.Fill:
		x.routed = nil // picks may be others now
		x.steps = append(x.steps, step{op: op, index: x.at})
	case *gpu.Embed:
		x.embed(o)
	case *gpu.Gather:
		x.gather(o)
	case *gpu.RMSNorm:
		x.rmsNorm(o)
	case *gpu.LayerNorm:
		x.layerNorm(o)
	case *gpu.MatMul:
		x.matMul(o)
	case *gpu.HeadMatMul:
		x.headMatMul(o)
	case *gpu.CopyHeads:
		x.copyHeads(o)
	case *gpu.Add:
		x.add(o)
	case *gpu.SigmoidGate:
		x.sigmoidGate(o)
	case *gpu.SwiGLU:
		x.swiglu(o)
	case *gpu.Rope:
		x.rope(o)
	case *gpu.AppendKV:
		x.appendKV(o)
	case *gpu.Attention:
		x.attention(o)
	case *gpu.LatentAttention:
		x.latentAttention(o)
	case *gpu.Choose:
		x.choose(o)
	case *gpu.CausalConv:
		x.conv(o)
	case *gpu.DeltaRule:
		x.deltaRule(o)
	case *gpu.GatedNorm:
		x.gatedNorm(o)
	case *gpu.Tabulate:
		x.tabulate(o)
	case *gpu.Route:
		return x.route(o)
	case *gpu.Experts:
		return x.experts(o)
	case *gpu.Combine:
		x.combine(o)
	case *gpu.TopK:
		x.topK(o)
	case *gpu.Mark:
		x.steps = append(x.steps, step{op: op, index: x.at})
	default:
		return fmt.Errorf("there is no kernel for %T", op)
	}
	return nil
}

// lists are what operations build their tables in.
type lists struct {
	rows    []attentionRow
	tiles   []tile
	appends []appendRow
	conv    []convRow
	last    []convRow
	delta   []deltaSegment
	experts []expertWeights
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
