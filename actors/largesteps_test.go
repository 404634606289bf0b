package actors_test

import (
	"context"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestLargeSteps has a step of many more rows than the default. A large GPU reads prompts fastest
// so.
func TestLargeSteps(t *testing.T) { testLargeSteps(t, device(t, 2), 1100) }

// testLargeSteps wants every row of a step of n to have the bits that it has in one of 512.
func testLargeSteps(t *testing.T, dev gpu.Device, n int) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	var want []float32
	for _, rows := range []int{512, n} {
		e := open(t, actors.Config{Model: dir, Device: dev, ChunkRows: rows, RecordMemory: fewRecords})
		r, err := sequence(t, e).EvalChunk(context.Background(), actors.Chunk{Tokens: prompt(6, n, e.Model().VocabSize), Logits: actors.AllLogits})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want == nil:
			want = slices.Clone(r.Logits)
		case !slices.Equal(r.Logits, want):
			t.Errorf("%d rows together have other logits than by 512", n)
		}
	}
}
