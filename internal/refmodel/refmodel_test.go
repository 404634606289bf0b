package refmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/io/weights"
)

func open(t testing.TB, dir string) *refmodel.Model {
	t.Helper()
	m, err := refmodel.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ids(t testing.TB, fixture, prompt string) []int32 {
	t.Helper()
	out, _ := fixtures.Reference(t, fixture).I32(prompt + ".ids")
	return out
}

// Tokens give the same numbers whether fed one by one or together, and one sequence does not
// disturb another.
func TestStepIsForward(t *testing.T) {
	m := open(t, fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0))
	tokens := ids(t, fixtures.Qwen35MoEBF16, "p9")
	trace := m.Forward(tokens)
	s, other := m.NewState(), m.NewState()
	for i, token := range tokens {
		p := s.Step(token)
		other.Step(int32(i))
		if !reflect.DeepEqual(p.Logits, trace.Logits[i]) || !reflect.DeepEqual(p.FinalNorm, trace.FinalNorm[i]) {
			t.Fatalf("position %d: Step and Forward differ", i)
		}
		for l, r := range p.Routes {
			if !reflect.DeepEqual(r, refmodel.Route{Picks: trace.Picks[l][i], Weights: trace.Weights[l][i], Gap: trace.Gaps[l][i]}) {
				t.Errorf("position %d expert layer %d: got %v", i, l, r)
			}
		}
		for l := range p.Mixer {
			if !reflect.DeepEqual(p.Hidden[l+1], trace.Hidden[l+1][i]) || !reflect.DeepEqual(p.Mixer[l], trace.Mixer[l][i]) ||
				!reflect.DeepEqual(p.FFN[l], trace.FFN[l][i]) {
				t.Errorf("position %d layer %d: Step and Forward differ", i, l)
			}
		}
	}
}

// Noise of the size of float32 rounding moves the results about as far as a float32 engine is off:
// 2e-4 in this model, which is known to amplify it.
func TestForwardNoisy(t *testing.T) {
	m := open(t, fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0))
	tokens := ids(t, fixtures.Qwen35MoEBF16, "p70")
	exact := m.Forward(tokens)
	logits, hidden := m.ForwardNoisy(tokens, 1.0/(1<<23), 1).MaxDiff(exact)
	t.Logf("noise of 2^-23: logits %.3g, hidden %.3g", logits, hidden)
	if !(logits > 5e-6 && logits < 2e-3 && hidden > 5e-6 && hidden < 2e-3) {
		t.Errorf("noise of 2^-23 moves logits by %.3g and hidden states by %.3g, want 5e-6 to 2e-3", logits, hidden)
	}
	again, _ := m.ForwardNoisy(tokens, 1.0/(1<<23), 1).MaxDiff(exact)
	other, _ := m.ForwardNoisy(tokens, 1.0/(1<<23), 2).MaxDiff(exact)
	if again != logits || other == logits {
		t.Errorf("got %v and, from the same seed, %v, from another %v", logits, again, other)
	}
	if logits, hidden := m.ForwardNoisy(tokens, 0, 1).MaxDiff(exact); logits != 0 || hidden != 0 {
		t.Errorf("noise of size 0 moves logits by %v and hidden states by %v", logits, hidden)
	}
	if logits, _ := m.ForwardNoisy(tokens, 0.3, 1).MaxDiff(exact); !math.IsInf(logits, 1) {
		t.Errorf("noise of 0.3 changes no pick: logits differ by %v", logits)
	}
}

// The trained demo model has the loss that another implementation computes for a window, which
// takes nearly everything to be right.
func TestDemoLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("512 positions in float64 take seconds")
	}
	dir, err := demo.Dir(context.Background(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join("..", "demo", "files", "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Seq     int       `json:"seq"`
		EvalIDs []int32   `json:"eval_ids"`
		NLL     []float64 `json:"nll"`
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	trace := open(t, dir).Forward(want.EvalIDs[:want.Seq+1])
	t.Logf("loss %.7f, reference %.7f", trace.Loss(), want.NLL[0])
	// A float32 computation is within 1e-4 whatever it picks where two experts are equally good.
	if d := math.Abs(trace.Loss() - want.NLL[0]); !(d < 1e-4) {
		t.Errorf("loss of the first window: got %.7f, want %.7f, off by %.2g", trace.Loss(), want.NLL[0], d)
	}
}

// result returns a trace's logits and picks as an engine would give them.
func result(trace *refmodel.Trace) refmodel.Result {
	var r refmodel.Result
	for _, row := range trace.Logits {
		var narrow []float32
		for _, x := range row {
			narrow = append(narrow, float32(x))
		}
		r.Logits = append(r.Logits, narrow)
	}
	for _, layer := range trace.Picks {
		var rows [][]int
		for _, picks := range layer {
			// in any order
			rows = append(rows, append(append([]int{}, picks[1:]...), picks[0]))
		}
		r.Picks = append(r.Picks, rows)
	}
	return r
}

func TestCompare(t *testing.T) {
	m := open(t, fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0))
	trace := m.Forward(ids(t, fixtures.Qwen35MoEBF16, "p9"))
	// float32 rounds numbers of this size by less than 1e-6.
	if err := trace.Compare(result(trace), 1e-6); err != nil {
		t.Errorf("the trace itself: %v", err)
	}
	if err := trace.Compare(refmodel.Result{}, 0); err != nil {
		t.Errorf("nothing to compare: %v", err)
	}
	for _, c := range []struct {
		name   string
		change func(*refmodel.Result)
		want   refmodel.Difference
	}{
		{"a logit", func(r *refmodel.Result) { r.Logits[3][7] += 0.01 }, refmodel.Difference{What: "logits", Layer: -1, Position: 3}},
		{"a NaN", func(r *refmodel.Result) { r.Logits[8][0] = float32(math.NaN()) }, refmodel.Difference{What: "logits", Layer: -1, Position: 8}},
		{"too few logits", func(r *refmodel.Result) { r.Logits[2] = r.Logits[2][1:] }, refmodel.Difference{What: "logits", Layer: -1, Position: 2}},
		{"a pick", func(r *refmodel.Result) { r.Picks[1][4] = []int{-1, 0} }, refmodel.Difference{What: "picks", Layer: 1, Position: 4}},
		{"a pick twice", func(r *refmodel.Result) { r.Picks[1][4][1] = r.Picks[1][4][0] }, refmodel.Difference{What: "picks", Layer: 1, Position: 4}},
		{"a pick before a logit", func(r *refmodel.Result) { r.Logits[0][0], r.Picks[2][5] = 99, nil; r.Picks[2][6] = []int{9, 9} },
			refmodel.Difference{What: "picks", Layer: 2, Position: 6}},
		{"too few rows", func(r *refmodel.Result) { r.Logits = r.Logits[1:] }, refmodel.Difference{What: "logits", Layer: -1}},
		{"too few rows of picks", func(r *refmodel.Result) { r.Picks[3] = r.Picks[3][1:] }, refmodel.Difference{What: "picks", Layer: 3}},
		{"too few layers", func(r *refmodel.Result) { r.Picks = r.Picks[1:] }, refmodel.Difference{What: "picks"}},
	} {
		got := result(trace)
		c.change(&got)
		err := trace.Compare(got, 1e-3)
		d, ok := errors.AsType[*refmodel.Difference](err)
		if !ok || d.What != c.want.What || d.Layer != c.want.Layer || d.Position != c.want.Position {
			t.Errorf("%s: got %v, want %s of layer %d at position %d", c.name, err, c.want.What, c.want.Layer, c.want.Position)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	src := fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)
	copyDir := func(t *testing.T) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	replace := func(t *testing.T, path, from, to string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(raw), from, to)
		if changed == string(raw) {
			t.Fatalf("%s does not hold %q", path, from)
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
	}{
		{"no configuration", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "config.json")) }},
		{"a configuration of nothing", func(t *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o644) }},
		{"no manifest", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, weights.ManifestName)) }},
		{"no expert file", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "packed_experts", "layer_00.bin")) }},
		{"a vector of another name", func(t *testing.T, dir string) { replace(t, filepath.Join(dir, weights.ManifestName), "A_log", "B_log") }},
		{"a matrix of another name", func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, weights.ManifestName), "q_proj", "x_proj")
		}},
	} {
		dir := copyDir(t)
		c.damage(t, dir)
		if m, err := refmodel.Open(dir); err == nil || m != nil {
			t.Errorf("%s: got %v, %v, want an error", c.name, m, err)
		}
	}
}
