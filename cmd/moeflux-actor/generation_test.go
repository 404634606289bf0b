package main

import (
	"context"
	"io"
	"iter"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// notes is a sequence that only notes what it is asked.
type notes struct {
	chunks  []int // sizes of those that want no logits
	prompt  []int32
	earlier []int32
	until   int
}

func (n *notes) Declare(positions int) { n.until = positions }

func (n *notes) EvalChunk(_ context.Context, c actors.Chunk) (*actors.Evaluated, error) {
	if c.Logits == actors.NoLogits {
		n.chunks = append(n.chunks, len(c.Tokens))
	}
	return &actors.Evaluated{}, nil
}

func (n *notes) Resume(context.Context, []int32) (int, error) { return 0, nil }

func (n *notes) Generate(_ context.Context, prompt []int32, o actors.GenerateOptions) iter.Seq2[int32, error] {
	n.prompt, n.earlier = prompt, o.Earlier
	return func(yield func(int32, error) bool) {}
}

// An answer that can be stopped reads its prompt in the engine's own chunks, and stops between two
// of them.
func TestGenerationReadsInChunks(t *testing.T) {
	model, _ := loadE2E(t)
	inv := &invocation{stdout: &resultWriter{w: io.Discard}, stderr: io.Discard, env: testEnv()}
	flags := &engineFlags{Model: model, Device: "auto", Activations: "f32", Trace: "off", TraceSample: 1, LogLevel: "warn", LogFormat: "text", ChunkRows: 16}
	s, err := openSession(t.Context(), inv, flags)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	tok, err := tokenizer.LoadDir(model)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int32, 100)
	for i := range ids {
		ids[i] = int32(i)
	}
	for _, c := range []struct {
		name      string
		stops     bool // can be stopped
		haltAt    int  // the question that is answered with yes; 0 for none
		reused    int
		chunks    []int
		generates bool
	}{
		{"cannot be stopped", false, 0, 0, nil, true},
		{"is not stopped", true, 0, 0, []int{16, 16, 16, 16, 16, 16}, true},
		{"with a part that is there", true, 0, 70, []int{16}, true},
		{"nearly all is there", true, 0, 99, nil, true},
		{"stopped at once", true, 1, 0, nil, false},
		{"stopped in between", true, 3, 0, []int{16, 16}, false},
		{"stopped before the last", true, 7, 0, []int{16, 16, 16, 16, 16, 16}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			seq, asked := &notes{}, 0
			g := &generation{s: s, maxTokens: 9, seq: seq, tok: tok, show: &plainText{}, ids: ids, reused: c.reused, clock: runClock{now: testEnv().now}}
			if c.stops {
				g.halt = func() bool { asked++; return asked == c.haltAt }
			}
			r, err := g.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if seq.until != 108 { // the last token is not evaluated
				t.Errorf("the text is declared to reach %d positions, want 108", seq.until)
			}
			read := c.reused
			for _, n := range c.chunks {
				read += n
			}
			if !slices.Equal(seq.chunks, c.chunks) || (seq.prompt != nil) != c.generates || (r.StopReason == stopInterrupted) == c.generates {
				t.Errorf("chunks %v, prompt %v, reason %q; want %v, generated: %v", seq.chunks, seq.prompt, r.StopReason, c.chunks, c.generates)
			}
			if c.generates && (!slices.Equal(seq.earlier, ids[:read]) || !slices.Equal(seq.prompt, ids[read:])) {
				t.Errorf("generates after %v with the prompt %v, want them to part at %d", seq.earlier, seq.prompt, read)
			}
		})
	}
}
