package perfettocheck

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// rows are what a query finds. Numbers are float64, which holds all nanoseconds of a test.
type rows [][]any

// processor is Perfetto's trace processor.
type processor struct{ node, folder string }

func newProcessor(t *testing.T) processor {
	t.Helper()
	folder := os.Getenv("MOEFLUX_TRACE_PROCESSOR")
	if folder == "" {
		testenv.Missing(t, "no MOEFLUX_TRACE_PROCESSOR: .ci/run perfetto fetches the trace processor and names it", "trace-processor")
	}
	return processor{testenv.Find(t, "nodejs", "node"), folder}
}

// ask returns what each query finds in a trace.
func (p processor) ask(t *testing.T, trace string, queries ...string) []rows {
	t.Helper()
	in, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.node, "query.mjs", p.folder, trace)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	var got []rows
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(queries) {
		t.Fatalf("%d answers to %d queries: %v", len(got), len(queries), err)
	}
	return got
}

// recorded returns the records of two texts at once, whose model does not fit into memory.
func recorded(t *testing.T) *record.Recording {
	t.Helper()
	ctx := context.Background()
	model, err := demo.Dir(ctx, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := device.Open(device.Config{Name: "host"})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	e, err := actors.Open(ctx, actors.Config{Model: model, Device: dev, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 2 << 20, ReadWorkers: 2, RecordMemory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	done := make(chan error)
	for text := range 2 {
		go func() { done <- generate(ctx, e, int32(text)) }()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	for { // until reads that were begun ahead have ended
		rec, err := e.Recording(ctx)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(map[[2]int32]bool)
		for _, g := range rec.Guesses {
			if g.Verdict == record.Issued {
				asked[[2]int32{g.Layer, g.Expert}] = true
			}
		}
		for _, r := range rec.Reads {
			delete(asked, [2]int32{r.Layer, r.Expert})
		}
		if len(asked) == 0 {
			return rec
		}
		time.Sleep(time.Millisecond)
	}
}

// generate reads a prompt and decodes some tokens.
func generate(ctx context.Context, e *actors.Engine, text int32) error {
	seq, err := e.NewSequence(ctx)
	if err != nil {
		return err
	}
	prompt := make([]int32, 20)
	for i := range prompt {
		prompt[i] = 97*text + 13*int32(i) + 40
	}
	for _, err := range seq.Generate(ctx, prompt, actors.GenerateOptions{MaxTokens: 12, IgnoreEOS: true}) {
		if err != nil {
			return err
		}
	}
	return seq.Close()
}

// track is what lies on one.
type track struct {
	slices int
	ns     int64
}

// expected returns the tracks that records must come to.
func expected(rec *record.Recording, tokens []analyse.Token) map[string]track {
	all := make(map[string]track)
	add := func(name string, from, to int64) {
		k := all[name]
		all[name] = track{k.slices + 1, k.ns + max(1, to-from)}
	}
	for _, h := range rec.Handled {
		add("stages/"+rec.Meta.Stages[h.Stage], h.BeganNS, h.EndedNS)
	}
	for _, s := range rec.Submissions {
		name := "device/ordinary queue: prompts"
		if s.Urgent != 0 {
			name = "device/urgent queue: decode steps"
		}
		add(name, s.BeganNS, s.EndedNS)
	}
	for _, r := range rec.Reads {
		if r.Recalled == 0 { // else it has not begun
			add("reads", r.BeganNS, r.EndedNS)
		}
	}
	for _, k := range tokens {
		add(fmt.Sprintf("sequences/sequence %d", k.Seq), k.FromNS, k.FromNS+k.WallNS)
	}
	return all
}

const (
	faults = `select name, value from stats where severity in ('error', 'data_loss') and value != 0`
	tracks = `select p.name || '/' || t.name, count(*), sum(s.dur) from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) group by 1`
	// asks counts arrows to reads by where they come from.
	asks = `select p.name || '/' || t.name, count(*) from flow f join slice i on i.id = f.slice_in join slice o on o.id = f.slice_out
		join thread_track k on o.track_id = k.id join thread t using (utid) join process p using (upid) where i.category in ('read', 'guess') group by 1`
	uses = `select o.name, i.name, i.ts - o.ts - o.dur from flow f join slice i on i.id = f.slice_in join slice o on o.id = f.slice_out where o.category in ('read', 'guess')`
	// counters has the largest and the last value of each.
	counters = `select t.name, max(c.value), (select value from counter l where l.track_id = t.id order by ts desc limit 1) from counter c join process_counter_track t on c.track_id = t.id group by 1`
)

// TestTimeline has the processor read a timeline as it is and compressed.
func TestTimeline(t *testing.T) {
	p := newProcessor(t)
	rec := recorded(t)
	why, err := analyse.WhyTokens(rec, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text, small bytes.Buffer
	write, err := analyse.Timeline(rec, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(&text); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&small)
	z.Write(text.Bytes())
	z.Close()
	var first []rows
	for name, file := range map[string][]byte{"timeline.json": text.Bytes(), "timeline.json.gz": small.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		got := p.ask(t, path, faults, tracks, asks, uses, counters)
		if first == nil {
			first = got
			checkTimeline(t, rec, why.Tokens, got)
		} else if !reflect.DeepEqual(got, first) {
			t.Errorf("%s says something else than the other file", name)
		}
	}
}

func checkTimeline(t *testing.T, rec *record.Recording, tokens []analyse.Token, got []rows) {
	t.Helper()
	if len(got[0]) > 0 {
		t.Errorf("the trace processor found faults: %v", got[0])
	}
	found := make(map[string]track)
	for _, r := range got[1] {
		name := r[0].(string)
		if strings.HasPrefix(name, "reads/") {
			name = "reads"
		}
		k := found[name]
		found[name] = track{k.slices + int(r[1].(float64)), k.ns + int64(r[2].(float64))}
	}
	for name, want := range expected(rec, tokens) {
		if found[name] != want {
			t.Errorf("track %s has %+v, the records %+v", name, found[name], want)
		}
	}
	begun := 0
	for _, r := range rec.Reads {
		if r.Recalled == 0 {
			begun++
		}
	}
	if len(got[2]) != 1 || got[2][0][0] != "stages/expert-io" || int(got[2][0][1].(float64)) != begun {
		t.Errorf("arrows to %d reads come from %v", begun, got[2])
	}
	checkUses(t, rec, got[3])
	values := make(map[string][2]float64)
	for _, r := range got[4] {
		values[r[0].(string)] = [2]float64{r[1].(float64), r[2].(float64)}
	}
	if v := values["reads running"]; v[0] < 1 || v[0] > float64(rec.Meta.Engine.ReadWorkers) || v[1] != 0 {
		t.Errorf("the counter of reads goes up to %v and ends at %v", v[0], v[1])
	}
	if v := values["bytes in flight bytes"]; v[0] < float64(rec.Meta.Model.SlotBytes) || v[1] != 0 {
		t.Errorf("the counter of bytes goes up to %v and ends at %v", v[0], v[1])
	}
	if v := values["slots used"]; v[0] < 1 || v[0] > float64(rec.Meta.Engine.Slots) {
		t.Errorf("the counter of slots goes up to %v of %d", v[0], rec.Meta.Engine.Slots)
	}
}

// checkUses checks the arrows from reads to waves: the layer is the same, and the wave begins after
// the read has ended.
func checkUses(t *testing.T, rec *record.Recording, uses rows) {
	t.Helper()
	demand := 0 // reads of experts that a step was waiting for: each is used by a wave
	for _, r := range rec.Reads {
		if r.Hint == 0 {
			demand++
		}
	}
	if len(uses) < demand || demand == 0 {
		t.Errorf("%d arrows lead to waves; %d reads were wanted by a step", len(uses), demand)
	}
	for _, r := range uses {
		var layer, expert, of int
		_, err1 := fmt.Sscanf(r[0].(string), "layer %d expert %d", &layer, &expert)
		_, err2 := fmt.Sscanf(r[1].(string), "experts of layer %d", &of)
		if after := r[2].(float64); err1 != nil || err2 != nil || layer != of || after < 0 {
			t.Errorf("an arrow leads from %q to %q, which begins %v ns after its end", r[0], r[1], after)
		}
	}
}
