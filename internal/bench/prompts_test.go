package bench

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// chainModel opens a small synthetic model.
func chainModel(t *testing.T) (*Model, *synth.Model) {
	t.Helper()
	shape, err := synth.Named("qwen3-30b-a3b")
	if err != nil {
		t.Fatal(err)
	}
	s, err := synth.New(synth.Options{Shape: shape, Layers: 1, Vocab: 600, Experts: 12, Seed: 1, Route: synth.Mild})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := s.Write(t.Context(), dir, func(synth.Progress) {}); err != nil {
		t.Fatal(err)
	}
	dev, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 26 << 20, Context: 128}
	e, err := actors.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close(context.Background())
		_ = dev.Close()
	})
	span := func(ctx context.Context, _ string) (context.Context, func()) { return ctx, func() {} }
	return &Model{Config: cfg, Engine: e, Span: span}, s
}

// TestPromptsOfTheChain has each prompt follow the previous prompt and its decoded text, and a run
// that evaluates the prompt and every token that it decodes.
func TestPromptsOfTheChain(t *testing.T) {
	m, s := chainModel(t)
	p, err := newPrompts(m, 6)
	if err != nil {
		t.Fatal(err)
	}
	all := s.Chain(60)
	for i, got := range p.of(3, 2, 4) {
		from := 6 * (3 + i)
		if want := all[from : from+4]; !slices.Equal(got, want) {
			t.Errorf("prompt %d: %d, want %d", 3+i, got, want)
		}
	}
	b, err := newRunner(t.Context(), &Host{Now: time.Now}, m, &Setting{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if _, err := b.run(t.Context(), [][]int32{all[:4]}, 2); err != nil || b.texts[0].Len() != 6 || b.texts[1].Len() != 0 {
		t.Errorf("a run of 4 and 2 tokens leaves %d and %d positions, %v; want 6 and 0", b.texts[0].Len(), b.texts[1].Len(), err)
	}
}
