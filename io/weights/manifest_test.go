package weights

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// good is a manifest for a data file of 256 bytes: a matrix [2, 64] of 4-bit codes, one of BF16, a
// vector.
func good() map[string]any {
	d := func(offset, size int, dtype string, shape ...int) map[string]any {
		return map[string]any{"offset": offset, "size": size, "dtype": dtype, "shape": shape}
	}
	return map[string]any{
		"q.weight": d(0, 64, "U32", 2, 8), "q.scales": d(64, 4, "BF16", 2, 1), "q.biases": d(68, 4, "BF16", 2, 1),
		"m.weight": d(128, 24, "BF16", 3, 4), "v": d(192, 16, "F32", 4),
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseManifest(t *testing.T) {
	m, err := parseManifest("x", encode(t, map[string]any{"model": "name", "num_tensors": 5, "tensors": good(), "config": map[string]int{"a": 1}}), 256)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Tensors) != 5 || m.Model != "name" || string(m.Config) != `{"a":1}` || m.Tensors["q.weight"].DType != safetensors.U32 || m.Tensors["v"].Offset != 192 {
		t.Errorf("got %+v", m)
	}
}

// Every contradiction is an error that names the tensor.
func TestParseManifestRefuses(t *testing.T) {
	for _, c := range []struct {
		name, tensor string
		change       map[string]any // keys of the tensor's descriptor
		names        string         // the tensor that is named, if another
	}{
		{name: "negative offset", tensor: "v", change: map[string]any{"offset": -4}},
		{name: "beyond the end", tensor: "v", change: map[string]any{"offset": 244}},
		{name: "far beyond the end", tensor: "v", change: map[string]any{"offset": int64(math.MaxInt64 - 7)}},
		{name: "end beyond 63 bits", tensor: "v", change: map[string]any{"size": int64(math.MaxInt64 - 3), "shape": []int{math.MaxInt64 / 4}}},
		{name: "negative size", tensor: "v", change: map[string]any{"size": -16}},
		{name: "size is not the shape's", tensor: "v", change: map[string]any{"size": 12}},
		{name: "shape overflows", tensor: "v", change: map[string]any{"shape": []int{1 << 62, 1 << 62}}},
		{name: "negative shape", tensor: "v", change: map[string]any{"shape": []int{-2, -2}}},
		{name: "unaligned", tensor: "v", change: map[string]any{"offset": 194}},
		{name: "unknown dtype", tensor: "v", change: map[string]any{"dtype": "F64"}},
		{name: "no offset", tensor: "v", change: map[string]any{"offset": nil}},
		{name: "fractional size", tensor: "v", change: map[string]any{"size": 16.5}},
		{name: "bits of no codes", tensor: "v", change: map[string]any{"bits": 4}},
		{name: "3 bits", tensor: "q.weight", change: map[string]any{"bits": 3}},
		{name: "scales of other rows", tensor: "q.scales", change: map[string]any{"shape": []int{1, 2}}, names: "q.weight"},
		{name: "scales in F16", tensor: "q.scales", change: map[string]any{"dtype": "F16"}, names: "q.weight"},
		{name: "codes with three axes", tensor: "q.weight", change: map[string]any{"shape": []int{2, 2, 4}}},
	} {
		m := good()
		maps.Copy(m[c.tensor].(map[string]any), c.change)
		want := c.names
		if want == "" {
			want = c.tensor
		}
		refuse(t, c.name, encode(t, map[string]any{"tensors": m}), want)
	}
	m := good()
	delete(m, "q.biases")
	refuse(t, "no biases", encode(t, map[string]any{"tensors": m}), "q.weight")
	m = map[string]any{"codes": good()["q.weight"]}
	refuse(t, "codes under another name", encode(t, map[string]any{"tensors": m}), "codes")
	v := `"v":{"offset":192,"size":16,"dtype":"F32","shape":[4]}`
	refuse(t, "twice", []byte(`{"tensors":{`+v+`,`+v+`}}`), "v")
	for _, raw := range []string{"", "[]", "null", "{", "{}", `{"tensors":null}`, `{"tensors":[]}`, `{"tensors":3}`, `{"tensors":{}}`, strings.Repeat(`{"tensors":`, 1<<17)} {
		refuse(t, raw[:min(len(raw), 20)], []byte(raw), "")
	}
	refuse(t, "descriptor no object", []byte(`{"tensors":{"v":[]}}`), "v")
}

func refuse(t *testing.T, name string, raw []byte, tensor string) {
	t.Helper()
	m, err := parseManifest("x", raw, 256)
	var bad *ManifestError
	if m != nil || !errors.As(err, &bad) || bad.Tensor != tensor {
		t.Errorf("%s: got %v, %v, want a *ManifestError of %q", name, m, err, tensor)
	}
}

func TestParseManifestReportsAllTogether(t *testing.T) {
	m := good()
	m["v"].(map[string]any)["size"] = 3
	m["m.weight"].(map[string]any)["dtype"] = "I8"
	_, err := parseManifest("x", encode(t, map[string]any{"tensors": m}), 256)
	if err == nil || !strings.Contains(err.Error(), `"v"`) || !strings.Contains(err.Error(), `"m.weight"`) {
		t.Errorf("got %v, want both tensors named", err)
	}
}

// arranged is a manifest of a matrix [16, 64] of 4-bit codes in panels, for a data file of 640
// bytes, and a vector.
func arranged() (tensors, panels map[string]any) {
	d := func(offset, size int, dtype string, shape ...int) map[string]any {
		return map[string]any{"offset": offset, "size": size, "dtype": dtype, "shape": shape, "layout": "panels"}
	}
	return map[string]any{"v": good()["v"]}, map[string]any{
		"q.weight": d(0, 512, "U32", 16, 8), "q.scales": d(512, 32, "BF16", 16, 1), "q.biases": d(544, 32, "BF16", 16, 1),
	}
}

// The manifest says which tensors are in panels, and what is written can be read back.
func TestManifestPanels(t *testing.T) {
	tensors, panels := arranged()
	f, err := open(t, map[string]any{"tensors": tensors, "arranged_tensors": panels}, make([]byte, 640))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := f.Matrix("q", 16, 64)
	if err != nil || m.Format.String() != "q4g64p" {
		t.Errorf("got %v, %v, want q4g64p", m.Format, err)
	}
	if n := f.PanelBytes(); n != 512+32+32 {
		t.Errorf("%d bytes in panels, want 576", n)
	}
	if _, err := f.Vector("q.scales", 16); err == nil {
		t.Error("scales in panels pass for a vector")
	}
	raw := encode(t, f.manifest)
	var keys struct {
		Tensors  map[string]any `json:"tensors"`
		Arranged map[string]any `json:"arranged_tensors"`
	}
	if err := json.Unmarshal(raw, &keys); err != nil || len(keys.Tensors) != 1 || len(keys.Arranged) != 3 {
		t.Errorf("%s: %v, want one tensor in rows and three apart", raw, err)
	}
	var again Manifest
	if err := json.Unmarshal(raw, &again); err != nil || !reflect.DeepEqual(&again, f.manifest) {
		t.Errorf("got %+v, %v, want %+v", again, err, f.manifest)
	}
}

func TestManifestPanelsRefuses(t *testing.T) {
	for _, c := range []struct {
		name, tensor string
		change       map[string]any
		names, why   string
	}{
		{name: "unknown layout", tensor: "q.weight", change: map[string]any{"layout": "columns"}, names: "q.weight", why: `"columns"`},
		{name: "no name", tensor: "q.scales", change: map[string]any{"layout": 1}, names: "q.scales"},
		{name: "rows", tensor: "q.scales", change: map[string]any{"layout": "rows"}, names: "q.scales", why: "rows"},
		{name: "none", tensor: "q.biases", change: map[string]any{"layout": nil}, names: "q.biases", why: "rows"},
		{name: "half a panel", tensor: "q.weight", change: map[string]any{"shape": []int{8, 16}}, names: "q.weight"},
	} {
		tensors, panels := arranged()
		maps.Copy(panels[c.tensor].(map[string]any), c.change)
		m, err := parseManifest("x", encode(t, map[string]any{"tensors": tensors, "arranged_tensors": panels}), 640)
		var bad *ManifestError
		if m != nil || !errors.As(err, &bad) || bad.Tensor != c.names || bad.Path != "x" || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, %v, want a *ManifestError of %q that says %s", c.name, m, err, c.names, c.why)
		}
	}
	both := func(change func(tensors, panels map[string]any)) []byte {
		tensors, panels := arranged()
		change(tensors, panels)
		return encode(t, map[string]any{"tensors": tensors, "arranged_tensors": panels})
	}
	for _, c := range []struct {
		name   string
		change func(tensors, panels map[string]any)
		names  string
	}{
		{"panels among rows", func(a, b map[string]any) { a["x"] = b["q.scales"] }, "x"},
		{"in both", func(a, b map[string]any) { b["v"] = a["v"] }, "v"},
		{"codes alone", func(a, b map[string]any) {
			for _, part := range []string{"q.scales", "q.biases"} {
				delete(b[part].(map[string]any), "layout")
				a[part] = b[part]
				delete(b, part)
			}
		}, "q.weight"},
		{"a vector in panels", func(a, b map[string]any) {
			b["v"] = a["v"]
			b["v"].(map[string]any)["layout"] = "panels"
			delete(a, "v")
		}, "v"},
		{"24 rows", func(a, b map[string]any) {
			b["q.weight"].(map[string]any)["shape"], b["q.weight"].(map[string]any)["size"] = []int{24, 5}, 480
			for _, part := range []string{"q.scales", "q.biases"} {
				b[part].(map[string]any)["shape"], b[part].(map[string]any)["size"] = []int{24, 1}, 48
			}
		}, "q.weight"},
	} {
		m, err := parseManifest("x", both(c.change), 640)
		var bad *ManifestError
		if m != nil || !errors.As(err, &bad) || bad.Tensor != c.names {
			t.Errorf("%s: got %v, %v, want a *ManifestError of %q", c.name, m, err, c.names)
		}
	}
	for _, raw := range []string{`{"tensors":{},"arranged_tensors":[]}`, `{"tensors":{},"arranged_tensors":3}`, `{"tensors":{},"arranged_tensors":null}`} {
		refuse(t, raw, []byte(raw), "")
	}
}

func FuzzParseManifest(f *testing.F) {
	tensors, panels := arranged()
	f.Add(encode(f, map[string]any{"tensors": tensors, "arranged_tensors": panels}), int64(640))
	panels["q.weight"].(map[string]any)["layout"] = "columns"
	f.Add(encode(f, map[string]any{"tensors": tensors, "arranged_tensors": panels}), int64(640))
	f.Add(encode(f, map[string]any{"tensors": good()}), int64(256))
	f.Add([]byte(`{"tensors":{"v":{"offset":9223372036854775804,"size":8,"dtype":"F32","shape":[2]}}}`), int64(16))
	f.Add([]byte(`{"model":1}`), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, dataLen int64) {
		if dataLen < 0 {
			return
		}
		m, err := parseManifest("x", raw, dataLen)
		if (m == nil) == (err == nil) {
			t.Fatalf("got %v, %v", m, err)
		}
		if err != nil {
			return
		}
		for name, d := range m.Tensors {
			n, err := d.DType.Bytes(d.Shape)
			if err != nil || int64(n) != d.Size || d.Offset < 0 || d.Offset+d.Size > dataLen || d.Offset+d.Size < 0 || d.Offset%4 != 0 {
				t.Errorf("%q: %+v in %d bytes", name, d, dataLen)
			}
			if d.Layout > quant.Panels || d.Layout == quant.Panels && d.Shape[0]%16 != 0 {
				t.Errorf("%q: %+v in no whole panels", name, d)
			}
		}
	})
}

// open writes manifest and data and opens them.
func open(t *testing.T, manifest any, data []byte) (*File, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{ManifestName: encode(t, manifest), DataName: data} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Open(dir)
}

func TestMatrixErrors(t *testing.T) {
	m := good()
	m["h.weight"] = map[string]any{"offset": 160, "size": 16, "dtype": "F16", "shape": []int{2, 4}}
	m["q.weight"].(map[string]any)["bits"] = 4
	f, err := open(t, map[string]any{"tensors": m}, make([]byte, 256))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if x, err := f.Matrix("q", 2, 64); err != nil || x.Format.String() != "q4g64" || x.ScalesOffset != 64 || x.BiasesOffset != 68 {
		t.Errorf("q: got %+v, %v", x, err)
	}
	if x, err := f.Matrix("m", 3, 4); err != nil || x.Format.String() != "bf16" || x.WeightOffset != 128 {
		t.Errorf("m: got %+v, %v", x, err)
	}
	if x, err := f.Matrix("h", 2, 4); err != nil || x.Format.String() != "f16" || x.WeightOffset != 160 {
		t.Errorf("h: got %+v, %v", x, err)
	}
	for _, c := range []struct {
		name       string
		rows, cols int
	}{
		{"none", 2, 64}, {"q", 3, 64}, {"q", 2, 32}, {"q", 2, 128}, {"q", 2, 0}, {"q", 2, 1 << 40}, {"m", 4, 3}, {"m", 12, 1}, {"h", 4, 2}, {"v", 2, 2},
	} {
		_, err := f.Matrix(c.name, c.rows, c.cols)
		var bad *TensorError
		if !errors.As(err, &bad) || bad.Name != c.name+".weight" || bad.Got == "" || bad.Want == "" {
			t.Errorf("Matrix(%q, %d, %d): got %v, want a *TensorError", c.name, c.rows, c.cols, err)
		}
	}
	if x, err := f.Vector("v", 4); err != nil || len(x) != 4 {
		t.Errorf("v: got %v, %v", x, err)
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"none", 4}, {"v", 3}, {"v", 5}, {"q.weight", 16}} {
		_, err := f.Vector(c.name, c.n)
		var bad *TensorError
		if !errors.As(err, &bad) || bad.Name != c.name {
			t.Errorf("Vector(%q, %d): got %v, want a *TensorError", c.name, c.n, err)
		}
	}
}

// An 8-bit matrix that the manifest calls 4-bit is refused. Without bits in the manifest, they
// follow from the shapes.
func TestMatrixBits(t *testing.T) {
	for _, c := range []struct {
		bits any
		ok   bool
	}{{nil, true}, {8, true}, {4, false}} {
		q := map[string]any{"offset": 0, "size": 128, "dtype": "U32", "shape": []int{2, 16}, "bits": c.bits}
		s := map[string]any{"offset": 128, "size": 4, "dtype": "BF16", "shape": []int{2, 1}}
		f, err := open(t, map[string]any{"tensors": map[string]any{"q.weight": q, "q.scales": s, "q.biases": s}}, make([]byte, 256))
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Matrix("q", 2, 64)
		if (err == nil) != c.ok || c.ok && m.Format.Bits() != 8 {
			t.Errorf("bits %v: got %v, %v", c.bits, m.Format, err)
		}
		f.Close()
	}
}
