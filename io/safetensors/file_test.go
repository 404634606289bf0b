package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// image returns a file with this header and data, and the true length of the header.
func image(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func put(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func sample() []Tensor {
	return []Tensor{
		{Name: "a", DType: F32, Shape: []int{2, 2}, Data: bytes.Repeat([]byte{1}, 16)},
		{Name: "b.weight", DType: BF16, Shape: []int{3}, Data: []byte{1, 2, 3, 4, 5, 6}},
		{Name: "empty", DType: U32, Shape: []int{0, 1 << 40}},
		{Name: "scalar \"é", DType: "I64", Shape: nil, Data: bytes.Repeat([]byte{9}, 8)},
		{Name: "half bytes", DType: "F4", Shape: []int{4}, Data: []byte{1, 2}},
	}
}

func TestWriteOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	want := sample()
	metadata := map[string]string{"format": "test", "note": "ä\n"}
	if err := WriteFile(path, want, metadata); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(f.Metadata(), metadata) {
		t.Errorf("metadata: got %v, want %v", f.Metadata(), metadata)
	}
	var names []string
	for _, w := range want {
		names = append(names, w.Name)
		got, ok := f.Tensor(w.Name)
		if !ok || got.DType != w.DType || len(got.Shape) != len(w.Shape) || !slices.Equal(got.Shape, w.Shape) || !bytes.Equal(got.Data, w.Data) {
			t.Errorf("%q: got %v %v, want %v", w.Name, got, ok, w)
		}
	}
	if got := f.Names(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(names))) {
		t.Errorf("names: got %q, want %q", got, names)
	}
	a, _ := f.Tensor("a")
	f.Drop(a.Data)
	f.Drop([]byte("elsewhere"))
	if a.Data[15] != 1 {
		t.Error("the view changed after Drop")
	}
	if _, ok := f.Tensor("c"); ok {
		t.Error("found a tensor that is not there")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestWriteRefuses(t *testing.T) {
	good := Tensor{Name: "a", DType: U8, Shape: []int{2}, Data: []byte{1, 2}}
	for name, tensors := range map[string][]Tensor{
		"twice":    {good, good},
		"reserved": {{Name: metadataKey, DType: U8, Shape: []int{2}, Data: []byte{1, 2}}},
		"short":    {{Name: "a", DType: U8, Shape: []int{3}, Data: []byte{1, 2}}},
		"dtype":    {{Name: "a", DType: "X", Shape: []int{2}, Data: []byte{1, 2}}},
		"negative": {{Name: "a", DType: U8, Shape: []int{-2}, Data: []byte{1, 2}}},
	} {
		path := filepath.Join(t.TempDir(), "x")
		err := WriteFile(path, tensors, nil)
		var bad *FormatError
		if !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a *FormatError", name, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file was written", name)
		}
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "no", "dir"), []Tensor{good}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: got %v", err)
	}
}

// Every way in which a file can be invalid, and the tensor that the error names.
func TestOpenRefuses(t *testing.T) {
	data := make([]byte, 16)
	one := `{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`
	long := binary.LittleEndian.AppendUint64(nil, 200_000_000)
	huge := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	for _, c := range []struct {
		name    string
		content []byte
		tensor  string
	}{
		{"empty", nil, ""},
		{"seven bytes", make([]byte, 7), ""},
		{"only a length", binary.LittleEndian.AppendUint64(nil, 1), ""},
		{"no header", binary.LittleEndian.AppendUint64(nil, 0), ""},
		{"header beyond the file", append(binary.LittleEndian.AppendUint64(nil, 1000), one...), ""},
		{"header of 200 MB", append(long, one...), ""},
		{"header of 2^64-1", append(huge, one...), ""},
		{"not JSON", image("not json", nil), ""},
		{"a list", image("[]", nil), ""},
		{"null", image("null", nil), ""},
		{"cut JSON", image(one[:len(one)-1], data), ""},
		{"two objects", image(one+"{}", data), ""},
		{"deep", image(`{"a":`+strings.Repeat("[", 1<<20), nil), "a"},
		{"deep metadata", image(`{"__metadata__":`+strings.Repeat(`{"a":`, 1<<20), nil), ""},
		{"metadata no strings", image(`{"__metadata__":{"a":1}}`, nil), ""},
		{"data too short", image(one, data[:15]), "a"},
		{"data too long", image(one, append(data, 0)), ""},
		{"description no object", image(`{"a":3}`, nil), "a"},
		{"no dtype", image(`{"a":{"shape":[4],"data_offsets":[0,16]}}`, data), "a"},
		{"no shape", image(`{"a":{"dtype":"F32","data_offsets":[0,16]}}`, data), "a"},
		{"no offsets", image(`{"a":{"dtype":"F32","shape":[4]}}`, data), "a"},
		{"one offset", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0]}}`, data), "a"},
		{"three offsets", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16,16]}}`, data), "a"},
		{"negative offset", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[-16,0]}}`, data), "a"},
		{"backwards", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}}`, data), "a"},
		{"offset beyond 63 bits", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,18446744073709551616]}}`, data), "a"},
		{"fractional offset", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16.5]}}`, data), "a"},
		{"outside", image(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[4,20]}}`, data), "a"},
		{"size", image(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}}`, data), "a"},
		{"negative shape", image(`{"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}`, data), "a"},
		{"two negative axes", image(`{"a":{"dtype":"F32","shape":[-2,-2],"data_offsets":[0,16]}}`, data), "a"},
		{"overflowing shape", image(`{"a":{"dtype":"F32","shape":[4611686018427387904,4,4611686018427387904],"data_offsets":[0,16]}}`, data), "a"},
		{"shape that wraps to the size", image(`{"a":{"dtype":"F32","shape":[4611686018427387908],"data_offsets":[0,16]}}`, data), "a"},
		{"dtype", image(`{"a":{"dtype":"F33","shape":[4],"data_offsets":[0,16]}}`, data), "a"},
		{"dtype no string", image(`{"a":{"dtype":4,"shape":[4],"data_offsets":[0,16]}}`, data), "a"},
		{"half a byte", image(`{"a":{"dtype":"F4","shape":[31],"data_offsets":[0,16]}}`, data), "a"},
		{"twice", image(`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}}`, data), "a"},
		{"overlap", image(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},"b":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}}`, data), "b"},
		{"same span", image(`{"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[16],"data_offsets":[0,16]}}`, data), "b"},
		{"hole", image(`{"a":{"dtype":"U8","shape":[7],"data_offsets":[0,7]},"b":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}}`, data), "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := put(t, t.TempDir(), "x", c.content)
			f, err := Open(path)
			var bad *FormatError
			if f != nil || !errors.As(err, &bad) {
				t.Fatalf("got %v, %v, want a *FormatError", f, err)
			}
			if bad.Path != path || bad.Tensor != c.tensor {
				t.Errorf("got path %q tensor %q, want %q and %q: %v", bad.Path, bad.Tensor, path, c.tensor, err)
			}
		})
	}
	dir := t.TempDir()
	// A header that fits the file but not memory: the file is mostly a hole.
	big := put(t, dir, "big", append(long, one...))
	if err := os.Truncate(big, 300_000_000); err != nil {
		t.Fatal(err)
	}
	var bad *FormatError
	if _, err := Open(big); !errors.As(err, &bad) || !strings.Contains(bad.Why, "at most") {
		t.Errorf("header of 200 MB in a file of 300: got %v", err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if f, err := Open(put(t, dir, "ok", image(one+"  ", data))); err != nil {
		t.Errorf("the sound file that the others were made of: %v", err)
	} else {
		f.Close()
	}
}

func TestFloats(t *testing.T) {
	want := []float32{1, -2, 0.5}
	var f32, bf16 []byte
	for _, v := range want {
		f32 = binary.LittleEndian.AppendUint32(f32, math.Float32bits(v))
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16(math.Float32bits(v)>>16))
	}
	for _, x := range []Tensor{
		{DType: F32, Data: f32}, {DType: BF16, Data: bf16}, {DType: F16, Data: []byte{0, 0x3c, 0, 0xc0, 0, 0x38}},
	} {
		got := make([]float32, 2)
		if err := x.Floats(got, 1); err != nil || got[0] != want[1] || got[1] != want[2] {
			t.Errorf("%s: got %v, %v, want %v", x.DType, got, err, want[1:])
		}
		for _, first := range []int{2, 4, -1, math.MaxInt} {
			if err := x.Floats(got, first); err == nil {
				t.Errorf("%s: 2 elements from %d of 3: no error", x.DType, first)
			}
		}
	}
	if err := (Tensor{DType: U32, Data: f32}).Floats(make([]float32, 1), 0); err == nil {
		t.Error("U32: no error")
	}
}

func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	shard := func(name string, tensors ...string) {
		var list []Tensor
		for _, n := range tensors {
			list = append(list, Tensor{Name: n, DType: U8, Shape: []int{len(n)}, Data: []byte(n)})
		}
		if err := WriteFile(filepath.Join(dir, name), list, nil); err != nil {
			t.Fatal(err)
		}
	}
	index := func(weightMap map[string]string) {
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": weightMap})
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, IndexName, raw)
	}
	shard("model-1.safetensors", "a", "b", "stray")
	shard("model-2.safetensors", "c")
	shard(singleName, "single")

	c, err := OpenDir(dir)
	if err != nil {
		t.Fatalf("single file: %v", err)
	}
	if got := c.Names(); !slices.Equal(got, []string{"single"}) {
		t.Errorf("single file: got %q", got)
	}
	c.Close()

	index(map[string]string{"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"})
	if c, err = OpenDir(dir); err != nil {
		t.Fatalf("shards: %v", err)
	}
	if got := c.Names(); !slices.Equal(got, []string{"a", "b", "c"}) || len(c.Files()) != 2 {
		t.Errorf("shards: got %q from %d files", got, len(c.Files()))
	}
	if x, ok := c.Tensor("c"); !ok || string(x.Data) != "c" {
		t.Errorf("shards: c is %v, %v", x, ok)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	index(map[string]string{"a": "model-1.safetensors", "x": "model-1.safetensors", "c": "model-3.safetensors", "d": "model-4.safetensors"})
	_, err = OpenDir(dir)
	for _, want := range []string{`"x"`, "model-3.safetensors", "model-4.safetensors"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing shards and tensor: %s is not in: %v", want, err)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing shards: %v is no fs.ErrNotExist", err)
	}
	for _, escape := range []string{"../model-1.safetensors", "/etc/passwd", "sub/model.safetensors", "..", ".", "", `a\b`, "a\x00"} {
		index(map[string]string{"a": escape})
		var bad *FormatError
		if _, err := OpenDir(dir); !errors.As(err, &bad) || bad.Tensor != "a" {
			t.Errorf("shard %q: got %v, want a *FormatError", escape, err)
		}
	}
	for _, raw := range []string{"", "[]", "{}", `{"weight_map":{}}`, `{"weight_map":{"a":1}}`} {
		put(t, dir, IndexName, []byte(raw))
		var bad *FormatError
		if _, err := OpenDir(dir); !errors.As(err, &bad) {
			t.Errorf("index %q: got %v, want a *FormatError", raw, err)
		}
	}
	if _, err := OpenDir(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty directory: got %v", err)
	}
}

// Whatever the header says, every tensor that is returned is valid.
func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`), 16)
	f.Add([]byte(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,16]}}  `), 16)
	f.Add([]byte(`{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"b":{"dtype":"F4","shape":[0],"data_offsets":[1,1]}}`), 1)
	f.Add([]byte(`{"a":{"dtype":"F64","shape":[4611686018427387904,8],"data_offsets":[0,0]}}`), 0)
	f.Add([]byte(`{"a":[[[[`), 3)
	f.Fuzz(func(t *testing.T, header []byte, dataLen int) {
		if dataLen < 0 {
			return
		}
		entries, _, err := parseHeader("x", header, dataLen)
		if err != nil {
			var bad *FormatError
			if !errors.As(err, &bad) {
				t.Errorf("got %T: %v", err, err)
			}
			return
		}
		at := 0
		for _, e := range entries {
			n, err := e.dtype.Bytes(e.shape)
			if err != nil || e.begin != at || e.end-e.begin != n {
				t.Errorf("entry %+v takes %d bytes (%v), the one before ends at %d", e, n, err, at)
			}
			at = e.end
		}
		if at != dataLen {
			t.Errorf("entries end at %d of %d", at, dataLen)
		}
	})
}
