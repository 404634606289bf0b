package modelfiles

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// A GGUF file and the directory of the same checkpoint are opened by the same calls, and say the
// same.
func TestSameModel(t *testing.T) {
	file, dir := fixtures.GGUF(t, fixtures.MiniMaxM2BF16), fixtures.Packed(t, fixtures.MiniMaxM2BF16, 0)
	a, err1 := Config(file)
	b, err2 := Config(dir)
	if err1 != nil || err2 != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, %v\n%+v, %v", a, err1, b, err2)
	}
	for _, path := range []string{file, dir} {
		if err := Check(path); err != nil {
			t.Error(err)
		}
		f, err := Open(Where{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		x, err := Experts(Where{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if f.Weights.Made() != (path == file) || f.Experts.Spread() != (path == file) || !slices.Equal(x.Layers(), f.Experts.Layers()) {
			t.Errorf("%s: made %v, spread %v", path, f.Weights.Made(), f.Experts.Spread())
		}
		if err := errors.Join(x.Close(), f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestText(t *testing.T) {
	file, dir := fixtures.GGUF(t, fixtures.Qwen35MoEBF16), fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	var sources []string
	for _, path := range []string{file, dir} {
		tok, err := Tokenizer(path)
		if err != nil || tok == nil {
			t.Fatalf("%s: %v", path, err)
		}
		ids, err := tok.Encode("<|im_start|>a", false)
		if err != nil || len(ids) != 2 || !tok.IsSpecial(ids[0]) {
			t.Errorf("%s: %v, %v", path, ids, err)
		}
		template, err := Template(path, chat.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, template.Source())
	}
	if sources[0] != sources[1] {
		t.Error("the templates differ")
	}
	if g, err := Generation(file); g != nil || err != nil {
		t.Errorf("generation %v, %v", g, err)
	}
	if tok, err := Tokenizer(fixtures.Packed(t, fixtures.MiniMaxM2BF16, 0)); tok != nil || err != nil {
		t.Errorf("a directory without a tokenizer: %v, %v", tok, err)
	}
	if _, err := Tokenizer(fixtures.GGUF(t, fixtures.MiniMaxM2BF16)); err == nil || !strings.Contains(err.Error(), "tokens is missing") {
		t.Errorf("a file without a tokenizer: %v", err)
	}
	if _, err := Template(fixtures.GGUF(t, fixtures.MiniMaxM2BF16), chat.Options{}); !errors.As(err, new(*chat.NoTemplateError)) {
		t.Errorf("a file without a template: %v", err)
	}
}

// What is no model is told apart.
func TestNone(t *testing.T) {
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken.gguf")
	if err := os.WriteFile(broken, []byte("GGUF\x03"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{empty: "holds no model", filepath.Join(empty, "none"): "does not exist", broken: "cut short or damaged"} {
		err := Check(path)
		if err == nil {
			_, err = Config(path)
			err = Explain(path, err)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
		if _, err := Open(Where{Path: path}); err == nil {
			t.Errorf("%s opens", path)
		}
	}
	if err := Check(filepath.Join(empty, "none")); !errors.As(err, new(*weights.NotModelError)) {
		t.Errorf("got %v", err)
	}
}
