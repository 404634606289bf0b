package gputest

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// testCase is one case of one operation.
type testCase struct {
	name string
	run  func(s *setup)
}

func cases() []testCase {
	var all []testCase
	for _, list := range [][]testCase{
		transferCases(), rowCases(), matmulCases(), elementCases(), ropeCases(), attentionCases(), latentCases(), recurrentCases(),
		moeCases(), goldenCases(),
	} {
		all = append(all, list...)
	}
	return all
}

// Run tests d. It makes its own buffers and queues and leaves d open.
func Run(t *testing.T, d gpu.Device) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.run(newSetup(t, d, c.name)) })
	}
	t.Run("alone", func(t *testing.T) { testAlone(t, d) })
	t.Run("pieces", func(t *testing.T) { testPieces(t, d) })
	t.Run("device", func(t *testing.T) { testDevice(t, d) })
}

// Outputs runs every case on d and returns what it wrote, by case and operand: two devices that promise the same
// bits, such as one with more threads, return the same.
func Outputs(t *testing.T, d gpu.Device) map[string][]float32 {
	out := map[string][]float32{}
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			s := newSetup(t, d, c.name)
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
