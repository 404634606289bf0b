package gputest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// testCase is one case of one operation.
type testCase struct {
	name string
	run  func(s *setup)
}

func cases() []testCase {
	var all []testCase
	for _, list := range [][]testCase{
		transferCases(), rowCases(), storedBlockCases(), matmulCases(), edgeCases(), elementCases(), ropeCases(), attentionCases(), latentCases(), recurrentCases(),
		routeCases(), chooseCases(), blockCases(), expertCases(), combineCases(), topKCases(), sequenceCases(), multipliedCases(), goldenCases(),
	} {
		all = append(all, list...)
	}
	return all
}

// aloneCases are those of rows that are computed alone and with others, see testAlone.
func aloneCases() []aloneCase {
	list := []aloneCase{
		{"rmsnorm", aloneNorm}, {"gatednorm", aloneGatedNorm}, {"swiglu", aloneSwiGLU}, {"sigmoidgate", aloneGate},
		{"rope", aloneRope}, {"attention", func(s *setup, rows []int) *operand { return aloneAttention(s, rows, 24, 0) }},
		{"attention/int8", func(s *setup, rows []int) *operand { return aloneAttention(s, rows, 24, 12) }}, {"causalconv", aloneConv}, {"deltarule", aloneDelta},
		{"combine", aloneCombine}, {"topk", aloneTopK}, {"layernorm", aloneLayerNorm}, {"choose", func(s *setup, rows []int) *operand { return aloneChoose(s, rows, 0) }},
		{"choose/blocks", func(s *setup, rows []int) *operand { return aloneChoose(s, rows, 7) }},
	}
	for _, f := range append(formats(), panelFormats()...) {
		list = append(list, aloneCase{fmt.Sprintf("embed/format=%v", f), func(s *setup, rows []int) *operand { return aloneEmbed(s, rows, f) }})
	}
	return append(list, aloneProducts()...)
}

// Run tests d. It makes its own buffers and queues and leaves d open. It tries one case in oneIn of
// each kind: more than 1 is for devices that take seconds for a case, such as those that build its
// kernels for it alone. Unless testenv.Thorough is set it leaves more out, see taken; then it tries
// all.
func Run(t *testing.T, d gpu.Device, oneIn int) {
	runCases(t, d, cases(), oneIn, newSetup)
	t.Run("alone", func(t *testing.T) { testAlone(t, d, aloneCases(), oneIn, newSetup) })
	t.Run("pieces", func(t *testing.T) { testPieces(t, d) })
	t.Run("chosen", func(t *testing.T) { testAllChosen(t, d) })
	t.Run("blocks", func(t *testing.T) { testAllBlocks(t, d) })
	t.Run("joined", func(t *testing.T) { testJoined(t, d) })
	t.Run("device", func(t *testing.T) { testDevice(t, d) })
}

// RunAligned runs the same cases on operands that begin at multiples of 256 bytes, as those of an
// engine do. A device may have kernels of its own for operands that vectors can be loaded from; in
// Run, operands have no more than the alignment of their elements.
func RunAligned(t *testing.T, d gpu.Device, oneIn int) {
	runCases(t, d, cases(), oneIn, newAligned)
	t.Run("alone", func(t *testing.T) { testAlone(t, d, aloneCases(), oneIn, newAligned) })
}

// RunAttention runs the cases of attention alone, for a device that cuts it in another way.
func RunAttention(t *testing.T, d gpu.Device, oneIn int) {
	isAttention := func(name string) bool {
		return strings.HasPrefix(name, "attention") || strings.HasPrefix(name, "valuedim")
	}
	all := slices.DeleteFunc(cases(), func(c testCase) bool { return !isAttention(c.name) })
	runCases(t, d, all, oneIn, newAligned)
	for _, c := range aloneCases() {
		if isAttention(c.name) {
			t.Run("alone/"+c.name, func(t *testing.T) { c.test(t, d, newAligned) })
		}
	}
}

func runCases(t *testing.T, d gpu.Device, all []testCase, oneIn int, begin beginner) {
	for _, c := range taken(t, all, oneIn) {
		t.Run(c.name, func(t *testing.T) { c.run(begin(t, d, c.name)) })
	}
}

// taken returns the cases that a test takes. Under testenv.Thorough it takes all. Otherwise it
// takes one in oneIn, or fewer: one in three of those that look back over hundreds of positions,
// which take most of the time, and one in four of what is multiplied. Under -short, as where a
// processor or kernels are emulated, it takes one in eight of all at most, and one in twelve of
// experts, which need many kernels each. Of each kind it takes at least one, and each variant and
// order of threads its own.
func taken(t *testing.T, all []testCase, oneIn int) []testCase {
	size, seen := map[string]int{}, map[string]int{}
	for _, c := range all {
		size[c.kind()]++
	}
	return slices.DeleteFunc(all, func(c testCase) bool {
		kind := c.kind()
		n := testenv.Rounds(max(8, oneIn), oneIn, 1)
		switch kind {
		case "attention", "latentattention", "valuedim", "choose":
			n = testenv.Rounds(max(8, oneIn), max(3, oneIn), 1)
		case "experts":
			n = testenv.Rounds(max(12, oneIn), oneIn, 1)
		case "multiplied":
			n = testenv.Rounds(max(8, oneIn), max(4, oneIn), 1)
		}
		i := seen[kind]
		seen[kind]++
		return !testenv.ShareOf(t, kind, i, size[kind], n)
	})
}

// kind is the operation, and of a product or a row of a matrix how that is stored.
func (c *testCase) kind() string {
	parts := strings.SplitN(c.name, "/", 3)
	switch parts[0] {
	case "matmul", "embed":
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// RunRounded tests the products of d, which is set to round their inputs to 8 bits as gpu.MatMul
// says, where rounds says so. Run tests the other operations. A part of the cases will do where
// oneIn is more than 1, see Run.
func RunRounded(t *testing.T, d gpu.Device, oneIn int, rounds Rounds) {
	runRounded(t, d, oneIn, rounds, newSetup)
}

// RunRoundedAligned is RunRounded with operands as RunAligned has them.
func RunRoundedAligned(t *testing.T, d gpu.Device, oneIn int, rounds Rounds) {
	runRounded(t, d, oneIn, rounds, newAligned)
}

func runRounded(t *testing.T, d gpu.Device, oneIn int, rounds Rounds, begin beginner) {
	runCases(t, d, append(productCases(), roundedCases(rounds)...), oneIn, begin.rounding(rounds))
	t.Run("alone", func(t *testing.T) { testAlone(t, d, aloneProducts(), oneIn, begin) })
}

// RunRoundedQueries tests attention to keys in 8 bits of d, which rounds queries as gpu.Attention
// says. A part of the cases will do where oneIn is more than 1, see Run.
func RunRoundedQueries(t *testing.T, d gpu.Device, oneIn int) {
	for _, begin := range []beginner{newSetup, newAligned} {
		begin = begin.roundingQueries()
		runCases(t, d, roundedQueryCases(), oneIn, begin)
		t.Run("alone", func(t *testing.T) {
			testAlone(t, d, []aloneCase{{"attention/int8", func(s *setup, rows []int) *operand { return aloneAttention(s, rows, 64, 32) }}}, oneIn, begin)
		})
	}
	t.Run("pieces", func(t *testing.T) { testPieces(t, d) })
	t.Run("chosen", func(t *testing.T) { testAllChosen(t, d) })
	t.Run("blocks", func(t *testing.T) { testAllBlocks(t, d) })
}

// productCases are those of products alone.
func productCases() []testCase {
	return slices.Concat(matmulCases(), storedBlockProducts(), expertCases())
}

// beginner makes the setup of a case.
type beginner func(t testing.TB, d gpu.Device, name string) *setup

// rounding is begin for a device that rounds.
func (begin beginner) rounding(rounds Rounds) beginner {
	return func(t testing.TB, d gpu.Device, name string) *setup {
		s := begin(t, d, name)
		s.rounds = rounds
		return s
	}
}

// roundingQueries is begin for a device that rounds queries.
func (begin beginner) roundingQueries() beginner {
	return func(t testing.TB, d gpu.Device, name string) *setup {
		s := begin(t, d, name)
		s.queries = true
		return s
	}
}

func newAligned(t testing.TB, d gpu.Device, name string) *setup {
	s := newSetup(t, d, name)
	s.aligned = true
	return s
}

// RunMultiplied tests that rows which a device prepares for products where they are written have
// the bits of rows that it does not. Run tests that among all else.
func RunMultiplied(t *testing.T, d gpu.Device) { runCases(t, d, multipliedCases(), 1, newAligned) }

// Outputs runs one case in oneIn of each kind on d, see Run, and returns what it wrote, by case and
// operand: two devices that promise the same bits, such as one with more threads, return the same
// to the same test. Whether the numbers are right is left to Run.
func Outputs(t *testing.T, d gpu.Device, oneIn int) map[string][]float32 {
	return outputs(t, d, cases(), oneIn, newSetup)
}

// OutputsRounded is Outputs for what RunRounded tests.
func OutputsRounded(t *testing.T, d gpu.Device, oneIn int, rounds Rounds) map[string][]float32 {
	all := append(productCases(), roundedCases(rounds)...)
	return outputs(t, d, all, oneIn, beginner(newSetup).rounding(rounds))
}

func outputs(
	t *testing.T, d gpu.Device, all []testCase, oneIn int, begin beginner,
) map[string][]float32 {
	out := map[string][]float32{}
	for _, c := range taken(t, all, oneIn) {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, d, c.name)
			s.unchecked = true
			c.run(s)
			for _, o := range s.operands {
				if o.written != nil {
					out[c.name+"/"+o.name] = o.floats()
				}
			}
		})
	}
	return out
}
