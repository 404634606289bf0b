//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestCache(t *testing.T) {
	c := cache{filepath.Join(t.TempDir(), "a", "b")}
	k := key("13.0", "source", options("sm_90"))
	if c.load(k) != nil {
		t.Error("an empty cache has something")
	}
	image := []byte("machine code")
	for range 2 {
		if err := c.store(k, image); err != nil {
			t.Fatal(err)
		}
		if got := c.load(k); !bytes.Equal(got, image) {
			t.Errorf("the cache gives %q", got)
		}
	}
	if files, err := os.ReadDir(c.dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v; want one", len(files), err)
	}
	whole, err := os.ReadFile(c.path(k))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit of the image": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"a bit of the hash":  func(b []byte) []byte { b[0] ^= 1; return b },
		"cut":                func(b []byte) []byte { return b[:len(b)-1] },
		"short":              func(b []byte) []byte { return b[:5] },
		"empty":              func(b []byte) []byte { return nil },
	} {
		if err := os.WriteFile(c.path(k), damage(bytes.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.load(k); got != nil {
			t.Errorf("%s: the cache gives %q", name, got)
		}
	}
	none := cache{}
	if err := none.store(k, image); err != nil || none.load(k) != nil {
		t.Errorf("no cache: %v", err)
	}
	file := cache{c.path(k)}
	if err := file.store(k, image); err == nil {
		t.Error("a file serves as folder")
	}
}

// Everything that the code depends on is in the key.
func TestCacheKey(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range []string{
		key("13.0", "source", options("sm_90")), key("12.8", "source", options("sm_90")), key("13.0", "sourc", options("sm_90")),
		key("13.0", "source", options("sm_89")), key("13.0", "source", nil), key("13.0s", "ource", options("sm_90")),
	} {
		if seen[k] {
			t.Errorf("key %s comes twice", k)
		}
		seen[k] = true
	}
}
