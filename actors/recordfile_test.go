package actors_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

func readRecords(t *testing.T, path string) *record.Recording {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := record.ReadRecording(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The file of an engine has what its log has, to the last record, though the log holds but the last
// of them.
func TestRecordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.records")
	cfg := recordedEngines(t)["streamed"]
	cfg.Record = path
	s, log, _ := watchedEngine(t, cfg)
	file := readRecords(t, path)
	if file.Cut || file.Forgotten != nil || len(file.Handled) != len(s.messages) || file.Meta.Reason != "record" {
		t.Errorf("the file has %d messages, the cores had %d; missing %v, cut %v, reason %q", len(file.Handled), len(s.messages), file.Forgotten, file.Cut, file.Meta.Reason)
	}
	if m := file.Meta; m.Model.Layers == 0 || m.Model.Experts == 0 || m.Machine.Device == "" || m.Settings["ring-depth"] != "2" || m.Exactness == "" || m.Stages[stages.Dispatch] != "dispatch" || m.Messages[stages.KindEvalChunk] != "EvalChunk" {
		t.Errorf("the file is of %+v", m)
	}
	file.Meta = log.Meta
	if !reflect.DeepEqual(file, log) {
		t.Error("the file and the log of the closed engine differ")
	}

	cfg.Record, cfg.Device = filepath.Join(path, "in"), device(t, 1)
	if e, err := actors.Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "records cannot be written") {
		t.Errorf("records to a file within a file: %v", err)
		if e != nil {
			e.Close(context.Background())
		}
	}
}

// A token that is slow because a stage is has its records written, and others have not. Other work
// on the machine makes one slow now and then: then the test begins again.
func TestFlightOfSlowToken(t *testing.T) {
	for range 20 {
		if slowTokenRecorded(t) {
			return
		}
	}
	t.Fatal("each time, a token that no stage had made slow was 50 times as long as usual")
}

// slowTokenRecorded makes one token slow and looks at the file of it. It returns false if another
// token was slow before.
func slowTokenRecorded(t *testing.T) bool {
	dir := t.TempDir()
	slow := make(chan time.Duration, 1)
	cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), FlightDir: dir, FlightTimes: 50, Device: device(t, 2)}
	actors.WrapCores(&cfg, func(id stages.StageID, c stages.Core) stages.Core {
		if id == stages.Combine {
			return &slowed{c, slow}
		}
		return c
	})
	e := open(t, cfg)
	seq := sequence(t, e)
	begin := time.Now()
	if _, err := greedy(seq, []int32{3, 1, 4}, 60); err != nil {
		t.Fatal(err)
	}
	delay := max(100*time.Since(begin)/60, 50*time.Millisecond)
	time.Sleep(100 * time.Millisecond) // for the recorder to look at them
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
		r := readRecords(t, files[0])
		if took := slowestToken(r); took < 10*time.Millisecond {
			t.Fatalf("the slowest token took %v, and there is %v: %s", took, files, r.Meta.Reason)
		}
		return false
	}
	slow <- delay
	at := seq.Len()
	eval(t, seq, 5)
	var files []string
	for end := time.Now().Add(10 * time.Second); len(files) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		files, _ = filepath.Glob(filepath.Join(dir, "flight-*.records"))
	}
	if len(files) != 1 {
		t.Fatalf("there are %v, want one file", files)
	}
	r := readRecords(t, files[0])
	last := r.Requests[len(r.Requests)-1]
	if took := last.EndedNS - last.ArrivedNS; int(last.Pos) != at || took < int64(delay) || !strings.Contains(r.Meta.Reason, "times the usual") {
		t.Errorf("the last request of the file is %+v, want that at position %d; the reason is %q", last, at, r.Meta.Reason)
	}
	path, err := e.DumpRecords(context.Background(), "a test wants it")
	if err != nil {
		t.Fatal(err)
	}
	if r := readRecords(t, path); r.Meta.Reason != "a test wants it" {
		t.Errorf("the file says %q", r.Meta.Reason)
	}
	return true
}

// slowestToken returns what the slowest request of a file took.
func slowestToken(r *record.Recording) time.Duration {
	var most int64
	for _, q := range r.Requests {
		most = max(most, q.EndedNS-q.ArrivedNS)
	}
	return time.Duration(most)
}

// slowed is a stage that takes as long for one message as it is told to.
type slowed struct {
	stages.Core
	slow chan time.Duration
}

func (s *slowed) Step(in stages.Message, out *stages.Outbox) error {
	select {
	case delay := <-s.slow:
		time.Sleep(delay)
	default:
	}
	return s.Core.Step(in, out)
}
