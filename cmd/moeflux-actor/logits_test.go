package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// writeIDs writes the fixture's prompts as the ids file of logits.
func writeIDs(t *testing.T, ref *fixtures.Numbers, names ...string) string {
	t.Helper()
	all := map[string][]int32{}
	for _, name := range names {
		all[name], _ = ref.I32(name + ".ids")
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "ids.json", string(data))
}

func readF32(t *testing.T, f *safetensors.File, name string) ([]float32, []int) {
	t.Helper()
	tensor, ok := f.Tensor(name)
	if !ok || tensor.DType != safetensors.F32 {
		t.Fatalf("the file has no F32 tensor %s, only %v", name, f.Names())
	}
	x := make([]float32, len(tensor.Data)/4)
	for i := range x {
		x[i] = math.Float32frombits(le32(tensor.Data, i))
	}
	return x, tensor.Shape
}

func readI32(t *testing.T, f *safetensors.File, name string) ([]int32, []int) {
	t.Helper()
	tensor, ok := f.Tensor(name)
	if !ok || tensor.DType != safetensors.I32 {
		t.Fatalf("the file has no I32 tensor %s, only %v", name, f.Names())
	}
	x := make([]int32, len(tensor.Data)/4)
	for i := range x {
		x[i] = int32(le32(tensor.Data, i))
	}
	return x, tensor.Shape
}

func le32(b []byte, i int) uint32 {
	return uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24
}

// Every fixture goes through convert and logits as a user would drive them, and the file holds the
// reference's numbers: router tensors have one row of layers for each layer with experts.
func TestLogits(t *testing.T) {
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			ref, prompts, dir := fixtures.Reference(t, name), fixtures.Prompts(name), t.TempDir()
			packed, out := filepath.Join(dir, "model"), filepath.Join(dir, "logits.safetensors")
			mustCall(t, "", "convert", fixtures.Dir(t, name), packed)
			o := mustCall(t, "", "logits", "--model", packed, "--ids", writeIDs(t, ref, prompts...), "--out", out,
				"--hidden", "--routing", "--decode", "24", "--json", "--activations", "f32")
			tokens := 3 * 24
			for _, p := range prompts {
				ids, _ := ref.I32(p + ".ids")
				tokens += len(ids)
			}
			var said struct {
				Out    string
				Names  []string
				Tokens int
			}
			names := slices.Sorted(slices.Values(prompts)) // as json.Marshal writes them
			if err := json.Unmarshal([]byte(o.stdout), &said); err != nil || said.Out != out || !slices.Equal(said.Names, names) || said.Tokens != tokens {
				t.Errorf("stdout %q, want out %s, the names in the file's order, and %d tokens", o.stdout, out, tokens)
			}
			f, err := safetensors.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, p := range prompts {
				checkPrompt(t, f, ref, p, fixtures.Tolerance(name))
			}
			if len(f.Names()) != 3*6 {
				t.Errorf("the file has %v, want 6 tensors a prompt", f.Names())
			}
		})
	}
}

func checkPrompt(t *testing.T, f *safetensors.File, ref *fixtures.Numbers, p string, tolerance float64) {
	t.Helper()
	for _, tensor := range []string{".logits", ".hidden", ".decode_logits"} {
		got, shape := readF32(t, f, p+tensor)
		want, wantShape := ref.F32(p + tensor)
		if !slices.Equal(shape, wantShape) {
			t.Errorf("%s%s has shape %v, want %v", p, tensor, shape, wantShape)
		} else if err := numcmp.Near(got, want, tolerance, 0); err != nil {
			t.Errorf("%s%s: %v", p, tensor, err)
		}
	}
	ids, shape := readI32(t, f, p+".decode_ids")
	if want, wantShape := ref.I32(p + ".decode_ids"); !slices.Equal(ids, want) || !slices.Equal(shape, wantShape) {
		t.Errorf("%s.decode_ids = %v %v, want %v %v", p, shape, ids, wantShape, want)
	}
	picks, shape := readI32(t, f, p+".router_idx")
	weights, weightShape := readF32(t, f, p+".router_weight")
	wantPicks, wantShape := ref.I32(p + ".router_idx")
	wantWeights, _ := ref.F32(p + ".router_weight")
	if !slices.Equal(shape, wantShape) || !slices.Equal(weightShape, wantShape) {
		t.Fatalf("%s.router_idx and .router_weight have shapes %v and %v, want %v", p, shape, weightShape, wantShape)
	}
	// Sets agree exactly, and each expert's weight; two nearly equal weights may change places.
	k := shape[2]
	for row := range len(picks) / k {
		got, want := map[int32]float32{}, map[int32]float32{}
		for i := row * k; i < (row+1)*k; i++ {
			got[picks[i]], want[wantPicks[i]] = weights[i], wantWeights[i]
			if i > row*k && weights[i] > weights[i-1] {
				t.Errorf("%s row %d: weights %v are not heaviest first", p, row, weights[row*k:(row+1)*k])
			}
		}
		for expert, w := range want {
			if g, ok := got[expert]; !ok || math.Abs(float64(g-w)) > tolerance {
				t.Errorf("%s row %d: picks %v, want %v", p, row, got, want)
				break
			}
		}
	}
}

// Without the options only the logits are written, and they do not depend on the options.
func TestLogitsPlain(t *testing.T) {
	ref := fixtures.Reference(t, fixtures.Qwen35MoEQ4)
	model, dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), t.TempDir()
	plain, all := filepath.Join(dir, "plain"), filepath.Join(dir, "all")
	ids := writeIDs(t, ref, "p9")
	o := mustCall(t, "", "logits", "--model", model, "--ids", ids, "--out", plain)
	if o.stdout != "" || !strings.Contains(o.stderr, "wrote 1 tensor of 1 prompt to "+plain) {
		t.Errorf("stdout %q, stderr %q, want a line about %s on stderr", o.stdout, o.stderr, plain)
	}
	mustCall(t, "", "logits", "--model", model, "--ids", ids, "--out", all, "--hidden", "--routing", "--chunk-rows", "4")
	f, err := safetensors.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := safetensors.Open(all)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if !slices.Equal(f.Names(), []string{"p9.logits"}) {
		t.Errorf("the file has %v, want p9.logits alone", f.Names())
	}
	a, _ := readF32(t, f, "p9.logits")
	b, _ := readF32(t, g, "p9.logits")
	if err := numcmp.Near(a, b, fixtures.Tolerance(fixtures.Qwen35MoEQ4), 0); err != nil {
		t.Errorf("the logits depend on --hidden --routing: %v", err)
	}
}

func TestLogitsFailsWhole(t *testing.T) {
	model := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for _, c := range []struct{ name, ids, out, want string }{
		{"id outside the vocabulary", `{"a": [1], "b": [1, 70000]}`, "", `the ids of "b": id 70000 at index 1 is outside the vocabulary`},
		{"no such folder", `{"a": [1]}`, filepath.Join(t.TempDir(), "missing", "out"), "missing"},
	} {
		dir := t.TempDir()
		if c.out == "" {
			c.out = filepath.Join(dir, "out")
		}
		o := call(t, c.ids, "logits", "--model", model, "--ids", "-", "--out", c.out)
		if o.code != exitFailed || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%s: exit %d, stderr %q, want %d and %q", c.name, o.code, o.stderr, exitFailed, c.want)
		}
		checkErrorLine(t, o)
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: %v is left, %v", c.name, left, err)
		}
	}
}

// idList writes ids as JSON.
func idList(ids []int32) string { return strings.ReplaceAll(fmt.Sprint(ids), " ", ",") }

func TestEval(t *testing.T) {
	ref := fixtures.Reference(t, fixtures.Qwen35MoEQ4)
	model := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	ids, _ := ref.I32("p70.ids")
	logits, shape := ref.F32("p70.logits")
	vocab := shape[1]
	// loss is the definition, in float64, over the reference's logits.
	loss := func(targets int) (sum float64) {
		for i := range targets {
			z := 0.0
			for _, l := range logits[i*vocab : (i+1)*vocab] {
				z += math.Exp(float64(l))
			}
			sum += math.Log(z) - float64(logits[i*vocab+int(ids[i+1])])
		}
		return sum
	}
	eval := func(ids []int32, flags ...string) eval.Losses {
		var r eval.Losses
		dec := json.NewDecoder(strings.NewReader(mustCall(t, idList(ids), append([]string{"eval", "--model", model, "--ids", "-", "--json", "--activations", "f32"}, flags...)...).stdout))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}

	whole := eval(ids)
	if want := loss(69) / 69; len(whole.NLL) != 1 || whole.Tokens != 69 || math.Abs(whole.NLL[0]-want) > fixtures.Tolerance(fixtures.Qwen35MoEQ4) || whole.MeanNLL != whole.NLL[0] {
		t.Errorf("one window: %+v, want a loss of %v over 69 tokens", whole, want)
	}
	if whole.Seconds <= 0 || math.Abs(whole.PPL-math.Exp(whole.MeanNLL)) > 1e-9 {
		t.Errorf("seconds %v, perplexity %v of loss %v", whole.Seconds, whole.PPL, whole.MeanNLL)
	}
	// Two windows of 32 and one of 5: the first sees what the reference saw; the second begins
	// afresh, as a text of its own does.
	parts := eval(ids, "--window", "32")
	if len(parts.NLL) != 3 || parts.Tokens != 69 {
		t.Fatalf("windows of 32: %+v, want 3 windows and 69 tokens", parts)
	}
	if want := loss(32) / 32; math.Abs(parts.NLL[0]-want) > fixtures.Tolerance(fixtures.Qwen35MoEQ4) {
		t.Errorf("first window: %v, want %v", parts.NLL[0], want)
	}
	if alone := eval(ids[32:65], "--window", "32"); alone.NLL[0] != parts.NLL[1] {
		t.Errorf("second window: %v, alone %v: the state is not emptied", parts.NLL[1], alone.NLL[0])
	}
	if want := (32*parts.NLL[0] + 32*parts.NLL[1] + 5*parts.NLL[2]) / 69; math.Abs(parts.MeanNLL-want) > 1e-12 {
		t.Errorf("mean %v, want %v, weighed by tokens", parts.MeanNLL, want)
	}
	// A last window without a target does not count.
	if r := eval(ids[:65], "--window", "32"); len(r.NLL) != 2 || r.Tokens != 64 {
		t.Errorf("65 ids in windows of 32: %+v, want 2 windows and 64 tokens", r)
	}
	// The window is cut into steps: the loss stays.
	if r := eval(ids, "--chunk-rows", "9"); math.Abs(r.NLL[0]-whole.NLL[0]) > 1e-5 {
		t.Errorf("in steps of 9: %v, want %v", r.NLL[0], whole.NLL[0])
	}
	text := mustCall(t, idList(ids), "eval", "--model", model, "--ids", "-", "--window", "32", "--activations", "f32").stdout
	if strings.Count(text, "window ") != 3 || !strings.Contains(text, fmt.Sprintf("mean loss %.6f nats", parts.MeanNLL)) {
		t.Errorf("without --json: %q", text)
	}
	o := call(t, "[1,70000]", "eval", "--model", model, "--ids", "-")
	if o.code != exitFailed || !strings.Contains(o.stderr, "id 70000 at index 1 is outside the vocabulary") {
		t.Errorf("an id outside the vocabulary: exit %d, stderr %q", o.code, o.stderr)
	}
}
