package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/bench"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/tune"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// tunedDemo returns the arguments that name the demo model and a folder of its own for tuned
// settings, in which some are kept as tune does it, and their file.
func tunedDemo(t *testing.T, s tuned.Settings) (args []string, path string) {
	t.Helper()
	inv := &process.Invocation{Env: testEnv(), Stderr: io.Discard}
	dir, err := flags.ModelDir(t.Context(), inv, "", sharedCache)
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	cfg, err := (&flags.Engine{Model: dir, Settings: flags.Settings{Tuned: "off"}}).Configure(t.Context(), inv, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer cfg.Device.Close()
	info, err := actors.Plan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := tuned.New(&cfg, &info, s, tuned.Found{Pairs: 6})
	if err != nil {
		t.Fatal(err)
	}
	if path, err = tuned.Path(cache, &cfg); err == nil {
		err = k.Save(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--model", dir, "--cache-dir", cache}, path
}

// What tune kept is taken by run and what plans, and said, unless a flag says otherwise. bench
// measures what its command line says.
func TestTunedTaken(t *testing.T) {
	model, _ := tunedDemo(t, tuned.Settings{RingDepth: 3})
	text := ""
	for _, c := range []struct {
		more  []string
		depth int
		tuned string
	}{{nil, 3, "--ring-depth 3"}, {[]string{"--tuned", "off"}, 2, ""}, {[]string{"--ring-depth", "4"}, 4, ""}, {[]string{"--tuned", "auto", "--prefetch", "off"}, 3, "--ring-depth 3"}} {
		args := append(append([]string{"run", "-p", "package main", "-n", "8"}, model...), c.more...)
		o := mustCall(t, "", args...)
		if strings.Contains(o.stderr, "tuned") != (c.tuned != "") || !strings.Contains(o.stderr, c.tuned) || text != "" && o.stdout != text {
			t.Errorf("%q: %q, text %q; want tuned %q, and the same text", c.more, o.stderr, o.stdout, c.tuned)
		}
		text = o.stdout
		var r runResult
		if o := mustCall(t, "", append(args, "--json")...); json.Unmarshal([]byte(o.stdout), &r) != nil || r.Stats.Tuned != c.tuned {
			t.Errorf("%q: --json says %q, want %q", c.more, r.Stats.Tuned, c.tuned)
		}
		var i inspectResult
		if o := mustCall(t, "", append(append([]string{"inspect", "--json"}, model...), c.more...)...); json.Unmarshal([]byte(o.stdout), &i) != nil || i.Here.Tuned != c.tuned || i.Here.RingDepth != c.depth {
			t.Errorf("%q: inspect says %+v, want depth %d, tuned %q", c.more, i.Here, c.depth, c.tuned)
		}
	}
	measure := append(model, "--prompt-tokens", "2", "--gen-tokens", "2", "--repeat", "1", "--warmup", "1")
	if r := mustBench(t, benchEnv(), measure...); r.RingDepth != 2 {
		t.Errorf("bench has depth %d, want the default", r.RingDepth)
	}
	if r := mustBench(t, benchEnv(), append(measure, "--tuned", "auto")...); r.RingDepth != 3 {
		t.Errorf("bench --tuned auto has depth %d, want the tuned 3", r.RingDepth)
	}
	o := mustCall(t, "", append([]string{"run", "-p", "x", "-n", "2", "--kv", "int8"}, model...)...)
	if strings.Count(o.stderr, "the settings that tune kept for this model are not used") != 1 || strings.Contains(o.stderr, "; tuned") {
		t.Errorf("another format of keys and values: %q, want one line that says why", o.stderr)
	}
}

// tuneDemo tunes with more and more time until there is enough.
func tuneDemo(t *testing.T, model []string) (r tune.Result) {
	t.Helper()
	for seconds := 3; ; seconds *= 2 {
		o := call(t, "", append([]string{"tune", "--json", "--ctx", "128", "--seconds", strconv.Itoa(seconds)}, model...)...)
		r = tune.Result{}
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || (o.code == exitOK) != (r.Needed == 0) {
			t.Fatalf("exit %d, stdout %q, stderr %q, %v", o.code, o.stdout, o.stderr, err)
		}
		if o.code == exitOK {
			return r
		}
	}
}

// tune keeps what it chose, and nothing else, and the result agrees with itself.
func TestTune(t *testing.T) {
	model, path := tunedDemo(t, tuned.Settings{RingDepth: 4})
	for i := range 2 { // the second time it is another model's word against the first
		_, err := os.Stat(path)
		was := err == nil
		r := tuneDemo(t, model)
		kept, err := tuned.Load(path)
		chosen := r.Chosen()
		if r.Kept.Path != path || r.Kept.Saved != (err == nil) || r.Kept.Saved == (chosen == tuned.Settings{}) || err == nil && kept.Settings != chosen || r.Kept.Removed != (was && !r.Kept.Saved) {
			t.Errorf("time %d: chosen %q, kept %+v, the file has %+v, %v", i+1, chosen, r.Kept, kept, err)
		}
		if r.Replay.Why == "" || len(r.Candidates) < 3 || !strings.HasPrefix(r.Command, "moeflux-actor run --model "+model[1]+" ") || !strings.HasSuffix(strings.TrimSpace(r.Command), chosen.String()) {
			t.Errorf("time %d: %+v", i+1, r)
		}
		if v := r.Verdict; v != nil && (len(v.Pairs) < 5 || v.Significant != (v.P <= bench.SweepLevel) || r.Tested == nil) {
			t.Errorf("time %d: verdict %+v", i+1, v)
		}
	}
}

// A tune that a signal ends says what there is, and changes nothing.
func TestTuneInterrupted(t *testing.T) {
	model, path := tunedDemo(t, tuned.Settings{RingDepth: 4})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= 4; at += 3 {
		ctx, cancel := context.WithCancel(t.Context())
		e, opened := testEnv(), 0
		e.MemoryLimit = func() int64 { // asked once a session
			if opened++; opened == at {
				cancel()
			}
			return 0
		}
		o := callWith(ctx, e, "", append([]string{"tune", "--ctx", "128", "--seconds", "60"}, model...)...)
		cancel()
		if o.code != exitInterrupted || !strings.Contains(o.stdout, "interrupted") || !strings.Contains(o.stdout, "Nothing is saved; what was kept before stays.") || opened != at {
			t.Errorf("exit %d after %d sessions, stdout %q, stderr %q", o.code, opened, o.stdout, o.stderr)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %q, %v", after, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What cannot be done is one line.
func TestTuneFails(t *testing.T) {
	model, path := tunedDemo(t, tuned.Settings{RingDepth: 4})
	hasty := testEnv()
	hasty.Now = func() time.Time { hasty.Start = hasty.Start.Add(10 * time.Second); return hasty.Start }
	blocked := t.TempDir()
	if err := os.WriteFile(filepath.Join(blocked, "tuned"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		e    process.Env
		args []string
		code int
		want string
	}{
		{hasty, append([]string{"--ctx", "128", "--seconds", "30"}, model...), exitFailed, "30 s are too few to compare anything on this machine, about"},
		{testEnv(), []string{model[1], "--cache-dir", blocked}, exitFailed, "settings cannot be kept in " + filepath.Join(blocked, "tuned")},
		{testEnv(), []string{"/no/such/model"}, exitFailed, "there is no model directory /no/such/model"},
		{testEnv(), []string{"--seconds", "0"}, exitUsage, "--seconds 0: must be 1 or more"},
		{testEnv(), []string{"--record", "x"}, exitUsage, "--record does nothing with tune"},
		{testEnv(), []string{"--tuned", "auto"}, exitUsage, "--tuned auto does nothing with tune"},
		{testEnv(), []string{"a", "--model", "b"}, exitUsage, "name two directories"},
	} {
		o := callWith(t.Context(), c.e, "", append([]string{"tune"}, c.args...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, o.code, o.stderr, c.code, c.want)
		}
		checkErrorLine(t, o)
	}
	if _, err := tuned.Load(path); err != nil {
		t.Errorf("what was kept before is gone: %v", err)
	}
}
