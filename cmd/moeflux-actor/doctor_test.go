package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/diskbw"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// mustDoctor runs doctor and returns what --json prints.
func mustDoctor(t *testing.T, e process.Env, args ...string) *forecast.Report {
	t.Helper()
	args = append([]string{"doctor", "--json"}, args...)
	o := callWith(t.Context(), e, "", args...)
	var r forecast.Report
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitOK {
		t.Fatalf("%q: exit %d, stdout %q, stderr %q, %v", args, o.code, o.stdout, o.stderr, err)
	}
	return &r
}

// TestDoctor compares the figures with each other and with inspect.
func TestDoctor(t *testing.T) {
	e := testEnv()
	e.MemoryLimit = func() int64 { return 1 << 30 }
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
	depths := map[diskbw.Mode]int{}
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
	f := mustDoctor(t, testEnv(), flags...).Forecast
	if f == nil || !strings.Contains(f.KeptRateFrom, "rows of "+file) || f.KeptRate <= 0 || f.KeptRate >= 1 {
		t.Errorf("forecast %+v, want what the profile says", f)
	}
}

// TestDoctorText prints everything, including a plan that would not run.
func TestDoctorText(t *testing.T) {
	o := callWith(t.Context(), testEnv(), "", "doctor", "--expert-io", "mmap")
	for _, want := range []string{"\nmemory ", "\ndisk buffered", "\nplan ", "kept 100.0%, since all experts are in memory", "\nwhy "} {
		if !strings.Contains(o.stdout, want) || o.code != exitOK {
			t.Errorf("exit %d, stdout lacks %q:\n%s", o.code, want, o.stdout)
		}
	}
	o = callWith(t.Context(), testEnv(), "", "doctor", "--expert-io", "buffered", "--parked-memory", "64MiB")
	for _, want := range []string{" of other weights; 64.0 MiB for parked states; context ", " of free memory, beside 64.0 MiB for parked states; --expert-memory sets it"} {
		if !strings.Contains(o.stdout, want) || o.code != exitOK {
			t.Errorf("exit %d, stdout lacks %q:\n%s", o.code, want, o.stdout)
		}
	}
	o = callWith(t.Context(), testEnv(), "", "doctor", "--expert-io", "buffered", "--expert-memory", "1KB")
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

// With a plan, the text names the flag and has no other advice about workers.
func TestDoctorAdvice(t *testing.T) {
	r := &forecast.Report{Plan: forecast.Plan{Advice: "--read-workers 1", Settings: figures.Settings{ReadWorkers: 1}}, Memory: &forecast.Memory{Threads: 1}}
	if text := r.Text(); !strings.Contains(text, "\nrun with      --read-workers 1\n") || !strings.Contains(text, ", 1 read worker, ") {
		t.Errorf("the text:\n%s", text)
	}
}
