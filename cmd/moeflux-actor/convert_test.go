package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/ggufinfo"
	"github.com/moeflux/moeflux-actor/model"
)

// GGUF files that the reader's tests have.
const (
	ggufFile  = "../../io/gguf/testdata/moe-00002-of-00003.gguf"
	bigEndian = "../../io/gguf/testdata/big-endian.gguf"
)

// inspect tells of a GGUF file what it holds, as the argument or as the model.
func TestInspectGGUF(t *testing.T) {
	for _, args := range [][]string{{"inspect", ggufFile}, {"inspect", "--model", ggufFile}} {
		var r ggufinfo.Info
		dec := json.NewDecoder(strings.NewReader(mustCall(t, "", append(args, "--json")...).stdout))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.File != ggufFile || r.Format.Parts != 3 || r.Arch != "qwen3_moe" || r.Shape.Experts != 3 || len(r.Missing) != 2 {
			t.Errorf("%v: %+v", args, r)
		}
		text := mustCall(t, "", args...).stdout
		for _, want := range []string{"in 3 parts", "which is qwen3_moe here", "Q4_0", `would not run: "qwen3moe.attention.layer_norm_rms_epsilon": the key is missing`} {
			if !strings.Contains(text, want) {
				t.Errorf("%v lacks %q:\n%s", args, want, text)
			}
		}
	}
}

// A GGUF file that is run in place gives the text of the directory that convert makes of it.
func TestRunGGUF(t *testing.T) {
	file, dst := fixtures.GGUF(t, fixtures.Qwen35MoEBF16), filepath.Join(t.TempDir(), "model")
	if o := mustCall(t, "", "convert", file, dst); !strings.Contains(o.stdout, "run it with") {
		t.Errorf("convert ends with %q", o.stdout)
	}
	var texts [2]struct {
		Text string  `json:"text"`
		IDs  []int32 `json:"new_ids"`
	}
	for i, model := range []string{file, dst} {
		o := mustCall(t, "", "run", "--model", model, "-p", "the cat", "-n", "12", "--json")
		if err := json.Unmarshal([]byte(o.stdout), &texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(texts[0].IDs) == 0 || !reflect.DeepEqual(texts[0], texts[1]) {
		t.Errorf("in place %+v, converted %+v", texts[0], texts[1])
	}
	for _, args := range [][]string{{"tokenize", "--model"}, {"chat-template", "--model"}} {
		in := map[string]string{"tokenize": `{"text":"the cat"}`, "chat-template": `{"messages":[{"role":"user","content":"the cat"}]}`}[args[0]]
		if a, b := mustCall(t, in, append(args, file)...), mustCall(t, in, append(args, dst)...); a.stdout != b.stdout || a.stdout == "" {
			t.Errorf("%s: in place %q, converted %q", args[0], a.stdout, b.stdout)
		}
	}
}

// What has no tokenizer cannot be run with a text, and convert does not say so.
func TestConvertWithoutTokenizer(t *testing.T) {
	o := mustCall(t, "", "convert", fixtures.Dir(t, fixtures.Qwen35MoEBF16), filepath.Join(t.TempDir(), "model"))
	if !strings.Contains(o.stdout, "it has no tokenizer") || strings.Contains(o.stdout, "run it with") {
		t.Errorf("convert ends with %q", o.stdout)
	}
}

func TestConvertAndInspect(t *testing.T) {
	src, dst := fixtures.Dir(t, fixtures.Qwen35MoEBF16), filepath.Join(t.TempDir(), "model")
	o := mustCall(t, "", "convert", src, dst, "--bits", "4", "--json")
	var said struct {
		Dst     string
		Seconds float64
	}
	// This checkpoint has no tokenizer, of which convert warns.
	if err := json.Unmarshal([]byte(o.stdout), &said); err != nil || said.Dst != dst || !strings.Contains(o.stderr, "vocab.bin left out") {
		t.Errorf("convert prints %q and %q, want dst %s and a warning", o.stdout, o.stderr, dst)
	}
	o = mustCall(t, "", "inspect", dst, "--verify", "--json")
	var r inspectResult
	dec := json.NewDecoder(strings.NewReader(o.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	// From the fixture's config.json.
	want := figures.Shape{Layers: 4, LinearLayers: 3, FullLayers: 1, Hidden: 64, Experts: 8, ExpertsPerToken: 2}
	s := r.Shape
	if got := (figures.Shape{Layers: s.Layers, LinearLayers: s.LinearLayers, FullLayers: s.FullLayers, Hidden: s.Hidden, Experts: s.Experts, ExpertsPerToken: s.ExpertsPerToken}); got != want {
		t.Errorf("shape %+v, want %+v", got, want)
	}
	checkBytes(t, dst, &r)
	if !r.Verified || r.Here.Error != "" || !strings.Contains(r.Here.Device, "host") || r.Here.ExpertIO != "mmap" || r.State == nil || r.State.KVPerToken <= 0 || r.State.Fixed <= 0 {
		t.Errorf("verified %v, here %+v, state %+v", r.Verified, r.Here, r.State)
	}
	text := mustCall(t, "", "inspect", dst).stdout
	for _, want := range []string{dst, "qwen3_5_moe", "4: 3 linear attention, 1 full attention", "8 a layer, 2 per token", figures.Bytes(r.Bytes.TouchedToken), "mmap", "per sequence"} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "checksums") {
		t.Errorf("inspect speaks of checksums that it did not check:\n%s", text)
	}
	o = call(t, "", "convert", src, dst)
	if o.code != exitFailed || !strings.Contains(o.stderr, dst) {
		t.Errorf("convert over a model: exit %d, stderr %q, want %d", o.code, o.stderr, exitFailed)
	}
	checkErrorLine(t, o)
}

// checkBytes holds the sizes against the files.
func checkBytes(t *testing.T, dir string, r *inspectResult) {
	t.Helper()
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	layers, err := filepath.Glob(filepath.Join(dir, "packed_experts", "*.bin"))
	if err != nil || len(layers) != r.Shape.Layers {
		t.Fatalf("expert files %v, %v, want %d", layers, err, r.Shape.Layers)
	}
	streamed := int64(0)
	for _, l := range layers {
		rel, err := filepath.Rel(dir, l)
		if err != nil {
			t.Fatal(err)
		}
		streamed += size(rel)
	}
	b := r.Bytes
	if b.Resident != size("model_weights.bin") || b.Streamed != streamed || b.Expert*int64(r.Shape.Experts*r.Shape.Layers) != streamed {
		t.Errorf("bytes %+v, the files hold %d and %d", b, size("model_weights.bin"), streamed)
	}
	if b.TouchedExp*int64(r.Shape.Experts) != streamed*int64(r.Shape.ExpertsPerToken) || b.TouchedToken != b.TouchedDense+b.TouchedExp || b.TouchedDense >= b.Resident {
		t.Errorf("bytes per token %+v do not fit %d experts, %d of them per token", b, r.Shape.Experts, r.Shape.ExpertsPerToken)
	}
}

// --layout says how matrices are stored, and inspect shows it.
func TestLayoutFlag(t *testing.T) {
	src := fixtures.Dir(t, fixtures.Qwen35MoEQ4)
	for _, c := range []struct {
		args   []string
		panels bool
		says   string
	}{
		{nil, true, "panels: "}, {[]string{"--layout", "panels"}, true, "panels: "}, {[]string{"--layout", "rows"}, false, "rows, as moeflux and flash-moe"},
	} {
		for _, make := range [][]string{append([]string{"convert", src}, c.args...), synthArgs(c.args...)} {
			dst := filepath.Join(t.TempDir(), "model")
			mustCall(t, "", append(make, dst)...)
			r, err := inspectFiles(actors.Config{Model: dst})
			if err != nil {
				t.Fatal(err)
			}
			if (r.Bytes.Panels > 0) != c.panels || r.Bytes.Panels > r.Bytes.Resident+r.Bytes.Streamed || c.panels && r.Bytes.Panels < r.Bytes.Streamed {
				t.Errorf("%v: %d bytes in panels of %d and %d", make, r.Bytes.Panels, r.Bytes.Resident, r.Bytes.Streamed)
			}
			if text := mustCall(t, "", "inspect", dst).stdout; !strings.Contains(text, c.says) {
				t.Errorf("%v: inspect lacks %q:\n%s", make, c.says, text)
			}
		}
	}
	for _, make := range [][]string{{"convert", src}, synthArgs()} {
		dst := filepath.Join(t.TempDir(), "model")
		o := call(t, "", append(make, dst, "--layout", "columns")...)
		if o.code != exitUsage || !strings.Contains(o.stderr, `--layout "columns" is unknown; available: panels, rows`) {
			t.Errorf("%v in columns: exit %d, stderr %q", make, o.code, o.stderr)
		}
	}
	if o := call(t, "", "synth", "--check", src, "--layout", "rows"); o.code != exitUsage || !strings.Contains(o.stderr, "--layout") {
		t.Errorf("a check with a layout: exit %d, stderr %q", o.code, o.stderr)
	}
}

func TestInspectOfDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "packed_experts", "layer_00.bin")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[100] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	mustCall(t, "", "inspect", dir)
	o := call(t, "", "inspect", dir, "--verify")
	if o.code != exitFailed || !strings.Contains(o.stderr, "layer_00.bin") {
		t.Errorf("a changed byte: exit %d, stderr %q, want %d and the file's name", o.code, o.stderr, exitFailed)
	}
	checkErrorLine(t, o)
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	o = call(t, "", "inspect", dir)
	if o.code != exitFailed || !strings.Contains(o.stderr, "layer_00.bin") {
		t.Errorf("a cut file: exit %d, stderr %q, want %d and the file's name", o.code, o.stderr, exitFailed)
	}
}

// What the model holds is shown even if it cannot run with these settings.
func TestInspectOfWhatDoesNotFit(t *testing.T) {
	model := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	o := mustCall(t, "", "inspect", model, "--expert-io", "buffered", "--expert-memory", "1KiB")
	if !strings.Contains(o.stdout, "would not run: ") || !strings.Contains(o.stdout, "qwen3_5_moe") {
		t.Errorf("inspect with 1 KiB for experts prints %q", o.stdout)
	}
}

func TestConvertInterrupted(t *testing.T) {
	src, dst := fixtures.Dir(t, fixtures.Qwen35MoEBF16), filepath.Join(t.TempDir(), "model")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := callWith(ctx, testEnv(), "", "convert", src, dst)
	if o.code != exitInterrupted || !strings.Contains(o.stderr, "give the same command again to go on") ||
		!strings.Contains(o.stderr, "1 for pictures, 2 of layers that predict further tokens") || strings.Count(o.stderr, "\n") != 2 {
		t.Errorf("exit %d, stderr %q, want %d, what is left out, and how to go on", o.code, o.stderr, exitInterrupted)
	}
	if _, err := os.Stat(dst); err == nil {
		t.Errorf("%s exists after an interruption", dst)
	}
	// In the middle, from the progress bar's first write.
	e := testEnv()
	e.Terminal = func(stream any) bool { _, isErr := stream.(writerFunc); return isErr }
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var errs bytes.Buffer
	stderr := writerFunc(func(p []byte) (int, error) { cancel(); return errs.Write(p) })
	if code := run(ctx, []string{"convert", src, dst}, strings.NewReader(""), &bytes.Buffer{}, stderr, e); code != exitInterrupted {
		t.Errorf("exit %d, stderr %q, want %d", code, errs.String(), exitInterrupted)
	}
	mustCall(t, "", "convert", src, dst)
	mustCall(t, "", "inspect", dst, "--verify")
}

// Families that the engine does not run are refused by name, with what is missing, before anything
// is written.
func TestConvertRefusesFamilies(t *testing.T) {
	for _, config := range []string{
		`{"model_type": "bailing_hybrid"}`, `{"model_type": "kimi_linear"}`, `{"model_type": "nemotron_h"}`,
		`{"model_type": "qwen4_exp", "text_config": {}}`,
	} {
		src := filepath.Dir(writeFile(t, "config.json", config))
		dst := filepath.Join(t.TempDir(), "model")
		o := call(t, "", "convert", src, dst)
		name := strings.Split(config, `"`)[3]
		want := fmt.Sprintf("model_type %q is not supported: the engine lacks %s; supported: deepseek_v3, deepseek_v32, glm4_moe", name, model.Missing(name))
		if o.code != exitFailed || model.Missing(name) == "" || !strings.Contains(o.stderr, want) {
			t.Errorf("%s: exit %d, %q; want %d and %q", name, o.code, o.stderr, exitFailed, want)
		}
		checkErrorLine(t, o)
		if _, err := os.Stat(dst); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}
