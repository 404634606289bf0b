package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/bench"
)

// TestBenchMixed measures one share with the demo model and checks the figures against each other.
func TestBenchMixed(t *testing.T) {
	o := callWith(t.Context(), benchEnv(), "", "bench", "--mixed", "--prompt-share", "0.5", "--prompt-tokens", "300", "--gen-tokens", "8",
		"--warmup", "4", "--repeat", "2", "--threads", "2", "--json")
	var r bench.MixResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("exit %d, stdout %q, stderr %q, %v", o.code, o.stdout, o.stderr, err)
	}
	if len(r.Points) != 1 || r.PromptTokens != 300 || r.Repeat != 2 || r.Interrupted {
		t.Fatalf("%+v", r)
	}
	p := r.Points[0]
	if p.Share != 0.5 || len(p.Runs) != 2 {
		t.Fatalf("%+v", p)
	}
	var gaps []float64
	for _, run := range p.Runs {
		if len(run.AloneMS) != 8 || len(run.GapsMS) == 0 || run.Prompt <= 0 || run.PromptAlone <= 0 {
			t.Errorf("%+v", run)
		}
		gaps = append(gaps, run.GapsMS...)
	}
	below, most := 0, 0.0
	for _, g := range gaps {
		most = max(most, g)
		if g <= p.Gap99 {
			below++
		}
	}
	if p.GapMost != most || float64(below) < 0.99*float64(len(gaps)) || p.Gap > p.Gap99 {
		t.Errorf("of %v: median %v, 99 %% %v, most %v", gaps, p.Gap, p.Gap99, p.GapMost)
	}
	if want := p.Gap99 / p.GapAlone; math.Abs(p.Steps99-want) > 1e-9 {
		t.Errorf("%v steps, want %v", p.Steps99, want)
	}
}

// TestBenchMixedText has a line for each share.
func TestBenchMixedText(t *testing.T) {
	r := bench.MixResult{PromptTokens: 7, Repeat: 1, Points: []*bench.MixPoint{
		{Share: 0.5, Runs: []bench.MixRun{{AloneMS: []float64{2, 1, 3}, GapsMS: []float64{4, 8}, PromptAlone: 100, Prompt: 40}}},
		{Share: 1, Runs: []bench.MixRun{{AloneMS: []float64{2}, GapsMS: []float64{20}, PromptAlone: 100, Prompt: 90}}},
	}}
	for _, p := range r.Points {
		p.Summarise()
	}
	text := r.Text()
	for _, want := range []string{
		"0.50    2.00 ms    3.00 ms    8.00 ms    8.00 ms    8.00 ms    4.0      40.0     100.0    40%\n",
		"1.00    2.00 ms    2.00 ms   20.00 ms   20.00 ms   20.00 ms   10.0      90.0     100.0    90%\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

func TestBenchMixedUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--cold"}, {"--sweep"}, {"--soak", "5s"}, {"--forget"}, {"--prompt-tokens", "3,4"}, {"--sequences", "2"},
	} {
		o := callWith(t.Context(), benchEnv(), "", append([]string{"bench", "--mixed"}, args...)...)
		if o.code != exitUsage || !strings.Contains(o.stderr, "--mixed") {
			t.Errorf("%v: exit %d, %q", args, o.code, o.stderr)
		}
	}
}
