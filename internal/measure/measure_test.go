package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// fakeRoot makes the files that findGroups looks for, by path.
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root, all := t.TempDir(), fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	if err := os.CopyFS(root, all); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFindGroups(t *testing.T) {
	const dropFile, v1File = "proc/sys/vm/drop_caches", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // in the error, "" for none
	}{
		{"no drop_caches", map[string]string{v1File: "1"}, "the page cache cannot be dropped"},
		{"no cgroups", map[string]string{dropFile: ""}, "there is no memory cgroup"},
		{"both", map[string]string{dropFile: "", v1File: "1"}, ""},
	} {
		_, err := findGroups(fakeRoot(t, c.files), 0)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// program stands in for moeflux-actor: its synth makes a file, its doctor and bench print fixed
// figures, and it empties the group's folder, as a kernel would.
const program = `#!/bin/sh
echo "$@" >>%[1]s/calls
case $1 in
synth) for last; do :; done; mkdir -p "$last" && head -c 1000 /dev/zero >"$last/weights" ;;
doctor) cat %[1]s/limits/moeflux-*/memory.limit_in_bytes >>%[1]s/seen; echo '{"memory":{"median":1e9},"disk":[{"mode":"direct","median":2e6},{"mode":"buffered","median":1e6}]}' ;;
bench) echo '{"forecast":{"tokens_per_second":4},"experts_per_token":8,"touched_per_token":1000000,"optimum":{"expert_misses":4,"expert_kept_rate":0.9,"bytes_read":4000000},"cases":[{"runs":[{"decode":{"tokens":8,"seconds":4,"tokens_per_second":2,"expert_hit_rate":0.8,"expert_kept_rate":0.7,"bytes_read":5000000}}]}]}' ;;
esac
rm -f %[1]s/limits/moeflux-*/*
`

// TestMeasure runs everything with stand-ins for the program and the kernel.
func TestMeasure(t *testing.T) {
	dir := fakeRoot(t, map[string]string{"drop": "", "limits/memory.limit_in_bytes": ""})
	bin := filepath.Join(dir, "program")
	if err := os.WriteFile(bin, fmt.Appendf(nil, program, dir), 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-program", bin, "-models", filepath.Join(dir, "models"), "-shapes", "qwen3-30b-a3b", "-shares", "25,50", "-runs", "2", "--", "--prefetch", "off"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := &measurer{o: o, groups: &groups{tree: cgroup.At(filepath.Join(dir, "limits"), 1), drop: filepath.Join(dir, "drop")}, progress: io.Discard}
	rows, err := m.measure(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 || len(rows[0].Runs) != 2 || rows[0].Limit != 250 || rows[3].Limit != 500 || rows[3].Route != "uniform" {
		t.Fatalf("rows %+v", rows)
	}
	s := rows[0].summary()
	// 4 MB of unavoidable reads in 8 tokens at 2 MB/s are 250 ms a token, 1 MB at 1 GB/s is 1 ms.
	if s.Limit == nil || math.Abs(s.Limit.Disk-0.25) > 1e-12 || math.Abs(s.Limit.Compute-0.001) > 1e-12 || *s.LimitShare != 0.5 || *s.Forecast != 0.5 {
		t.Errorf("summary %+v, limit %+v", s, s.Limit)
	}
	if s.Mapped != 1.17 || s.Deferred != 1.55 || math.Abs(*s.TimesBest-2/1.55) > 1e-12 || s.TopK != 8 || s.HitRate != 0.8 || s.BestKept != 0.9 {
		t.Errorf("summary %+v", s)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--route uniform --experts-of " + filepath.Join(dir, "models", "qwen3-30b-a3b-mild"), "--cold --prompt-tokens 8 --gen-tokens 64 --json --prefetch off\n"} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("the calls lack %q:\n%s", want, calls)
		}
	}
	if seen, err := os.ReadFile(filepath.Join(dir, "seen")); err != nil || string(seen) != "250500250500" {
		t.Errorf("limits %q, %v; want 250 and 500 bytes for either route", seen, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "limits")); err != nil || len(left) != 1 {
		t.Errorf("groups are left: %v, %v", left, err)
	}
	if drop, err := os.ReadFile(filepath.Join(dir, "drop")); err != nil || string(drop) != "3" {
		t.Errorf("the page cache was not dropped: %q, %v", drop, err)
	}
	var table bytes.Buffer
	if err := writeTable(&table, o, rows); err != nil || !strings.Contains(table.String(), "| 2.00 (2.00 to 2.00) | 80.0 % | 70.0 % | 90.0 % |") ||
		!strings.Contains(table.String(), "| 1.17 | 1.55 | 1.3 | 4.00: 250 ms, 1 ms | 50 % | 50 % |") {
		t.Errorf("%v, table\n%s", err, table.String())
	}
	file := filepath.Join(dir, "all.json")
	if err := writeJSON(file, rows); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	var back []struct{ Summary struct{ TopK int } }
	if err != nil || json.Unmarshal(raw, &back) != nil || len(back) != 4 {
		t.Errorf("JSON %q, %v", raw, err)
	}
}

// TestMeasureFails reports what the program said, and leaves no group behind.
func TestMeasureFails(t *testing.T) {
	dir := fakeRoot(t, map[string]string{"drop": "", "limits/x": "", "models/qwen3-30b-a3b-mild/weights": "12345678"})
	bin := filepath.Join(dir, "program")
	if err := os.WriteFile(bin, fmt.Appendf(nil, "#!/bin/sh\nrm -f %s/limits/moeflux-*/*\necho no such luck >&2\nexit 1\n", dir), 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-program", bin, "-models", filepath.Join(dir, "models"), "-shapes", "qwen3-30b-a3b", "-routes", "mild"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := &measurer{o: o, groups: &groups{tree: cgroup.At(filepath.Join(dir, "limits"), 2), drop: filepath.Join(dir, "drop")}, progress: io.Discard}
	if rows, err := m.measure(context.Background()); err == nil || len(rows) != 0 || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v, %v, want the program's own words", rows, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "limits")); err != nil || len(left) != 1 {
		t.Errorf("groups are left: %v, %v", left, err)
	}
}

func TestParse(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good := []string{"-program", me, "-models", "m"}
	if o, err := parse(good, io.Discard); err != nil || len(o.shapes) != 2 || len(o.routes) != 2 || len(o.shares) != 2 || o.gen != 64 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, more := range [][]string{{"-models", ""}, {"-shares", "0"}, {"-shares", "x"}, {"-runs", "0"}, {"-layers", "-1"}, {"-program", "/none"}, {"-what"}} {
		if o, err := parse(slices.Concat(good, more), io.Discard); err == nil {
			t.Errorf("%q: got %+v and no error", more, o)
		}
	}
}
