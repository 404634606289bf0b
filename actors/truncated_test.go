package actors_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/mapfault"
)

// TestTruncatedWhileOpen cuts a mapped file of an open model short: the step fails with the file's
// name and without a stack, whether experts or all other weights are gone.
func TestTruncatedWhileOpen(t *testing.T) {
	for _, pattern := range []string{"packed_experts/layer_01.bin", "model_weights.bin"} {
		t.Run(pattern, func(t *testing.T) {
			for _, threads := range []int{1, 2} {
				dir := copyModel(t, fixtures.Qwen35MoEBF16)
				e := open(t, actors.Config{Model: dir, Device: device(t, threads), ExpertIO: actors.ExpertIOMmap})
				s, p := sequence(t, e), prompt(1, 9, e.Model().VocabSize)
				if _, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: p}); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, pattern)
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
				_, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: p[:1]})
				var lost *mapfault.FileError
				if !errors.As(err, &lost) || filepath.Base(lost.Path) != filepath.Base(path) ||
					!strings.Contains(err.Error(), "truncated") || strings.Contains(err.Error(), "goroutine") {
					t.Errorf("%d threads: %v, want a *mapfault.FileError of %s", threads, err, path)
				}
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
