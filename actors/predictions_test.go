package actors_test

import (
	"context"
	"errors"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestPredictions compares what is predicted of each layer with what the row before picked, and
// wants nothing after the predictions were forgotten.
func TestPredictions(t *testing.T) {
	ctx := context.Background()
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered})
	s := sequence(t, e)
	layers, k := e.Model().MoELayers(), e.Info().TopK
	none := func(when string) {
		t.Helper()
		for _, layer := range layers {
			if p, err := s.Predictions(ctx, layer); len(p) != 0 || err != nil {
				t.Errorf("%s layer %d has predictions %v, %v", when, layer, p, err)
			}
		}
	}
	none("before the first row")
	r, err := s.EvalChunk(ctx, actors.Chunk{Tokens: prompt(1, 9, 512), Routing: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, layer := range layers {
		picks := r.Picks[(i*9+8)*k : (i*9+9)*k]
		p, err := s.Predictions(ctx, layer)
		if err != nil || len(p) != k {
			t.Fatalf("layer %d: %v, %v, want %d experts", layer, p, err, k)
		}
		for j := range p {
			if p[j].Expert != picks[j] || p[j].Chance <= 0 || p[j].Chance > 1 {
				t.Errorf("layer %d predicts %v, the row before picked %v", layer, p, picks)
				break
			}
		}
	}
	if err := e.ForgetExperts(ctx); err != nil {
		t.Fatal(err)
	}
	none("after forgetting")
	var layer *stages.LayerError
	if _, err := s.Predictions(ctx, 99); !errors.As(err, &layer) || layer.Layer != 99 {
		t.Errorf("layer 99: %v, want a LayerError", err)
	}
}
