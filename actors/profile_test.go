package actors_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// profiled opens a model with a profile, holds a conversation and closes. It returns the text, the
// bytes that were read for a warm start before the conversation, and the log.
func profiled(t *testing.T, model, path string, warm bool) (ids []int32, warmBytes int64, text string) {
	t.Helper()
	var log testenv.Log
	// too few slots for all experts, or they would be filled without a profile, too
	e, err := actors.Open(context.Background(), actors.Config{
		Model: model, Device: device(t, 2), ExpertIO: actors.ExpertIOBuffered, Profile: path, Logger: log.Logger(), ExpertMemory: 1 << 17, WaveSlots: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); warm && warmBytes == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		warmBytes = bytesWarm(t, e)
	}
	if !warm {
		warmBytes = bytesWarm(t, e)
	}
	s := sequence(t, e)
	if ids, err = greedy(s, prompt(1, 20, 320), 10); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return ids, warmBytes, log.String()
}

func bytesWarm(t *testing.T, e *actors.Engine) (n int64) {
	t.Helper()
	st, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range st.Layers {
		n += l.BytesWarm
	}
	return n
}

// TestProfile opens a model again with the profile that the run before has left: it starts to read
// before anybody asks, and writes the same text. A profile that is damaged, or another model's, or
// that cannot be written, is worth a line in the log.
func TestProfile(t *testing.T) {
	model, other := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	path := filepath.Join(t.TempDir(), "folder", "model.uses")
	want, warm, text := profiled(t, model, path, false)
	if warm != 0 || strings.Contains(text, "WARN") {
		t.Errorf("without a profile %d bytes were read for a warm start, log: %s", warm, text)
	}
	again, warm, text := profiled(t, model, path, true)
	if warm == 0 || strings.Contains(text, "WARN") || !slices.Equal(again, want) {
		t.Errorf("with a profile %d bytes were read for a warm start, text %v, want %v, log: %s", warm, again, want, text)
	}
	if _, warm, text = profiled(t, other, path, false); warm != 0 || !strings.Contains(text, "another model") {
		t.Errorf("with another model's profile %d bytes were read for a warm start, log: %s", warm, text)
	}
	if err := os.WriteFile(path, []byte("MFXUSES1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, warm, text = profiled(t, model, path, false); warm != 0 || !strings.Contains(text, "truncated") || !slices.Equal(again, want) {
		t.Errorf("with a damaged profile %d bytes were read for a warm start, text %v, want %v, log: %s", warm, again, want, text)
	}
	if _, warm, text = profiled(t, model, path, true); warm == 0 || strings.Contains(text, "WARN") {
		t.Errorf("the damaged profile was not replaced: %d bytes, log: %s", warm, text)
	}
	below := filepath.Join(path, "no", "folder")
	if again, _, text = profiled(t, model, below, false); !strings.Contains(text, "not kept for the next run") || !slices.Equal(again, want) {
		t.Errorf("with a profile that cannot be written: text %v, want %v, log: %s", again, want, text)
	}
}

// A profile that cannot be named says which settings are concerned.
func TestProfilePathError(t *testing.T) {
	_, err := actors.ProfilePath(t.TempDir(), actors.Config{Model: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "Config.Profile") || !strings.Contains(err.Error(), "Config.Model") {
		t.Errorf("got %v", err)
	}
}
