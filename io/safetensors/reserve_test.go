package safetensors

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/mapfault"
)

// A file that is described before it is there has the tensors of the file, whose views can be read
// while it is attached.
func TestReserve(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	if err := WriteFile(there, sample(), map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	whole, err := Open(there)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	content, err := os.ReadFile(there)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "later")
	f, err := Reserve(path, whole.Header(), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	a, ok := f.Tensor("a")
	readA := func() error { return mapfault.Guard(func() error { _ = bytes.Clone(a.Data); return nil }) }
	if !ok || len(a.Data) != 16 || len(f.Names()) != len(whole.Names()) || f.Metadata()["a"] != "b" {
		t.Fatalf("tensor %+v, names %q, metadata %v", a, f.Names(), f.Metadata())
	}
	var fault *mapfault.Fault
	for range 2 {
		if err := readA(); !errors.As(err, &fault) {
			t.Errorf("read while detached: %v, want a fault", err)
		}
		if err := f.Attach(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("attached without a file: %v", err)
		}
		put(t, filepath.Dir(path), "later", content)
		if err := f.Attach(); err != nil {
			t.Fatal(err)
		}
		for _, name := range whole.Names() {
			got, _ := f.Tensor(name)
			want, _ := whole.Tensor(name)
			if !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%q: got %v, want %v", name, got.Data, want.Data)
			}
		}
		f.Drop(a.Data)
		if a.Data[0] != 1 {
			t.Error("the view changed after Drop")
		}
		if err := errors.Join(f.Detach(), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := f.Attach(); err == nil {
		t.Error("attached after Close")
	}
	if err := errors.Join(whole.Attach()); err == nil {
		t.Error("attached a file that Open opened")
	}
}

// What arrives must be what was announced.
func TestAttachRefuses(t *testing.T) {
	header := []byte(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`)
	good := image(string(header), make([]byte, 4))
	other := bytes.Replace(good, []byte(`"a"`), []byte(`"b"`), 1)
	longer := bytes.Clone(good)
	longer[0]++
	for name, content := range map[string][]byte{"shorter": good[:len(good)-1], "longer": append(bytes.Clone(good), 0), "another header": other, "another length": longer} {
		dir := t.TempDir()
		f, err := Reserve(filepath.Join(dir, "x"), header, int64(len(good)))
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, "x", content)
		var bad *FormatError
		if err := f.Attach(); !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a *FormatError", name, err)
		}
		put(t, dir, "x", good)
		if err := errors.Join(f.Attach(), f.Close()); err != nil {
			t.Errorf("the announced file after %s: %v", name, err)
		}
	}
	for _, size := range []int64{-1, 0, int64(len(good)) - 1, int64(len(good)) + 1} {
		var bad *FormatError
		if f, err := Reserve("x", header, size); f != nil || !errors.As(err, &bad) {
			t.Errorf("%d bytes: got %v, want a *FormatError", size, err)
		}
	}
}
