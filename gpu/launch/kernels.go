package launch

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// defineCoding stands for the lines that say how matrices are stored; its value is a quant.Coding.
const defineCoding = "CODING"

// define returns the lines of a define of the table.
func define(name string, value int) string {
	if name == defineCoding {
		return codingDefines(quant.Coding(value))
	}
	return fmt.Sprintf("#define %s %d\n", name, value)
}

// codingDefines returns the lines that tell kernels how a matrix is stored, see product.metal.
func codingDefines(c quant.Coding) string {
	if b := c.Block(); b != nil && b.Len > 1 {
		return fmt.Sprintf("#define BITS 64\n#define BLOCK_%s\n#define BLOCK_LEN %du\n#define BLOCK_SIZE %du\n", b, b.Len, b.Size)
	}
	text := fmt.Sprintf("#define BITS %d\n", c.Bits())
	if b := c.Block(); b != nil {
		text += fmt.Sprintf("#define BLOCK_%s\n", b)
	}
	if !c.Codes() {
		return text
	}
	switch {
	case c.Itself():
	case c.Bits() == 8:
		text += "#define FLOAT8\n"
	default:
		halves := uint32(0)
		for code := range 8 {
			halves |= uint32(2*c.Value(code)) << (4 * code)
		}
		text += fmt.Sprintf("#define MAGNITUDES %#xu\n", halves)
	}
	if c.ScaleBytes() == 4 {
		text += "#define SCALE_F32\n"
	}
	if c.Factor() {
		text += "#define SCALE_E4M3\n#define FACTOR\n"
	}
	return text
}

// kernelDefines is the table of kernels: the names of the #define lines of each, in the order in
// which encoders give their values.
var kernelDefines = map[string][]string{
	"add":                    {},
	"swiglu":                 {"CLAMPED"},
	"sigmoid_gate":           {},
	"copy_heads":             {},
	"gather":                 {},
	"combine":                {"SHARED"},
	"append_kv":              {"VALUES"},
	"append_kv8":             {"VALUES"},
	"rms_norm":               {"WEIGHTED", "TEAM", "QUADS", "WIDE", "LIMBS", "ROUNDED"},
	"add_norm":               {"WEIGHTED", "TEAM", "QUADS", "WIDE", "LIMBS", "ROUNDED"},
	"combine_norm":           {"WEIGHTED", "TEAM", "QUADS", "WIDE", "SHARED", "LIMBS", "ROUNDED"},
	"gated_norm":             {},
	"layer_norm":             {},
	"rope":                   {"INTERLEAVED"},
	"head_vectors":           {"QUADS", "WIDE", "INTERLEAVED", "KV8"},
	"embed":                  {defineCoding, "LAYOUT"},
	"matmul":                 {defineCoding, "LAYOUT", "WIDE", "XROWS", "BIAS"},
	"route":                  {"EXPERTS", "TOPK", "SIGMOID", "NORM", "BIAS", "JOBS"},
	"expert_jobs":            {"SIZE"},
	"route_jobs":             {"EXPERTS", "TOPK", "SIGMOID", "NORM", "BIAS", "GROUPED", "ROWS", "SIZE"},
	"matmuls":                {defineCoding, "LAYOUT", "WIDE", "XROWS", "BIAS"},
	"matmul_swiglu":          {defineCoding, "LAYOUT", "WIDE", "XROWS"},
	"experts_product":        {defineCoding, "LAYOUT", "WIDE", "XROWS", "BIASED", "WHICH"},
	"experts_gate_up":        {defineCoding, "LAYOUT", "WIDE", "XROWS", "BIASED", "CLAMPED"},
	"experts_swiglu":         {defineCoding, "LAYOUT", "XROWS", "CLAMPED"},
	"head_matmul":            {defineCoding, "LAYOUT", "WIDE", "XROWS"},
	"head_matmul_transposed": {defineCoding, "LAYOUT", "WIDE", "XROWS"},
	"attention":              {"HEAD_DIM", "VALUE_DIM", "HEADS", "WIDE", "KV8", "CHOSEN"},
	"attention_tiles":        {"TILE_DIM", "HEADS", "KV8"},
	"attention_merge":        {"HEAD_DIM", "VALUE_DIM", "SPANS", "LIMBS", "ROUNDED"},
	"index_scores":           {"HEAD_DIM", "VALUE_DIM", "WIDE", "KV8"},
	"block_scores":           {"HEAD_DIM", "VALUE_DIM", "WIDE", "KV8"},
	"choose_entries":         {},
	"topk_parts":             {"EACH"},
	"topk_merge":             {"EACH"},
	"conv":                   {"KERNEL", "ADVANCE"},
	"conv_state":             {"KERNEL"},
	"delta_rule":             {"KEY_DIM", "WIDE"},
}

// variant is a kernel with the values of its defines.
type variant struct {
	name   string
	values [15]int
}

// known is a kernel that an encoder has the text of.
type known struct {
	Kernel
	settled bool // it is compiled, and whatever it needs, so that nothing is chosen in its place
}

// kernel returns the kernel of a name with the values of its defines, in the table's order.
func (x *encoder) kernel(name string, values ...int) *known {
	v := variant{name: name}
	copy(v.values[:], values)
	if k, ok := x.kernels[v]; ok {
		return k
	}
	names, ok := kernelDefines[name]
	if !ok {
		names, ok = limbKernels[name]
	}
	if !ok || len(names) != len(values) {
		panic(fmt.Sprintf("launch: kernel %q with %d defines: the table has %v", name, len(values), names))
	}
	var b strings.Builder
	for i, n := range names {
		b.WriteString(define(n, values[i]))
	}
	if x.kernels == nil {
		x.kernels = map[variant]*known{}
	}
	k := &known{Kernel: Kernel{Name: name, Defines: b.String()}}
	x.kernels[v] = k
	return k
}
