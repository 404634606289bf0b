package fingerprint

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
)

// copied returns a copy of a packed model.
func copied(t *testing.T, of string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(of)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// change replaces the content of a file by what edit returns; a missing file is empty before.
func change(t *testing.T, path string, edit func(string) string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(edit(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func more(old string) string { return old + " " }

func mustOf(t *testing.T, dir, experts string) Fingerprint {
	t.Helper()
	f, err := Of(dir, experts)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Current() {
		t.Errorf("%v does not say which rule it follows", f)
	}
	return f
}

// otherSum is checksums.json with another checksum of a file.
func otherSum(t *testing.T, name string) func(string) string {
	return func(raw string) string {
		var c convert.Checksums
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Fatal(err)
		}
		sum := c.Files[name]
		if sum.SHA256 == "" {
			t.Fatalf("%s is not listed", name)
		}
		sum.SHA256 = strings.Repeat("0", 64)
		c.Files[name] = sum
		out, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
}

// What a model computes with counts, and nothing else in its directory.
func TestOf(t *testing.T) {
	packed := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	want := mustOf(t, packed, "")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(copied(t, packed), link); err != nil {
		t.Fatal(err)
	}
	if mustOf(t, link, "") != want {
		t.Error("a link to a copy has another fingerprint")
	}
	for _, c := range []struct {
		name, file string
		edit       func(string) string
		same       bool
	}{
		{"notes", "NOTES.txt", more, true},
		{"notes in JSON", "packed_experts/notes.json", more, true},
		{"the tokenizer", "tokenizer.json", more, true},
		{"how tokens are chosen", "generation_config.json", func(string) string { return `{"temperature": 0.5}` }, true},
		{"checksums of the tokenizer", "checksums.json", otherSum(t, "tokenizer.json"), true},
		{"the form of the checksums", "checksums.json", more, true},

		{"the configuration", "config.json", more, false},
		{"the manifest", "model_weights.json", more, false},
		{"the size of the weights", "model_weights.bin", more, false},
		{"the checksum of the weights", "checksums.json", otherSum(t, "model_weights.bin"), false},
		{"the layout of experts", "packed_experts/layout.json", more, false},
		{"the size of experts", "packed_experts/layer_01.bin", more, false},
		{"the checksums of experts", "packed_experts/records.crc32c", more, false},
		{"the options of a synthetic model", "synth.json", more, false},
	} {
		dir := copied(t, packed)
		change(t, filepath.Join(dir, filepath.FromSlash(c.file)), c.edit)
		if got := mustOf(t, dir, "") == want; got != c.same {
			t.Errorf("%s: the same fingerprint is %v, want %v", c.name, got, c.same)
		}
	}
}

// Experts elsewhere are the same model's if they are the same experts.
func TestExpertsElsewhere(t *testing.T) {
	packed := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	want := mustOf(t, packed, "")
	moved := copied(t, filepath.Join(packed, "packed_experts"))
	if mustOf(t, packed, moved) != want {
		t.Error("experts that were moved are those of another model")
	}
	change(t, filepath.Join(moved, "records.crc32c"), more)
	if mustOf(t, packed, moved) == want {
		t.Error("other experts elsewhere are the model's")
	}
	// Without checksums of their records, those of the files stand for them.
	dir := copied(t, packed)
	if err := os.Remove(filepath.Join(dir, "packed_experts", "records.crc32c")); err != nil {
		t.Fatal(err)
	}
	before := mustOf(t, dir, "")
	change(t, filepath.Join(dir, "checksums.json"), otherSum(t, "packed_experts/layer_01.bin"))
	if mustOf(t, dir, "") == before {
		t.Error("another checksum of a layer's experts does not count")
	}
}

// A directory of another program has no checksums, and other places.
func TestLegacy(t *testing.T) {
	dir := fixtures.Legacy(t, fixtures.Qwen35MoEQ4, true)
	want := mustOf(t, dir, "")
	change(t, filepath.Join(dir, "NOTES.txt"), more)
	if mustOf(t, dir, "") != want {
		t.Error("notes count")
	}
	change(t, filepath.Join(dir, "artifacts", "model_weights.json"), more)
	if mustOf(t, dir, "") == want {
		t.Error("the manifest does not count")
	}
}

func TestErrors(t *testing.T) {
	packed := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Of(missing, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing model: %v", err)
	}
	if _, err := Of(packed, missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing experts: %v", err)
	}
	if _, err := Former(missing, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing model: %v", err)
	}
	dir := copied(t, packed)
	change(t, filepath.Join(dir, "checksums.json"), func(string) string { return "{" })
	if _, err := Of(dir, ""); err == nil || !strings.Contains(err.Error(), "checksums.json") {
		t.Errorf("damaged checksums: %v", err)
	}
}

// The former rule hashed the name and size of every file, and the content of *.json.
func TestFormer(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(dir, "config.json"):                     `{"a": 1}`,
		filepath.Join(dir, "packed_experts", "layer_00.bin"):  "weights",
		filepath.Join(elsewhere, "layer_00.bin"):              "others",
		filepath.Join(dir, "packed_experts", "zz", "NOTES.t"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		change(t, path, func(string) string { return content })
	}
	text := "\"config.json\" 8\n{\"a\": 1}\"packed_experts/layer_00.bin\" 7\n\"packed_experts/zz/NOTES.t\" 0\n"
	for experts, want := range map[string]string{"": text, elsewhere: text + "experts\n\"layer_00.bin\" 6\n"} {
		got, err := Former(dir, experts)
		if err != nil || got != sha256.Sum256([]byte(want)) || got.Current() {
			t.Errorf("with experts at %q: %v, %v, want the hash of %q", experts, got, err, want)
		}
	}
}

// A GGUF file is told from others by its size and by what it says of itself, wherever it lies.
func TestGGUF(t *testing.T) {
	raw, err := os.ReadFile(fixtures.GGUF(t, fixtures.MiniMaxM2BF16))
	if err != nil {
		t.Fatal(err)
	}
	at := func(content string) Fingerprint {
		path := filepath.Join(t.TempDir(), "minimax-m2.gguf")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return mustOf(t, path, "")
	}
	want := mustOf(t, fixtures.GGUF(t, fixtures.MiniMaxM2BF16), "")
	if at(string(raw)) != want {
		t.Error("a copy has another fingerprint")
	}
	if at(strings.Replace(string(raw), "Tiny", "Tini", 1)) == want || at(string(raw)+" ") == want {
		t.Error("another file has the same fingerprint")
	}
	parts := fixtures.GGUF(t, fixtures.Qwen3MoEBF16)
	if mustOf(t, parts, "") != mustOf(t, strings.Replace(parts, "00001-of", "00003-of", 1), "") {
		t.Error("the parts of a model have several fingerprints")
	}
}
