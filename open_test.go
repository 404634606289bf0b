package moeflux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, nil)
	checkpoint := filepath.Join(dir, "checkpoint")
	write(t, filepath.Join(checkpoint, "config.json"), readDemo(t, "config.json"))
	odd := filepath.Join(dir, "odd")
	write(t, filepath.Join(odd, "config.json"), []byte(`{"model_type": "gpt_3"}`))
	textless := withGeneration(t, "")
	if err := os.Remove(filepath.Join(textless, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	packed := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for _, c := range []struct {
		name, dir string
		o         Options
		as        any
		want      string
	}{
		{"nothing", filepath.Join(dir, "none"), Options{}, new(*NotModelError), "does not exist"},
		{"a file", file, Options{}, new(*NotModelError), "is a file"},
		{"an empty folder", t.TempDir(), Options{}, new(*NotModelError), "holds no model"},
		{"a checkpoint", checkpoint, Options{}, new(*NotModelError), "convert " + checkpoint},
		{"a kind that is not known", odd, Options{}, new(*UnknownArchError), "convert " + odd},
		{"no tokenizer", textless, Options{}, new(*NoTokenizerError), "Options.TokensOnly"},
		{"no such device", packed, Options{Device: "abacus"}, new(*DeviceError), "abacus"},
		{"no memory for a text", packed, Options{Config: Config{Context: 128, StateMemory: 1}}, new(*ContextMemoryError), "Config.StateMemory"},
		{"a wrong setting", packed, Options{Config: Config{PromptShare: 3}}, new(error), "Config.PromptShare"},
	} {
		m, err := Open(t.Context(), c.dir, c.o)
		if err == nil || !errors.As(err, c.as) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "--") {
			t.Errorf("%s: %T %v, want %T with %q and no flag", c.name, err, err, c.as, c.want)
		}
		if m != nil {
			t.Errorf("%s: opened", c.name)
		}
	}
	m, err := Open(t.Context(), textless, Options{TokensOnly: true, Device: "host"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), Request{Prompt: "x"}).Wait(); !errors.Is(err, errTokensOnly) || m.Tokenizer() != nil {
		t.Errorf("text of a model for tokens: %v", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := m.Engine().NewSequence(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed model: %v", err)
	}
}

func readDemo(t *testing.T, name string) []byte {
	t.Helper()
	f, err := demo.Files().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, info.Size())
	if _, err := f.Read(raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// A device of the caller's stays open when the model is closed.
func TestOwnDevice(t *testing.T) {
	d, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := openDemo(t, Options{Config: Config{Device: d}})
		if got := mustCollect(t, m.Generate(t.Context(), Request{Prompt: "if err != nil {\n", MaxTokens: 5, Sampling: greedy})); !strings.Contains(got.text, "return") {
			t.Errorf("%q", got.text)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// The environment chooses the processor's kernels, as it does for the command.
func TestKernelsOfTheEnvironment(t *testing.T) {
	for _, want := range host.Variants() {
		t.Setenv("MOEFLUX_CPU", want)
		if m := openDemo(t, Options{Threads: 1}); !strings.HasPrefix(m.Info().Device, "host (1 thread, "+want) {
			t.Errorf("MOEFLUX_CPU=%s: %q", want, m.Info().Device)
		}
	}
	t.Setenv("MOEFLUX_CPU", "abacus")
	dir, err := DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{Device: "host"}); !errors.As(err, new(*DeviceError)) {
		t.Errorf("kernels that nobody has: %v", err)
	}
}
