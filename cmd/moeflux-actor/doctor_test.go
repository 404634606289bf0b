package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
)

// mustDoctor runs doctor and returns what --json prints.
func mustDoctor(t *testing.T, e env, args ...string) *doctorResult {
	t.Helper()
	args = append([]string{"doctor", "--json"}, args...)
	o := callWith(t.Context(), e, "", args...)
	var r doctorResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("%q: exit %d, stdout %q, stderr %q, %v", args, o.code, o.stdout, o.stderr, err)
	}
	return &r
}

// TestDoctor compares the figures with each other and with inspect.
func TestDoctor(t *testing.T) {
	e := benchEnv()
	e.memoryLimit = func() int64 { return 1 << 30 }
	r := mustDoctor(t, e, "--expert-io", "buffered", "--expert-memory", "3MiB", "--read-workers", "4", "--threads", "2", "--profile", "off")
	inspected := mustInspect(t)
	p := r.Plan
	if p.ExpertIO != "buffered" || p.ReadWorkers != 4 || p.Threads != 2 || p.Slots == 0 || p.ExpertMemory > 3<<20 || p.Error != "" ||
		p.Streamed != inspected.Bytes.Streamed || p.Resident != inspected.Bytes.Resident || p.Variant == "" {
		t.Errorf("plan %+v", p)
	}
	if want := float64(p.ExpertMemory) / float64(p.Streamed); math.Abs(p.SlotShare-want) > 1e-9 {
		t.Errorf("slots for %g of all experts, want %g", p.SlotShare, want)
	}
	depths := map[string]int{}
	for _, d := range r.Disk {
		depths[d.Mode]++
		if !(d.Min > 0 && d.Min <= d.Median && d.Median <= d.Max) || d.ReadSeconds <= 0 {
			t.Errorf("disk %+v", d)
		}
	}
	if depths["buffered"] != 4 || depths["direct"] != 4 && r.DiskNote == "" {
		t.Errorf("disk %v, note %q; want depths 1, 2, 4 and 8 of both modes", depths, r.DiskNote)
	}
	f := r.Forecast
	if f == nil || f.KeptRate <= 0 || f.KeptRate >= 1 || !strings.HasPrefix(f.KeptRateFrom, "assumed") ||
		math.Abs(f.TokensPerSecond*max(f.DiskSeconds, f.ComputeSeconds)-1) > 1e-9 {
		t.Errorf("forecast %+v", f)
	}
	why := strings.Join(r.Why, "\n")
	for _, want := range []string{"kernels ", "a cgroup allows 1.00 GiB", "as --expert-io says"} {
		if !strings.Contains(why, want) {
			t.Errorf("why lacks %q:\n%s", want, why)
		}
	}
}

// TestDoctorProfile predicts kept experts from what an earlier run used.
func TestDoctorProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uses")
	flags := []string{"--expert-io", "buffered", "--expert-memory", "3MiB", "--profile", file}
	mustCall(t, "", append([]string{"run", "-p", "package main", "-n", "8"}, flags...)...)
	f := mustDoctor(t, benchEnv(), flags...).Forecast
	if f == nil || !strings.Contains(f.KeptRateFrom, "rows of "+file) || f.KeptRate <= 0 || f.KeptRate >= 1 {
		t.Errorf("forecast %+v, want what the profile says", f)
	}
}

// TestDoctorText prints everything, including a plan that would not run.
func TestDoctorText(t *testing.T) {
	o := callWith(t.Context(), benchEnv(), "", "doctor", "--expert-io", "mmap")
	for _, want := range []string{"\nmemory ", "\ndisk buffered", "\nplan ", "kept 100.0%, since all experts are in memory", "\nwhy "} {
		if !strings.Contains(o.stdout, want) || o.code != exitOK {
			t.Errorf("exit %d, stdout lacks %q:\n%s", o.code, want, o.stdout)
		}
	}
	o = callWith(t.Context(), benchEnv(), "", "doctor", "--expert-io", "buffered", "--expert-memory", "1KB")
	if o.code != exitOK || !strings.Contains(o.stdout, "would not run: ") || !strings.Contains(o.stdout, "\nforecast      none: the plan would not run") {
		t.Errorf("exit %d, stdout %q", o.code, o.stdout)
	}
	for _, args := range [][]string{{"doctor", "a", "--model", "b"}, {"doctor", "--prefetch", "guess"}} {
		if o := call(t, "", args...); o.code != exitUsage {
			t.Errorf("%q: exit %d", args, o.code)
		}
	}
	if o := call(t, "", "doctor", filepath.Join(t.TempDir(), "none")); o.code != exitFailed {
		t.Errorf("no directory: exit %d", o.code)
	}
}

func TestForecast(t *testing.T) {
	for _, c := range []struct {
		name         string
		hits         expectedKept
		memory, disk float64
		want         *forecast
	}{
		{"all there", expectedKept{1, "x"}, 50e9, 0, &forecast{TokensPerSecond: 50, Bound: "memory", ComputeSeconds: 0.02, Low: 27.5, KeptRate: 1, KeptRateFrom: "x", MemoryBandwidth: 50e9}},
		{"the disk is slower", expectedKept{0.75, "x"}, 50e9, 2e9, &forecast{TokensPerSecond: 20, Low: 11.578947368, Bound: "disk", ComputeSeconds: 0.02, DiskSeconds: 0.05, KeptRate: 0.75,
			KeptRateFrom: "x", MemoryBandwidth: 50e9, DiskBandwidth: 2e9}},
		{"unknown hits", expectedKept{}, 50e9, 2e9, nil},
		{"unknown disk", expectedKept{0.5, "x"}, 50e9, 0, nil},
		{"unknown memory", expectedKept{0.5, "x"}, 0, 1e9, nil},
	} {
		got := newForecast(1e9, 4e8, c.hits, c.memory, c.disk)
		if got != nil {
			got.Low = math.Round(1e9*got.Low) / 1e9
		}
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, c := range []struct{ share, want float64 }{{0, 0}, {0.25, 0.7}, {0.375, 0.8145}, {1, 1}} {
		if got := trainedKept(c.share); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("share %g: got %g, want %g", c.share, got, c.want)
		}
	}
	i := actors.Info{ExpertIO: actors.ExpertIOMmap, ExpertBytes: 100, SlotBytes: 10}
	if got, err := expectKept(t.TempDir(), &i, 50, tokensAhead{}); err != nil || got.from != "" {
		t.Errorf("mapped experts that do not fit: got %+v, %v", got, err)
	}
}

// TestForecastOfMeasuredSpeeds puts in the bandwidths of machines on which models of real size were
// measured, with the bytes that their tokens touch: every measured speed lies within the forecast.
func TestForecastOfMeasuredSpeeds(t *testing.T) {
	const (
		touched30, experts30 = 1755e6, 1019e6 // qwen3-30b-a3b, 4 bits, 8 experts
		touched35, experts35 = 1734e6, 566e6  // qwen3.5-35b-a3b
	)
	for _, c := range []struct {
		name             string
		touched, experts int64
		kept             float64
		memory, disk     float64
		measured         []float64 // docs/experiments.md, README.md
	}{
		{"Zen 5, 30b in memory", touched30, experts30, 1, 49e9, 0, []float64{22.6, 23.2}},
		{"Zen 5, 35b in memory", touched35, experts35, 1, 49e9, 0, []float64{20.8}},
		{"Xeon, 30b in memory", touched30, experts30, 1, 26.5e9, 0, []float64{12.3}},
		{"Xeon, 35b in memory", touched35, experts35, 1, 26.5e9, 0, []float64{10.6}},
		{"Xeon, 16 threads, 30b in memory", touched30, experts30, 1, 53 * touched30, 0, []float64{33.3}},
		{"Xeon, 8 threads", touched30, experts30, 1, 44 * touched30, 0, []float64{25.5}},
		{"Xeon, 4 threads", touched30, experts30, 1, 24 * touched30, 0, []float64{17.0}},
		{"Xeon, 1 thread", touched30, experts30, 1, 8.2 * touched30, 0, []float64{6.7}},
		{"Xeon, 30b, a quarter in memory", touched30, experts30, 0.74, 26.5e9, 1.4e9, []float64{5.2}},
		{"Xeon, 30b, half in memory", touched30, experts30, 0.86, 26.5e9, 1.4e9, []float64{7.0}},
	} {
		f := newForecast(c.touched, c.experts, expectedKept{c.kept, "x"}, c.memory, c.disk)
		for _, speed := range c.measured {
			if f == nil || speed < f.Low || speed > f.TokensPerSecond {
				t.Errorf("%s: measured %g tokens/s, forecast %+v", c.name, speed, f)
			}
		}
	}
}

// TestDoctorAdvice advises a number of read workers only if every round was clearly faster with it,
// and then plans with it.
func TestDoctorAdvice(t *testing.T) {
	rate := func(depth int, median, least, most float64) diskRate {
		return diskRate{Mode: "direct", Depth: depth, spread: spread{1e9 * median, 1e9 * least, 1e9 * most}}
	}
	for _, c := range []struct {
		name  string
		flag  int // --read-workers
		rates []diskRate
		want  int
	}{
		{"faster, but the ranges overlap", 0, []diskRate{rate(1, 1.45, 1.2, 1.6), rate(4, 1.22, 0.9, 1.5)}, 0},
		{"always faster, but hardly", 0, []diskRate{rate(1, 1.05, 1.04, 1.06), rate(4, 1.0, 0.99, 1.01)}, 0},
		{"clearly faster", 0, []diskRate{rate(1, 1.5, 1.4, 1.6), rate(4, 1.2, 1.1, 1.3)}, 1},
		{"the default is the fastest", 0, []diskRate{rate(1, 1, 1, 1), rate(4, 2, 2, 2)}, 0},
		{"the user has chosen", 4, []diskRate{rate(1, 1.5, 1.4, 1.6), rate(4, 1.2, 1.1, 1.3)}, 0},
		{"nothing measured", 0, nil, 0},
	} {
		cmd, r := &doctorCmd{}, &doctorResult{Disk: c.rates}
		cmd.ReadWorkers = c.flag
		advised := cmd.adviseReadWorkers(r, &actors.Info{ExpertIO: actors.ExpertIODirect, ReadWorkers: 4})
		if advised != (c.want > 0) || advised != (r.Plan.Advice != "") || advised != (len(r.Why) == 1) || advised && cmd.ReadWorkers != c.want {
			t.Errorf("%s: advised %v, %d workers, %q, why %q; want %d", c.name, advised, cmd.ReadWorkers, r.Plan.Advice, r.Why, c.want)
		}
	}
	// With a plan, the text names the flag and has no other advice about workers.
	r := &doctorResult{Plan: doctorPlan{Advice: "--read-workers 1", hereSettings: hereSettings{ReadWorkers: 1}}, Memory: &benchMemory{Threads: 1}}
	if text := r.text(); !strings.Contains(text, "\nrun with      --read-workers 1\n") || !strings.Contains(text, ", 1 read worker, ") {
		t.Errorf("the text:\n%s", text)
	}
}
