package gguf

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// open opens a model of testdata, which make_gguf.py wrote.
func open(t *testing.T, name string) *Model {
	t.Helper()
	m, err := OpenModel(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// plain is a value as make_gguf.py has it.
func plain(v Value) any {
	switch v.Type {
	case String:
		s, _ := v.Text()
		return s
	case Bool:
		b, _ := v.Bool()
		return b
	case Float32, Float64:
		f, _ := v.Float()
		return f
	case Array:
		out := []any{}
		for e := range v.Elements() {
			out = append(out, plain(e))
		}
		return out
	case Uint64:
		n, _ := v.Uint()
		return n
	}
	n, ok := v.Int()
	if !ok {
		return nil
	}
	return n
}

func equal(a, b any) bool {
	x, isArray := a.([]any)
	y, both := b.([]any)
	if isArray && both {
		return slices.EqualFunc(x, y, equal)
	}
	return isArray == both && a == b
}

func TestMetadata(t *testing.T) {
	m := open(t, "types.gguf").Metadata()
	want := map[string]any{
		"general.architecture": "test",
		"a.u8":                 int64(200), "a.i8": int64(-100), "a.u16": int64(60000), "a.i16": int64(-30000),
		"a.u32": int64(4000000000), "a.i32": int64(-2000000000), "a.u64": uint64(1<<63 + 1), "a.i64": int64(math.MinInt64),
		"a.f32": float64(float32(0.1)), "a.f64": 0.1, "a.true": true, "a.false": false,
		"a.text": " spaces and äöü \n", "a.empty": "",
		"a.numbers": []any{int64(3), int64(-1), int64(2)}, "a.bools": []any{true, false},
		"a.texts": []any{"", " ", "three"}, "a.none": []any{},
		"a.nested": []any{[]any{int64(1), int64(2)}, []any{"x"}},
	}
	keys := m.Keys()
	if len(keys) != len(want) || keys[0] != "general.architecture" || keys[len(keys)-1] != "a.nested" {
		t.Errorf("keys %q", keys)
	}
	for key, w := range want {
		v, ok := m.Get(key)
		if got := plain(v); !ok || !equal(got, w) {
			t.Errorf("%s: got %v (%T), want %v (%T)", key, got, got, w, w)
		}
	}
	if v, _ := m.Get("a.u64"); v.Type != Uint64 {
		t.Errorf("a.u64 is %v", v.Type)
	} else if n, ok := v.Int(); ok {
		t.Errorf("a.u64 as int64 is %d, but it does not fit", n)
	}
	if v, _ := m.Get("a.i8"); v.Type != Int8 {
		t.Errorf("a.i8 is %v", v.Type)
	} else if n, ok := v.Uint(); ok {
		t.Errorf("a.i8 as uint64 is %d, but it is negative", n)
	}
	for _, key := range []string{"a.u8", "a.text", "a.true", "a.f32", "a.numbers", "no"} {
		_, isText := m.Text(key)
		_, isInt := m.Int(key)
		if isText != (key == "a.text") || isInt != (key == "a.u8") {
			t.Errorf("%s: text %v, whole number %v", key, isText, isInt)
		}
	}
}

func TestTensors(t *testing.T) {
	m := open(t, "types.gguf")
	raw, numbers := read(t, "types.gguf"), read(t, "types.f32")
	if f := m.Files()[0]; f.Version != 3 || f.Alignment != 32 || f.Bytes() != int64(len(raw)) || m.Bytes() != f.Bytes() {
		t.Errorf("version %d, alignment %d, %d bytes", f.Version, f.Alignment, f.Bytes())
	}
	axes := m.Tensor("axes")
	if axes == nil || !slices.Equal(axes.Shape, []int{2, 3, 5}) || axes.Elements() != 30 || axes.Type.Name != "F32" {
		t.Fatalf("axes is %+v", axes)
	}
	if !bytes.Equal(axes.Data, numbers[len(numbers)-120:]) || !bytes.Equal(axes.Data, raw[axes.OffsetBytes:][:120]) {
		t.Error("axes has other data than was written")
	}
	n := 0
	for x := range m.Tensors {
		if n++; x != m.Tensor(x.Name) || x.Part != 0 {
			t.Errorf("tensor %s of part %d is another under its name", x.Name, x.Part)
		}
		if kind := strings.ToUpper(strings.TrimSuffix(x.Name, ".weight")); x.Name != "axes" &&
			(x.Type.Name != kind || x.Elements() != 512 || !slices.Equal(x.Shape, []int{2, 256})) {
			t.Errorf("%s is %v %v of %d elements", x.Name, x.Type, x.Shape, x.Elements())
		}
	}
	if n != 17 {
		t.Errorf("%d tensors", n)
	}
}

// A model in parts is the model in one file, whichever part it is opened by.
func TestParts(t *testing.T) {
	whole := open(t, "moe-v2.gguf")
	if f := whole.Files()[0]; f.Version != 2 || f.Alignment != 64 {
		t.Errorf("version %d, alignment %d", f.Version, f.Alignment)
	}
	for _, name := range []string{"moe-00001-of-00003.gguf", "moe-00003-of-00003.gguf"} {
		m := open(t, name)
		if len(m.Files()) != 3 || len(m.Files()[0].Tensors) != 0 {
			t.Fatalf("%d parts, the first with %d tensors", len(m.Files()), len(m.Files()[0].Tensors))
		}
		for _, key := range whole.Metadata().Keys() {
			a, _ := whole.Metadata().Get(key)
			b, _ := m.Metadata().Get(key)
			if !equal(plain(a), plain(b)) {
				t.Errorf("%s is %v, in parts %v", key, plain(a), plain(b))
			}
		}
		n := 0
		for x := range m.Tensors {
			n++
			same := whole.Tensor(x.Name)
			if same == nil || !bytes.Equal(same.Data, x.Data) || !slices.Equal(same.Shape, x.Shape) || same.Type != x.Type {
				t.Errorf("%s is another tensor in parts", x.Name)
			}
			f := m.Files()[x.Part]
			if raw := read(t, filepath.Base(f.Path())); !bytes.Equal(raw[x.OffsetBytes:][:len(x.Data)], x.Data) {
				t.Errorf("%s does not lie at byte %d of part %d", x.Name, x.OffsetBytes, x.Part)
			}
		}
		if n != len(whole.byName) {
			t.Errorf("%d tensors in parts, %d in one file", n, len(whole.byName))
		}
	}
}

// Parts that are missing, renamed, exchanged or doubled are errors that say which.
func TestWrongParts(t *testing.T) {
	part := func(n string) string { return "moe-0000" + n + "-of-00003.gguf" }
	for name, c := range map[string]struct {
		files map[string]string // name to source
		open  string
		want  string
	}{
		"missing":   {map[string]string{part("2"): part("2")}, part("2"), "missing: 1, 3"},
		"renamed":   {map[string]string{"model.gguf": part("2")}, "model.gguf", "-00001-of-00003.gguf"},
		"exchanged": {map[string]string{part("1"): part("1"), part("2"): part("3"), part("3"): part("2")}, part("1"), "part 3 of 3"},
		"alone":     {map[string]string{part("1"): part("1"), part("2"): part("2"), part("3"): "moe-v2.gguf"}, part("1"), "part 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for to, from := range c.files {
				if err := os.WriteFile(filepath.Join(dir, to), read(t, from), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := OpenModel(filepath.Join(dir, c.open))
			if !errors.Is(err, ErrParts) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		empty:                           ErrTruncated,
		dir:                             ErrNotGGUF,
		filepath.Join(dir, "none.gguf"): os.ErrNotExist,
		"testdata/make_gguf.py":         ErrNotGGUF,
		"testdata/big-endian.gguf":      ErrBigEndian,
	} {
		if _, err := OpenModel(path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

func TestIsGGUF(t *testing.T) {
	for s, want := range map[string]bool{"GGUF\x03": true, "FUGG": true, "GGU": false, "": false, "PK\x03\x04": false} {
		if IsGGUF([]byte(s)) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
}
