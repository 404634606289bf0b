package convert_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
)

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, path), v); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every change of every file is found.
func TestVerify(t *testing.T) {
	dir := mustConvert(t, fixtures.Dir(t, fixtures.Qwen35MoEBF16), convert.Options{})
	ctx := context.Background()
	if err := convert.Verify(ctx, dir); err != nil {
		t.Fatalf("untouched: %v", err)
	}
	var sums convert.Checksums
	readJSON(t, filepath.Join(dir, convert.ChecksumsName), &sums)
	files := tree(t, dir)
	if len(files) != len(sums.Files)+1 {
		t.Errorf("%d files, %d with checksums", len(files), len(sums.Files))
	}
	for name, content := range files {
		if name == convert.ChecksumsName {
			continue
		}
		path := filepath.Join(dir, name)
		raw := []byte(content)
		damaged := func(what string) {
			t.Helper()
			var bad *convert.ChecksumError
			if err := convert.Verify(ctx, dir); !errors.As(err, &bad) || bad.File != filepath.ToSlash(name) {
				t.Errorf("%s %s: got %v, want a *ChecksumError", name, what, err)
			}
		}
		raw[len(raw)/2] ^= 1
		writeFile(t, path, raw)
		damaged("with one bit changed")
		raw[len(raw)/2] ^= 1
		writeFile(t, path, raw[:len(raw)-1])
		damaged("short by one byte")
		writeFile(t, path, append(raw, 0))
		damaged("with a byte more")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		var missing *convert.MissingError
		if err := convert.Verify(ctx, dir); !errors.As(err, &missing) || !errors.Is(err, fs.ErrNotExist) || missing.File != filepath.ToSlash(name) {
			t.Errorf("%s removed: got %v, want a *MissingError", name, err)
		}
		writeFile(t, path, raw[:len(raw):len(raw)])
	}
	if err := convert.Verify(ctx, dir); err != nil {
		t.Errorf("all put back: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := convert.Verify(cancelled, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestVerifyManifest(t *testing.T) {
	dir := t.TempDir()
	var missing *convert.MissingError
	if err := convert.Verify(context.Background(), dir); !errors.As(err, &missing) {
		t.Errorf("no checksums: got %v", err)
	}
	for _, raw := range []string{"", "[]", "{}", `{"format":"other"}`, `{"format":"moeflux-actor pack 1"}`,
		`{"format":"moeflux-actor pack 1","files":{"config.json":{"size":1}}}`,
		`{"format":"moeflux-actor pack 1","files":{"config.json":{},"model_weights.bin":{},"model_weights.json":{},"../x":{}}}`,
		`{"format":"moeflux-actor pack 1","files":{"config.json":{},"model_weights.bin":{},"model_weights.json":{},"/etc/passwd":{}}}`} {
		writeFile(t, filepath.Join(dir, convert.ChecksumsName), []byte(raw))
		if err := convert.Verify(context.Background(), dir); err == nil {
			t.Errorf("checksums %q: no error", raw)
		}
	}
}
