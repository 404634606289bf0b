package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/dump"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// A dump has the layers that were asked for, with the numbers of the reference implementation where
// that has them, and says what made it. The same dump in steps, with slots, is equal, and token by
// token it agrees; one of rounded inputs departs, and the exit code says so.
func TestDump(t *testing.T) {
	const name = fixtures.Qwen35MoEQ4
	ref, model, dir := fixtures.Reference(t, name), fixtures.Packed(t, name, 0), t.TempDir()
	ids, file := writeIDs(t, ref, "p9"), func(name string) string { return filepath.Join(dir, name) }
	base := []string{"dump", "--model", model, "--ids", ids, "--layers", "0,3-4", "--activations", "f32", "--out"}
	mustCall(t, "", append(base, file("a"))...)
	f, err := safetensors.Open(file("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if of := f.Metadata(); of["model"] != filepath.Base(model) || !strings.Contains(of["exactness"], "activations=f32") {
		t.Errorf("metadata %v", of)
	}
	for _, n := range f.Names() {
		if layer := strings.Split(n, ".")[2]; !slices.Contains([]string{"0", "3", "4"}, layer) {
			t.Errorf("%s was not asked for", n)
		}
	}
	hidden, shape := ref.F32("p9.hidden")
	n := shape[1] * shape[2]
	for layer, want := range map[string][]float32{"p9.layer.0.input": hidden[:n], "p9.layer.3.input": hidden[3*n : 4*n], "p9.layer.4.output": hidden[5*n : 6*n]} {
		got, gotShape := readF32(t, f, layer)
		if !slices.Equal(gotShape, shape[1:]) {
			t.Errorf("%s has shape %v, want %v", layer, gotShape, shape[1:])
		} else if err := numcmp.Near(got, want, fixtures.Tolerance(name), 0); err != nil {
			t.Errorf("%s: %v", layer, err)
		}
	}

	if o := call(t, "", "dump", "--model", model, "--ids", ids, "--layers", "9", "--out", file("c")); o.code != exitUsage || !strings.Contains(o.stderr, "layers 9: the model has layers 0 to 7") {
		t.Errorf("layers there are not: exit %d, stderr %q", o.code, o.stderr)
	}
	mustCall(t, "", slices.Concat(base, []string{file("b"), "--chunk-rows", "4", "--expert-io", "buffered"})...)
	if o := mustCall(t, "", "dump", "--compare", file("a"), file("b")); !strings.HasPrefix(o.stdout, "all ") {
		t.Errorf("in steps: %q", o.stdout)
	}
	mustCall(t, "", slices.Concat(base, []string{file("single"), "--one-by-one"})...)
	o := call(t, "", "dump", "--compare", file("a"), file("single"), "--tolerance", "0.01", "--json")
	var c dump.Comparison
	if err := json.Unmarshal([]byte(o.stdout), &c); err != nil || o.code != exitFailed || c.First == nil || c.First.Name != "p9.layer.0.conv_state_in" || c.First.Why == "" {
		t.Errorf("token by token: exit %d, %v, %+v, want states of other shapes", o.code, err, c.First)
	}
	for _, d := range c.Tensors {
		if d.Departs != strings.Contains(d.Name, "state") {
			t.Errorf("token by token: %+v", d)
		}
	}
	mustCall(t, "", slices.Concat(base, []string{file("int8"), "--activations", "int8"})...)
	o = call(t, "", "dump", "--compare", file("a"), file("int8"))
	if o.code != exitFailed || !strings.HasPrefix(o.stdout, "p9.layer.0.qkv is the first") || !strings.Contains(o.stdout, "activations=int8") || !strings.Contains(o.stderr, "first in p9.layer.0.qkv") {
		t.Errorf("rounded: exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}

	// A layer's own input, put in again, gives the layer again; and so do its experts alone.
	x, _ := f.Tensor("p9.layer.3.input")
	y, _ := f.Tensor("p9.layer.3.post_norm")
	for i, c := range []struct {
		tensor safetensors.Tensor
		flags  []string
	}{{x, nil}, {y, []string{"--only", "experts"}}} {
		c.tensor.Name = "p9.input"
		if err := safetensors.WriteFile(file("input"), []safetensors.Tensor{c.tensor}, nil); err != nil {
			t.Fatal(err)
		}
		mustCall(t, "", slices.Concat([]string{"dump", "--model", model, "--layers", "3", "--activations", "f32", "--input", file("input"), "--out", file("part")}, c.flags)...)
		if o := mustCall(t, "", "dump", "--compare", file("part"), file("a")); !strings.HasPrefix(o.stdout, "all ") {
			t.Errorf("part %d: %q", i, o.stdout)
		}
	}
	if o := call(t, "", "dump", "--only", "head", "--ids", ids, "--out", file("c")); o.code != exitUsage || !strings.Contains(o.stderr, "hidden states") {
		t.Errorf("a head of ids: exit %d, stderr %q", o.code, o.stderr)
	}
}

// A pack without the files of some layers opens for dump alone, and shows those that are there.
func TestDumpPartial(t *testing.T) {
	const name = fixtures.Qwen35MoEQ4
	ref, whole, model := fixtures.Reference(t, name), fixtures.Packed(t, name, 0), t.TempDir()
	if err := os.CopyFS(model, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	for _, layer := range []string{"layer_00.bin", "layer_05.bin"} {
		if err := os.Remove(filepath.Join(model, "packed_experts", layer)); err != nil {
			t.Fatal(err)
		}
	}
	ids, all, part := writeIDs(t, ref, "p9"), filepath.Join(t.TempDir(), "all"), filepath.Join(t.TempDir(), "part")
	mustCall(t, "", "dump", "--model", whole, "--ids", ids, "--out", all)
	f, err := safetensors.Open(all)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, _ := f.Tensor("p9.layer.3.input")
	x.Name = "p9.input"
	input := filepath.Join(t.TempDir(), "input")
	if err := safetensors.WriteFile(input, []safetensors.Tensor{x}, nil); err != nil {
		t.Fatal(err)
	}
	mustCall(t, "", "dump", "--model", model, "--input", input, "--layers", "3", "--out", part)
	if o := call(t, "", "dump", "--compare", part, all); !strings.HasPrefix(o.stdout, "all ") {
		t.Errorf("a layer that is there: %q, %q", o.stdout, o.stderr)
	}
	if o := call(t, "", "dump", "--model", model, "--ids", ids, "--layers", "3", "--out", part); o.code != exitFailed || !strings.Contains(o.stderr, "layer_00.bin") {
		t.Errorf("a text through a layer that is missing: exit %d, %q", o.code, o.stderr)
	}
	if o := call(t, "", "logits", "--model", model, "--ids", ids, "--out", part); o.code != exitFailed || !strings.Contains(o.stderr, "layer_00.bin") {
		t.Errorf("logits of a pack with missing files: exit %d, %q", o.code, o.stderr)
	}
	first, err := os.ReadFile(filepath.Join(whole, "packed_experts", "layer_00.bin"))
	if err == nil {
		err = os.WriteFile(filepath.Join(model, "packed_experts", "layer_00.bin"), first, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustCall(t, "", "dump", "--model", model, "--ids", ids, "--layers", "0-4", "--out", part) // and stops there
}
